//! What is wrong with a pcapng file, and where.

use super::{MAX_BLOCK, MAX_BUFFERED_BLOCK, MAX_INTERFACES};

/// Why a walk stopped. `at` is the offset of the block at fault, in bytes from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {
    #[error("the file is empty: a pcapng file begins with a section header block")]
    Empty,
    #[error("not a pcapng file: it does not begin with a section header block")]
    NotPcapng,
    #[error("block at {at}: the byte-order magic is neither endianness")]
    BadByteOrder { at: u64 },
    #[error("block at {at}: pcapng version {major}.{minor} is not 1.0 or 1.2")]
    BadVersion { at: u64, major: u16, minor: u16 },
    #[error("block at {at}: length {length} is not a multiple of 4 or too short for its kind")]
    BadLength { at: u64, length: u32 },
    #[error(
        "block at {at}: length {length} exceeds the limit ({MAX_BLOCK} bytes; {MAX_BUFFERED_BLOCK} for headers)"
    )]
    TooLarge { at: u64, length: u32 },
    #[error("block at {at}: trailing length {trailing} differs from leading length {leading}")]
    LengthMismatch { at: u64, leading: u32, trailing: u32 },
    #[error("block at {at}: packet of interface {interface}, which was not described")]
    UnknownInterface { at: u64, interface: u32 },
    #[error("block at {at}: packet data of {captured} bytes do not fit the block")]
    PacketTooLong { at: u64, captured: u32 },
    #[error("block at {at}: more than {MAX_INTERFACES} interfaces in one section")]
    TooManyInterfaces { at: u64 },
    #[error("block at {at}: option {code} is malformed")]
    BadOption { at: u64, code: u16 },
    #[error("block at {at}: time stamp is out of range")]
    BadTimestamp { at: u64 },
    #[error("the file ends inside the block at {at}")]
    Incomplete { at: u64 },
}
