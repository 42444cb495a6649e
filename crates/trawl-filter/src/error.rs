//! Why a filter is refused.

use crate::MAX_FILTER_BYTES;

/// Positions are 1-based bytes of the text. The text itself is never repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Longer than [`MAX_FILTER_BYTES`].
    #[error("filter has {length} bytes; at most {MAX_FILTER_BYTES} are allowed: shorten it")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// A control character or something outside ASCII.
    #[error("filter, byte {position}: only printable ASCII is allowed")]
    NotPrintable {
        /// Where.
        position: usize,
    },
    /// A word that is not understood or not allowed.
    #[error("filter, byte {position}: {advice}")]
    Refused {
        /// Where.
        position: usize,
        /// What is wrong and what to do.
        advice: &'static str,
    },
    /// Known words that are no expression together.
    #[error("filter: {advice}")]
    Syntax {
        /// What is wrong and what to do.
        advice: &'static str,
    },
    /// The expression contradicts itself: no packet can ever match.
    #[error("filter rejects all packets: parts of it exclude each other; remove one of them")]
    RejectsAll,
    /// The compiler did not finish in time.
    #[error("filter took too long to compile; make it simpler")]
    TooSlow,
    /// The compiler could not run, or made code that is not sound.
    #[error("filter could not be compiled here: {0}")]
    Internal(&'static str),
}
