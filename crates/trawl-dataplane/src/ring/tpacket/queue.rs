//! One `TPACKET_V3` ring: filled blocks are held back until the kernel needs them.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::super::device::{self, set_option};
use super::super::memory::Memory;
use super::super::nic_losses::NicLosses;
use super::block::{self, Packet, RESERVE};
use super::blocks::{Blocks, hint};
use super::{BLOCK, open_socket};
use crate::batch::Held;
use crate::clock;
use crate::queue::{Arrived, Frame, HistoryState, Losses, Position, Queue, Visited};

/// A block with frames is handed over one to two such timeouts after its first one.
const RETIRE_MS: u32 = 20;
pub(super) const BLOCKS_PER_CALL: usize = 32;
/// Far below what the reserve lasts, and it saves a wake-up for each block.
const REST: Duration = Duration::from_micros(500);

/// An AF_PACKET queue.
#[derive(Debug)]
pub struct PacketQueue {
    fd: OwnedFd,
    arrivals: Arrivals,
    map: Map,
    memory: Memory,
    blocks: Blocks,
    /// Blocks that may be held.
    history: usize,
    received: u64,
    dropped: u64,
    opened_ns: u64,
    nic: Option<NicLosses>,
}

/// The mapped ring.
#[derive(Debug)]
struct Map {
    base: NonNull<u8>,
    blocks: usize,
}

// SAFETY: the mapping belongs to this value alone and may be used from whichever thread holds it.
unsafe impl Send for Map {}

impl Map {
    fn new(fd: BorrowedFd<'_>, blocks: usize) -> io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a fresh mapping at an address of the kernel's choice; nothing else uses it.
        let map = unsafe { mmap(std::ptr::null_mut(), BLOCK * blocks, protection, flags, fd, 0) }?;
        let base = NonNull::new(map.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { base, blocks })
    }

    fn place(&self, number: u64) -> usize {
        (number % self.blocks as u64) as usize * BLOCK
    }

    /// Whose a block is. `TP_STATUS_USER` is set when it is ours.
    fn status(&self, number: u64) -> &AtomicU32 {
        let field =
            offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);
        // SAFETY: the word lies inside the mapping; it is aligned, and both sides of the ring use it as the
        // hand-over flag.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(self.place(number) + field).cast()) }
    }

    /// The bytes of a block.
    ///
    /// # Safety
    /// The block is ours: its status was read as such and has not been given back.
    unsafe fn block(&mut self, number: u64) -> &mut [u8] {
        // SAFETY: inside the mapping, not touched by the kernel while it is ours, and this value is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(self.place(number)), BLOCK) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made in `new`, and nothing borrows from it any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), BLOCK * self.blocks) };
    }
}

/// The socket itself is readable for as long as the newest block is held back. Watched for edges, it is readable
/// when another one was filled.
#[derive(Debug)]
struct Arrivals(OwnedFd);

impl Arrivals {
    fn new(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let watch = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(
            &watch,
            socket,
            EventData::new_u64(0),
            EventFlags::IN | EventFlags::ET,
        )?;
        Ok(Self(watch))
    }

    /// Forgets the edges up to now; what the socket has to say beside them.
    fn clear(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut event = [epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        }];
        let now = Timespec::default();
        let count = epoll::wait(&self.0, &mut event[..], Some(&now))?;
        if count > 0 && { event[0].flags }.contains(EventFlags::ERR) {
            return match rustix::net::sockopt::socket_error(socket)? {
                // A link that is down is the link's problem and passes with it.
                Err(e) if e != rustix::io::Errno::NETDOWN => Err(e.into()),
                _ => Ok(()),
            };
        }
        Ok(())
    }
}

impl PacketQueue {
    /// Sets up the ring of a socket that is not bound yet.
    pub(super) fn new(fd: OwnedFd, history: usize, reserve: usize) -> io::Result<Self> {
        let blocks = history + reserve;
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        set_option(
            fd.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_RESERVE,
            &(RESERVE as u32),
        )?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: BLOCK as u32,
            tp_frame_nr: blocks as u32,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let map = Map::new(fd.as_fd(), blocks)?;
        Ok(Self {
            arrivals: Arrivals::new(fd.as_fd())?,
            fd,
            map,
            memory: Memory::none(),
            blocks: Blocks::default(),
            history,
            received: 0,
            dropped: 0,
            opened_ns: clock::realtime_ns(),
            nic: None,
        })
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Makes this the queue that tells what its NIC lost.
    pub(super) fn report_nic(&mut self, losses: NicLosses) {
        self.nic = Some(losses);
    }

    /// From now on frames are taken.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.read_statistics()?;
        (self.received, self.dropped) = (0, 0);
        self.opened_ns = clock::realtime_ns();
        open_socket(self.fd.as_fd())
    }

    /// The kernel's counts start anew with each reading; the first includes the second.
    fn read_statistics(&mut self) -> io::Result<()> {
        let stats: [u32; 3] = device::get_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        self.received += u64::from(stats[0]);
        self.dropped += u64::from(stats[1]);
        Ok(())
    }

    /// Takes in what is filled, block by block.
    fn take_filled(&mut self) -> Arrived {
        let mut arrived = Arrived::default();
        for _ in 0..BLOCKS_PER_CALL {
            // When all blocks are held, the next one is the oldest again, and it is ours but not new.
            if self.blocks.len() == self.map.blocks
                || self.map.status(self.blocks.tail()).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0
            {
                break;
            }
            let more = self.take();
            arrived.frames += more.frames;
            arrived.bytes += more.bytes;
        }
        arrived
    }

