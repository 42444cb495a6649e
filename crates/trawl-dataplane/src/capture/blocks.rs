//! Packets on their way into a file: pcapng blocks of which the bytes of held packets are still where they were
//! received.

use crate::batch::Held;
use crate::pcapng;
use crate::queue::Frame;
use crate::ring::memory::Memory;

/// Bytes after which blocks go to the writer.
pub(crate) const FULL_BYTES: usize = 256 << 10;
/// Buffers after which they go there too.
const FULL_HELD: usize = 1024;

/// What is in a file, or in a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub packets: u64,
    pub truncated: u64,
    pub first_ns: Option<u64>,
    pub last_ns: Option<u64>,
}

impl Contents {
    fn count(&mut self, stamp_ns: u64, truncated: bool) {
        self.packets += 1;
        self.truncated += u64::from(truncated);
        self.first_ns.get_or_insert(stamp_ns);
        self.last_ns = Some(stamp_ns);
    }

    /// Adds what comes behind it; the stamps of several queues interleave.
    pub fn add(&mut self, more: Self) {
        self.packets += more.packets;
        self.truncated += more.truncated;
        self.first_ns = [self.first_ns, more.first_ns].into_iter().flatten().min();
        self.last_ns = self.last_ns.max(more.last_ns);
    }
}

/// Whole blocks of one queue, in order.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The capture.
    pub owner: u64,
    /// The receive thread that they go back to.
    pub queue: usize,
    /// Blocks without the bytes of held packets.
    pub bytes: Vec<u8>,
    /// Buffers of held packets.
    pub held: Vec<Held>,
    /// Where in `bytes` each of them belongs.
    pub places: Vec<u32>,
    /// Bytes in `held`.
    pub payload: usize,
    /// Where those are; present when there are any.
    pub memory: Option<Memory>,
    pub contents: Contents,
}

impl Blocks {
    /// Whether they should be written now.
    pub fn is_full(&self) -> bool {
        self.bytes.len() + self.payload >= FULL_BYTES || self.held.len() >= FULL_HELD
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Empties them for new use. What was held must have gone back before.
    pub fn clear(&mut self) {
        debug_assert!(self.held.is_empty(), "buffers were not given back");
        self.bytes.clear();
        self.places.clear();
        self.payload = 0;
        self.memory = None;
        self.contents = Contents::default();
    }

    /// Takes a packet by copy.
    #[inline]
    pub fn copy(&mut self, frame: &Frame<'_>, kept: usize, queue: Option<u32>) {
        pcapng::packet_head(&mut self.bytes, frame.stamp_ns, kept, frame.wire_length, queue);
        frame.copy(kept, &mut self.bytes);
        pcapng::packet_tail(&mut self.bytes, kept, queue);
        self.contents
            .count(frame.stamp_ns, kept < frame.wire_length as usize);
    }

    /// Takes a packet by reference; false, and nothing done, when its ring cannot do that.
    #[inline]
    pub fn hold(&mut self, frame: &Frame<'_>, kept: usize, queue: Option<u32>, memory: &Memory) -> bool {
        if !frame.hold(kept, &mut self.held) {
            return false;
        }
        pcapng::packet_head(&mut self.bytes, frame.stamp_ns, kept, frame.wire_length, queue);
        self.places.resize(self.held.len(), self.bytes.len() as u32);
        pcapng::packet_tail(&mut self.bytes, kept, queue);
        self.payload += kept;
        self.memory.get_or_insert_with(|| memory.clone());
        self.contents
            .count(frame.stamp_ns, kept < frame.wire_length as usize);
        true
    }

    /// Everything in the order of the file.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        let held = self.held.iter().zip(&self.places).flat_map(move |(held, place)| {
            let own = &self.bytes[from..*place as usize];
            from = *place as usize;
            [own, self.memory.as_ref().map_or(&[][..], |m| m.bytes(held))]
        });
        let rest = self.places.last().map_or(0, |place| *place as usize);
        held.chain(std::iter::once(&self.bytes[rest..]))
    }
}
