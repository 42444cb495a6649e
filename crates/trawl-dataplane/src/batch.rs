//! Frames on their way from a receive thread to whoever writes or sends them.

use crate::ring::memory::Memory;

/// A buffer that stays where it was received. Not `Clone`: it goes back to its queue exactly once.
#[derive(Debug, PartialEq, Eq)]
pub struct Held {
    memory: u32,
    offset: u64,
    length: u32,
}

impl Held {
    pub(crate) fn new(memory: u32, offset: u64, length: u32) -> Self {
        Self {
            memory,
            offset,
            length,
        }
    }

    /// Which memory it is in.
    pub(crate) fn memory(&self) -> u32 {
        self.memory
    }

    /// Where its bytes begin in that memory.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that are kept of it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether nothing of it is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// Where the bytes of a packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In [`Batch::copied`], from this offset on.
    Copied(usize),
    /// In this many of [`Batch::held`], from this index on.
    Held(usize, usize),
}

/// One packet of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Nanoseconds since the epoch.
    pub stamp_ns: u64,
    /// Length on the wire.
    pub wire_length: u32,
    /// Bytes kept.
    pub kept: u32,
    /// Where they are.
    pub place: Place,
}

/// Packets of one queue, in order. Travels to the writer or sender, and back to the receive thread to be used again.
#[derive(Debug)]
pub struct Batch {
    /// The receive queue that they came from.
    pub queue: u32,
    /// What is in it.
    pub packets: Vec<Packet>,
    /// Bytes of packets that were copied.
    pub copied: Vec<u8>,
    /// Buffers of packets that stayed where they were.
    pub held: Vec<Held>,
    /// Where those are.
    pub memory: Memory,
}

impl Batch {
    /// The bytes of a packet, part by part.
    pub fn parts<'a>(&'a self, packet: &Packet) -> impl Iterator<Item = &'a [u8]> {
        let (copied, held) = match packet.place {
            Place::Copied(at) => (Some(&self.copied[at..at + packet.kept as usize]), &[][..]),
            Place::Held(at, parts) => (None, &self.held[at..at + parts]),
        };
        copied
            .into_iter()
            .chain(held.iter().map(|h| self.memory.bytes(h)))
    }
}