    /// Takes in the block at the tail, which must be ours.
    fn take(&mut self) -> Arrived {
        let number = self.blocks.tail();
        // SAFETY: the caller saw that the block is ours, and it is not among those given back.
        let block = unsafe { self.map.block(number) };
        let Some(summary) = block::summary(block) else {
            return Arrived::default();
        };
        let arrived = Arrived {
            frames: u64::from(summary.frames),
            bytes: block::wire_bytes(block, &summary),
        };
        self.blocks.push(arrived.frames, summary.first, summary.last_ns);
        arrived
    }

    /// Gives the oldest blocks back, so that only so many are kept.
    fn give_back(&mut self, kept: usize) {
        while self.blocks.len() > kept
            && let Some(number) = self.blocks.pop()
        {
            self.map
                .status(number)
                .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
    }

    /// Walks through the frames of a held block from a place in it (0: its first) and number on, while `each` says
    /// so; where it stopped.
    fn walk(
        &mut self,
        number: u64,
        from: (usize, u64),
        each: &mut impl FnMut(&Packet, &[u8]) -> bool,
    ) -> Option<(usize, u64)> {
        let filled = self.blocks.get(number)?;
        // SAFETY: a block that is held is ours.
        let block = unsafe { self.map.block(number) };
        let (mut place, mut frame) = from;
        let behind = filled.first + filled.frames;
        // Without a place, it is found by counting.
        let mut skip = 0;
        if place == 0 {
            place = filled.place;
            skip = frame - filled.first;
        }
        while frame < behind {
            let mut packet = Packet::read(block, place)?;
            if place >= filled.mended.0 {
                packet.mend(block, filled.mended.1);
                let next = if packet.next == 0 {
                    usize::MAX
                } else {
                    place + packet.next
                };
                filled.mended = (next, packet.stamp_ns);
            }
            if skip > 0 {
                skip -= 1;
            } else if each(&packet, block) {
                frame += 1;
            } else {
                break;
            }
            if packet.next == 0 {
                // The last one: the place is of no use any more.
                frame = behind;
                break;
            }
            place += packet.next;
        }
        Some((place, frame))
    }

    fn stamp_of_oldest(&mut self) -> Option<u64> {
        let mut at = Position {
            number: self.blocks.first(),
            hint: 0,
        };
        let mut stamp = None;
        self.visit(&mut at, 1, &mut |frame| stamp = Some(frame.stamp_ns));
        stamp
    }
}

impl Queue for PacketQueue {
    fn receive(&mut self) -> io::Result<Arrived> {
        let mut arrived = self.take_filled();
        if arrived == Arrived::default() {
            self.arrivals.clear(self.fd.as_fd())?;
            // What was filled before that has no edge any more.
            arrived = self.take_filled();
        }
        self.give_back(self.history);
        Ok(arrived)
    }

    fn end(&self) -> Position {
        self.blocks.end()
    }

    fn seek(&mut self, stamp_ns: u64) -> Position {
        let number = self.blocks.seek(stamp_ns);
        let Some(first) = self.blocks.get(number).map(|b| b.first) else {
            return self.end();
        };
        let found = self.walk(number, (0, first), &mut |packet, _| packet.stamp_ns < stamp_ns);
        let (place, frame) = found.unwrap_or((0, first));
        Position {
            number: frame,
            hint: hint(number, place),
        }
    }

    fn visit(&mut self, at: &mut Position, limit: u64, each: &mut impl FnMut(&Frame<'_>)) -> Visited {
        let (mut number, mut place, overtaken) = self.blocks.find(at);
        let mut left = limit;
        while left > 0 {
            let walked = self.walk(number, (place, at.number), &mut |packet, block| {
                if left == 0 {
                    return false;
                }
                left -= 1;
                each(&Frame {
                    bytes: packet.bytes(block),
                    more: &[],
                    wire_length: packet.length,
                    stamp_ns: packet.stamp_ns,
                    holder: None,
                });
                true
            });
            let Some((behind, frame)) = walked else { break };
            (place, at.number) = (behind, frame);
            let Some(end) = self.blocks.get(number).map(|b| b.first + b.frames) else {
                break;
            };
            if at.number >= end {
                (number, place) = (number + 1, 0);
            }
        }
        at.hint = hint(number, place);
        Visited {
            frames: limit - left,
            overtaken,
        }
    }

    fn begin_anew(&mut self) {
        self.give_back(0);
        self.blocks.begin_anew();
        self.opened_ns = clock::realtime_ns();
    }

    fn take_back(&mut self, held: &mut Vec<Held>) {
        debug_assert!(held.is_empty(), "frames of this ring are copied");
        held.clear();
    }

    fn may_hold(&self) -> usize {
        0
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn history(&mut self) -> HistoryState {
        let complete_from_ns = match self.blocks.first() {
            0 => self.opened_ns,
            _ => self.stamp_of_oldest().unwrap_or_else(clock::realtime_ns),
        };
        HistoryState {
            packets: self.blocks.next() - self.blocks.first(),
            budget_bytes: (self.history * BLOCK) as u64,
            complete_from_ns,
        }
    }

    fn newest_ns(&mut self) -> Option<u64> {
        Some(self.blocks.newest_ns()).filter(|ns| *ns > 0)
    }

    fn losses(&mut self) -> io::Result<Losses> {
        self.read_statistics()?;
        Ok(Losses {
            ring: Some(self.dropped),
            nic: self.nic.as_mut().and_then(NicLosses::read),
            offered: Some(self.received),
        })
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.arrivals.0.as_fd()
    }

    fn clock_source(&self) -> &'static str {
        "kernel-realtime"
    }

    fn rest(&self) -> Option<Duration> {
        Some(REST)
    }

    fn lag_ns(&self) -> u64 {
        u64::from(RETIRE_MS) * 3_000_000
    }
}
