//! Packets out of pcapng and pcap files, whatever their byte order and clock; reads any bytes without trust.

mod pcap;
mod pcapng;

use std::io::{self, Read};

/// Largest block or record that is read.
pub const MAX_BLOCK: u32 = 16 << 20;

/// Why a file cannot be read on. Offsets are bytes from its start.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Neither magic number.
    #[error("this is neither a pcapng nor a pcap file")]
    Unknown,
    /// The file ends within something.
    #[error("the file ends inside the block or record at byte {0}")]
    Cut(u64),
    /// A length that cannot be.
    #[error("the block or record at byte {at} has a length of {length}, which cannot be")]
    Length {
        /// Where it begins.
        at: u64,
        /// What it says.
        length: u32,
    },
    /// Fields that contradict each other or the format.
    #[error("the block at byte {at} is broken: {what}")]
    Broken {
        /// Where it begins.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The system's own words.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
}

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Which interface of its section it came in by; always 0 in pcap.
    pub interface: u32,
    /// `epb_queue`, when there.
    pub queue: Option<u32>,
    /// Nanoseconds since the epoch, when the block carries a stamp.
    pub stamp_ns: Option<u64>,
    /// Length on the wire.
    pub wire_length: u32,
    /// What is there of it.
    pub bytes: &'a [u8],
}

/// How numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    /// `at + 2` must lie within `bytes`.
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let two = [bytes[at], bytes[at + 1]];
        match self {
            Self::Little => u16::from_le_bytes(two),
            Self::Big => u16::from_be_bytes(two),
        }
    }

    /// `at + 4` must lie within `bytes`.
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Self::Little => u32::from_le_bytes(four),
            Self::Big => u32::from_be_bytes(four),
        }
    }
}

/// The bytes of a file, with the place in it.
#[derive(Debug)]
pub(crate) struct Source<R> {
    reader: R,
    /// Bytes read so far.
    at: u64,
}

impl<R: Read> Source<R> {
    /// Fills the buffer; `false` when the file ends before its first byte. `start` is where the block began.
    fn fill(&mut self, buffer: &mut [u8], start: u64) -> Result<bool, FileError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(FileError::Cut(start)),
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.at += filled as u64;
        Ok(true)
    }

    /// As [`Source::fill`], within a block, where no end is in order.
    fn fill_all(&mut self, buffer: &mut [u8], start: u64) -> Result<(), FileError> {
        if buffer.is_empty() || self.fill(buffer, start)? {
            Ok(())
        } else {
            Err(FileError::Cut(start))
        }
    }
}

#[derive(Debug)]
enum Format<R> {
    Pcapng(pcapng::Reader<R>),
    Pcap(pcap::Reader<R>),
}

/// Reads packets one after another.
#[derive(Debug)]
pub struct Packets<R>(Format<R>);

impl<R: Read> Packets<R> {
    /// Looks at the first bytes.
    ///
    /// # Errors
    /// Neither format, or a broken header.
    pub fn new(reader: R) -> Result<Self, FileError> {
        let mut source = Source { reader, at: 0 };
        let mut magic = [0; 4];
        source.fill_all(&mut magic, 0).map_err(|error| match error {
            FileError::Cut(_) => FileError::Unknown,
            other => other,
        })?;
        if magic == pcapng::MAGIC {
            return Ok(Self(Format::Pcapng(pcapng::Reader::new(source)?)));
        }
        Ok(Self(Format::Pcap(pcap::Reader::new(source, magic)?)))
    }

    /// The next packet; `None` at the end of the file.
    ///
    /// # Errors
    /// The file is broken here; what came before was whole.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, FileError> {
        match &mut self.0 {
            Format::Pcapng(reader) => reader.next_packet(),
            Format::Pcap(reader) => reader.next_packet(),
        }
    }
}

#[cfg(test)]
mod tests;
