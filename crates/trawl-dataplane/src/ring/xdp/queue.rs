//! One AF_XDP queue: received buffers stay where they are until the kernel's reserve needs them back.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use xsk_rs::FrameDesc;

use super::super::bpf::Counts;
use super::super::holds::Holds;
use super::super::log::{Descriptor, Log};
use super::super::memory::Memory;
use super::super::nic_losses::NicLosses;
use super::super::timeline::Timeline;
use super::plan::{BATCH, Plan};
use super::region::Region;
use super::socket::{Bound, Closer, Rings, poke, socket_fd};
use crate::batch::Held;
use crate::clock;
use crate::queue::{Arrived, Frame, HistoryState, Holder, Losses, Position, Queue, Visited};

/// The reserve lasts this long per buffer at 30 million frames a second.
const REST_PER_BUFFER: Duration = Duration::from_nanos(30);
/// Buffers between the one that is handed over and the one that is fetched into the cache: frames of a history lie in
/// memory that nobody has touched for long. What lies behind the end is an old descriptor, and harmless.
const AHEAD: u64 = 8;
const LAG_NS: u64 = 10_000_000;

impl Descriptor for FrameDesc {
    fn length(&self) -> u32 {
        self.lengths().data() as u32
    }

    fn goes_on(&self) -> bool {
        self.has_more_frames()
    }
}

/// An AF_XDP queue.
pub struct XdpQueue {
    queue: u32,
    // The rings go before the closer, and both before the memory, whose descriptor they use.
    rings: Rings,
    _closer: Closer,
    region: Region,
    memory: Memory,
    buffers: Box<[FrameDesc]>,
    buffer_shift: u32,
    reserve: usize,
    history: usize,
    with_kernel: usize,
    free: Vec<FrameDesc>,
    log: Log<FrameDesc>,
    holds: Holds,
    stamps: Stamps,
    timeline: Timeline,
    opened_ns: u64,
    counts: Arc<Counts>,
    nic: Option<NicLosses>,
    busy_poll: bool,
}

/// Where a frame's stamp is, in the monotonic clock.
#[derive(Debug)]
enum Stamps {
    /// No frame has come yet.
    Unknown,
    /// Before the frame, by the program.
    InFrame,
    /// The driver gives the program no room: when the frames from a number on were found in the ring.
    Marks(VecDeque<(u64, u64)>),
}

impl std::fmt::Debug for XdpQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("XdpQueue")
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

impl XdpQueue {
    pub(super) fn new(queue: u32, bound: Bound, plan: &Plan, counts: Arc<Counts>) -> Self {
        let Bound {
            rings,
            closer,
            memory,
            region,
            buffers,
            busy_poll,
        } = bound;
        Self {
            queue,
            rings,
            _closer: closer,
            region,
            memory,
            buffer_shift: plan.bytes.trailing_zeros(),
            reserve: plan.reserve,
            history: plan.history,
            with_kernel: plan.reserve,
            free: buffers[..plan.history].to_vec(),
            log: Log::new(buffers.len(), plan.several_buffers),
            holds: Holds::new(buffers.len()),
            buffers,
            stamps: Stamps::Unknown,
            timeline: Timeline::new(),
            opened_ns: clock::realtime_ns(),
            counts,
            nic: None,
            busy_poll,
        }
    }

    /// Makes this the queue that tells what its NIC lost.
    pub(super) fn report_nic(&mut self, losses: NicLosses) {
        self.nic = Some(losses);
    }

    fn consume(&mut self) -> Arrived {
        let mut arrived = Arrived::default();
        let mut room = BATCH;
        while room > 0 {
            let vacant = self.log.vacant(room);
            // SAFETY: the socket was made on this memory, so its descriptors belong to it.
            let received = unsafe { self.rings.rx.consume(vacant) };
            if received == 0 {
                break;
            }
            let more = self.log.commit(received);
            arrived.frames += more.frames;
            arrived.bytes += more.bytes;
            room -= received;
        }
        self.with_kernel -= BATCH - room;
        arrived
    }

    /// Gives the kernel what its reserve lacks: buffers that nobody needs, then the oldest of the history.
    fn top_up(&mut self) {
        let spare = self.free.len() - self.free.len().min(self.reserve - self.with_kernel);
        let given = give(&mut self.rings, &self.free[spare..]);
        self.free.truncate(self.free.len() - given);
        self.with_kernel += given;
        while self.with_kernel < self.reserve {
            let oldest = self.log.oldest();
            let wanted = oldest.len().min(self.reserve - self.with_kernel);
            // A stretch without held buffers, or else one held buffer to put aside.
            let clear = match self.holds.held() {
                0 => wanted,
                _ => {
                    let held = |d: &FrameDesc| self.holds.is_held(d.addr() >> self.buffer_shift);
                    oldest[..wanted].iter().position(held).unwrap_or(wanted)
                }
            };
            let done = if clear > 0 || wanted == 0 {
                let given = give(&mut self.rings, &oldest[..clear]);
                self.with_kernel += given;
                given
            } else {
                usize::from(self.holds.park(oldest[0].addr() >> self.buffer_shift))
            };
            if done == 0 {
                break;
            }
            self.log.forget(done);
        }
        self.forget_torn();
    }

