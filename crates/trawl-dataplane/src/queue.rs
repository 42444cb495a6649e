//! What every receive queue offers: frames that stay where they were received, as long as memory allows.
//!
//! The frames of a queue form one sequence, numbered from 0. The newest ones are *held*: the history. The oldest are
//! given back to the kernel when it needs room, not earlier. Everything that reads frames (a capture, an analyzer
//! feed) is a [`Position`] that moves through that sequence; a capture that began in the past and one that began
//! now differ only in where they started, so there is no seam at which a frame could be lost or seen twice.

use std::cell::Cell;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::batch::Held;

/// A frame in a receive ring.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The bytes from the Ethernet header on, VLAN tags in their places. Of a frame that lies in several buffers,
    /// those in the first: filters see these.
    pub bytes: &'a [u8],
    /// The bytes in the other buffers, in order; almost always none.
    pub more: &'a [&'a [u8]],
    /// Length on the wire, without checksum; the bytes may be fewer.
    pub wire_length: u32,
    /// When it was received, in nanoseconds since the epoch; never less than that of the frame before it.
    pub stamp_ns: u64,
    /// Present when the ring lets frames be held beyond [`Queue::visit`].
    pub holder: Option<Holder<'a>>,
}

/// Where a held frame is, and how often it was held during this visit.
#[derive(Debug)]
pub struct Holder<'a> {
    /// Which memory, so that a [`Held`] of one ring is never read in another.
    pub(crate) memory: u32,
    /// Offset of each buffer of the frame in the memory, as many as `1 + more.len()`.
    pub(crate) offsets: &'a [u64],
    /// Counted up by [`Frame::hold`]; the ring takes it over after the visitor returns.
    pub(crate) times: Cell<u32>,
}

impl Frame<'_> {
    /// Bytes there are, in all buffers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.more.iter().map(|part| part.len()).sum::<usize>()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the first `kept` bytes.
    pub fn copy(&self, kept: usize, out: &mut Vec<u8>) {
        let mut left = kept;
        for part in std::iter::once(&self.bytes).chain(self.more) {
            let take = part.len().min(left);
            out.extend_from_slice(&part[..take]);
            left -= take;
        }
    }

    /// Keeps the first `kept` bytes where they are, as one [`Held`] per buffer, until they come back through
    /// [`Queue::take_back`]. False, and nothing done, when this ring cannot do that: then [`Frame::copy`] is the way.
    #[must_use]
    pub fn hold(&self, kept: usize, out: &mut Vec<Held>) -> bool {
        let Some(holder) = &self.holder else { return false };
        let mut left = kept;
        let parts = std::iter::once(&self.bytes).chain(self.more);
        for (part, offset) in parts.zip(holder.offsets) {
            let length = part.len().min(left);
            left -= length;
            // A buffer of which nothing is kept is still held: all buffers of a frame live and die together.
            out.push(Held::new(holder.memory, *offset, length as u32));
        }
        holder.times.set(holder.times.get() + 1);
        true
    }
}

/// A place in the sequence of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Number of the next frame.
    pub number: u64,
    /// For the ring alone: where that frame is; 0 is "look".
    pub(crate) hint: u64,
}

/// What [`Queue::receive`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Frames taken into the history.
    pub frames: u64,
    /// Their length on the wire.
    pub bytes: u64,
}

/// What [`Queue::visit`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visited {
    /// Frames that were handed over.
    pub frames: u64,
    /// Frames that had been given back to the kernel before this position came to them.
    pub overtaken: u64,
}

/// What is held now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryState {
    /// Frames.
    pub packets: u64,
    /// Memory that the history may use, in bytes.
    pub budget_bytes: u64,
    /// From this moment on every frame that reached the queue is held, in nanoseconds since the epoch.
    pub complete_from_ns: u64,
}

/// Totals of frames that never came out of the ring, since it was opened. `None` is "not measured".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Ring full, or no free frame to receive into.
    pub ring: Option<u64>,
    /// Lost in the NIC or driver.
    pub nic: Option<u64>,
    /// Frames that the XDP program of this queue has seen: an independent count, for the balance.
    pub offered: Option<u64>,
}

/// One receive queue of an interface, owned by the thread that serves it.
pub trait Queue: Send + 'static {
    /// Takes what has arrived into the history, up to a bounded amount, and gives the kernel back as much as it
    /// needs. Never waits.
    ///
    /// # Errors
    /// What the system says when the ring is broken for now.
    fn receive(&mut self) -> io::Result<Arrived>;

    /// Where the next frame to arrive will be.
    fn end(&self) -> Position;

    /// The first held frame that is stamped at or after this moment; [`Queue::end`] when there is none.
    fn seek(&mut self, stamp_ns: u64) -> Position;

    /// Hands over held frames in order, at most `limit`, and moves the position behind the last one. A position
    /// whose frames are gone moves to the oldest one held.
    fn visit(&mut self, at: &mut Position, limit: u64, each: &mut impl FnMut(&Frame<'_>)) -> Visited;

    /// Gives up the whole history, because the clock was set back: stamps from before and after cannot be compared.
    /// From now on they follow the clock again. What is held of frames stays held.
    fn begin_anew(&mut self);

    /// Takes back what was held of frames of this queue.
    fn take_back(&mut self, held: &mut Vec<Held>);

    /// Buffers that may be held at a time without receiving ever running short; 0 when this ring has its frames copied.
    fn may_hold(&self) -> usize;

    /// The memory of the frames, for those who read held ones on other threads.
    fn memory(&self) -> crate::ring::memory::Memory;

    /// What is held now.
    fn history(&mut self) -> HistoryState;

    /// Stamp of the newest frame.
    fn newest_ns(&mut self) -> Option<u64>;

    /// Reads the loss counters.
    ///
    /// # Errors
    /// What the system says.
    fn losses(&mut self) -> io::Result<Losses>;

    /// Becomes readable when frames arrive.
    fn poll_fd(&self) -> BorrowedFd<'_>;

    /// Where stamps come from.
    fn clock_source(&self) -> &'static str;

    /// How long to rest while frames keep coming: a ring that wakes its reader for every single frame costs both
    /// sides more than the frame itself. Far below what the ring can hold.
    fn rest(&self) -> Option<Duration> {
        None
    }

    /// How long after its stamp a frame may stay invisible, in nanoseconds.
    fn lag_ns(&self) -> u64;
}
