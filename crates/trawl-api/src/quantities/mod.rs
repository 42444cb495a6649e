//! Durations and byte sizes, parsed once, kept in the words in which they were written.

mod bytes;
mod duration;

pub use bytes::ByteSize;
pub(crate) use bytes::nanos;
pub use duration::GoDuration;

/// Why a duration or a byte size was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuantityError(String);