    /// The rest of a frame whose first buffers are gone is of no use.
    fn forget_torn(&mut self) {
        while self.log.torn() {
            if !self.forget_oldest() {
                break;
            }
        }
    }

    /// Lets go of one buffer, now or when it is held no more; false when there is none.
    fn forget_oldest(&mut self) -> bool {
        let Some(oldest) = self.log.oldest().first().copied() else {
            return false;
        };
        if !self.holds.park(oldest.addr() >> self.buffer_shift) {
            self.free.push(oldest);
        }
        self.log.forget(1);
        true
    }

    fn mark(&mut self, first: u64, now: u64) {
        if let Stamps::Unknown = self.stamps {
            let address = self.log.buffer(self.log.slot_of(first)).addr();
            // SAFETY: the frame was just received. Its memory was zero when it was mapped.
            let stamped = unsafe { self.region.stamp(address) }.is_some();
            self.stamps = if stamped {
                Stamps::InFrame
            } else {
                Stamps::Marks(VecDeque::new())
            };
        }
        if let Stamps::Marks(marks) = &mut self.stamps {
            marks.push_back((first, now));
            while marks
                .get(1)
                .is_some_and(|(number, _)| *number <= self.log.first())
            {
                marks.pop_front();
            }
        }
    }

    /// The monotonic stamp of a held frame; 0 when it has none.
    fn stamp(&self, number: u64, slot: u64) -> u64 {
        match &self.stamps {
            Stamps::Unknown => 0,
            // SAFETY: the frame is in the log, hence not with the kernel.
            Stamps::InFrame => unsafe { self.region.stamp(self.log.buffer(slot).addr()) }.unwrap_or(0),
            Stamps::Marks(marks) => {
                let behind = marks.partition_point(|(first, _)| *first <= number);
                marks.get(behind.saturating_sub(1)).map_or(0, |(_, at)| *at)
            }
        }
    }

    fn stamp_of(&self, number: u64) -> u64 {
        self.stamp(number, self.log.slot_of(number))
    }

    /// The stamp of a frame in a walk, not less than the one before; what had to be corrected stays corrected.
    fn stamp_after(&mut self, floor: u64, number: u64, slot: u64) -> u64 {
        let stamp = self.stamp(number, slot);
        if stamp < floor && matches!(self.stamps, Stamps::InFrame) {
            // SAFETY: the frame is in the log, hence not with the kernel.
            unsafe { self.region.set_stamp(self.log.buffer(slot).addr(), floor) };
        }
        stamp.max(floor)
    }
}

/// Buffers of one visit, used again for each frame.
#[derive(Default)]
struct Parts<'a> {
    offsets: Vec<u64>,
    bytes: Vec<&'a [u8]>,
}

impl Queue for XdpQueue {
    fn receive(&mut self) -> io::Result<Arrived> {
        let now = clock::monotonic_ns();
        // Also when nothing comes: what comes after a step of the clock is stamped behind it then.
        self.timeline.keep_up(now);
        let first = self.log.next();
        let mut arrived = self.consume();
        if arrived == Arrived::default() && self.busy_poll {
            poke(socket_fd(&self.rings.rx));
            arrived = self.consume();
        }
        if arrived.frames > 0 {
            self.mark(first, now);
        }
        self.top_up();
        if self.rings.fill.needs_wakeup() {
            poke(socket_fd(&self.rings.rx));
        }
        Ok(arrived)
    }

    fn end(&self) -> Position {
        self.log.end()
    }

    fn seek(&mut self, stamp_ns: u64) -> Position {
        let number = self
            .log
            .first_that(|number| self.timeline.real(self.stamp_of(number)) >= stamp_ns);
        let mut position = Position { number, hint: 0 };
        self.log.find(&mut position);
        position
    }

