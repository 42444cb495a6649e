//! Reading pcapng (draft-ietf-opsawg-pcapng) as evidence: every block is checked, no length is trusted, and no
//! more than [`MAX_BUFFERED_BLOCK`] bytes are held, whatever the file claims.

mod blocks;
mod error;
mod walker;

pub use error::WalkError;
pub use walker::{Summary, Walker};

/// Largest section header or interface description that is accepted, in bytes: these are held whole.
pub const MAX_BUFFERED_BLOCK: u32 = 64 * 1024;
/// Largest block of any kind that is accepted, in bytes.
pub const MAX_BLOCK: u32 = 16 * 1024 * 1024;
/// Most interface descriptions that one section may hold.
pub const MAX_INTERFACES: usize = 256;
/// Most section comments that a summary keeps; more are counted by nobody and are not an error.
pub const MAX_COMMENTS: usize = 64;

/// One interface description block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// LINKTYPE value; 1 is Ethernet.
    pub link_type: u16,
    /// Bytes kept of each packet; 0 is no limit.
    pub snaplen: u32,
    /// `if_name`.
    pub name: Option<String>,
    /// Ticks per second of this interface's stamps (`if_tsresol`).
    pub resolution: Resolution,
    /// `if_tsoffset`, seconds added to every stamp.
    pub offset_secs: i64,
}

/// Unit of an interface's stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// 10^-n seconds, n at most 18.
    Decimal(u8),
    /// 2^-n seconds, n at most 63.
    Binary(u8),
}

impl Resolution {
    /// Nanoseconds since the epoch of `ticks`, or `None` when that is not a time a capture can have.
    pub fn nanoseconds(self, ticks: u64, offset_secs: i64) -> Option<u64> {
        let ticks = i128::from(ticks);
        let nanos = match self {
            Self::Decimal(n) if n <= 9 => ticks * 10i128.pow(9 - u32::from(n)),
            Self::Decimal(n) => ticks / 10i128.pow(u32::from(n) - 9),
            Self::Binary(n) => (ticks * 1_000_000_000) >> n,
        };
        u64::try_from(nanos + i128::from(offset_secs) * 1_000_000_000).ok()
    }
}