    fn visit(&mut self, at: &mut Position, limit: u64, each: &mut impl FnMut(&Frame<'_>)) -> Visited {
        let (mut slot, overtaken) = self.log.find(at);
        let mut floor = match at.number > self.log.first() {
            true => self.stamp_of(at.number - 1),
            false => 0,
        };
        let mut parts = Parts::default();
        let mut frames = 0;
        while frames < limit && slot < self.log.whole() {
            self.region.prefetch(self.log.buffer(slot + AHEAD).addr());
            floor = self.stamp_after(floor, at.number, slot);
            slot = self.visit_one(slot, floor, &mut parts, each);
            frames += 1;
            at.number += 1;
        }
        at.hint = slot + 1;
        Visited { frames, overtaken }
    }

    fn begin_anew(&mut self) {
        while self.forget_oldest() {}
        if let Stamps::Marks(marks) = &mut self.stamps {
            marks.clear();
        }
        self.timeline = Timeline::new();
        self.opened_ns = clock::realtime_ns();
    }

    fn take_back(&mut self, held: &mut Vec<Held>) {
        for held in held.drain(..) {
            debug_assert_eq!(held.memory(), self.memory.id());
            let buffer = held.offset() as usize >> self.buffer_shift;
            if held.memory() == self.memory.id() && self.holds.release(buffer) {
                self.free.push(self.buffers[buffer]);
            }
        }
    }

    fn may_hold(&self) -> usize {
        self.history / 2
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn history(&mut self) -> HistoryState {
        let first = self.log.first();
        let complete_from_ns = if first == 0 {
            self.opened_ns
        } else if self.log.frames() == 0 {
            clock::realtime_ns()
        } else {
            let oldest = self.timeline.real(self.stamp_of(first));
            // With marks, the frames before it may have the same stamp.
            oldest + u64::from(matches!(self.stamps, Stamps::Marks(_)))
        };
        HistoryState {
            packets: self.log.frames(),
            budget_bytes: (self.history << self.buffer_shift) as u64,
            complete_from_ns,
        }
    }

    fn newest_ns(&mut self) -> Option<u64> {
        (self.log.frames() > 0).then(|| self.timeline.real(self.stamp_of(self.log.next() - 1)))
    }

    fn losses(&mut self) -> io::Result<Losses> {
        let s = self.rings.rx.fd().xdp_statistics()?;
        // In copy mode a frame without a free buffer counts as dropped. `rx_fill_ring_empty_descs` counts how often
        // the fill ring was found empty: in copy mode the same frames once more, and with a zero-copy driver also
        // attempts to fill its own ring ahead, which cost no frame; what that costs shows in the NIC's counters.
        Ok(Losses {
            ring: Some(s.rx_dropped() + s.rx_ring_full()),
            nic: self.nic.as_mut().and_then(NicLosses::read),
            offered: self.counts.of(self.queue).ok(),
        })
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        socket_fd(&self.rings.rx)
    }

    fn clock_source(&self) -> &'static str {
        match self.stamps {
            Stamps::Marks(_) => "kernel-monotonic-at-receive",
            _ => "kernel-monotonic-in-xdp",
        }
    }

    fn rest(&self) -> Option<Duration> {
        (!self.busy_poll).then(|| REST_PER_BUFFER * self.reserve as u32)
    }

    fn lag_ns(&self) -> u64 {
        LAG_NS
    }
}

impl XdpQueue {
    /// Hands over the frame in a slot; the slot behind it.
    fn visit_one<'a>(
        &mut self,
        slot: u64,
        stamp: u64,
        parts: &mut Parts<'a>,
        each: &mut impl FnMut(&Frame<'_>),
    ) -> u64 {
        parts.offsets.clear();
        parts.bytes.clear();
        let mut behind = slot;
        loop {
            let buffer = self.log.buffer(behind);
            behind += 1;
            let (address, length) = (buffer.addr(), buffer.length());
            parts.offsets.push(address as u64);
            // SAFETY: the buffer is in the log, so it is not with the kernel, and the parts are cleared before
            // anything is given back.
            parts
                .bytes
                .push(unsafe { self.region.bytes(address, length as usize) });
            if !buffer.goes_on() || behind == self.log.whole() {
                break;
            }
        }
        let may_hold = self.holds.held() + parts.offsets.len() <= self.may_hold();
        let frame = Frame {
            bytes: parts.bytes[0],
            more: &parts.bytes[1..],
            wire_length: parts.bytes.iter().map(|p| p.len() as u32).sum(),
            stamp_ns: self.timeline.real(stamp),
            holder: may_hold.then(|| Holder {
                memory: self.memory.id(),
                offsets: &parts.offsets,
                times: Cell::new(0),
            }),
        };
        each(&frame);
        let times = frame.holder.map_or(0, |h| h.times.get());
        if times > 0 {
            for offset in &parts.offsets {
                self.holds.hold(*offset as usize >> self.buffer_shift, times);
            }
        }
        behind
    }
}

/// All of them, or none when the fill ring has no room: then the next call tries again.
fn give(rings: &mut Rings, buffers: &[FrameDesc]) -> usize {
    // SAFETY: the caller gives up what was given: those buffers are in no log then, and held by nobody.
    unsafe { rings.fill.produce(buffers) }
}
