//! A receive queue in memory. Its frames are numbered and known beforehand; the test says which have arrived.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rustix::event::{EventfdFlags, eventfd};

use crate::batch::Held;
use crate::queue::{Arrived, Frame, HistoryState, Holder, Losses, Position, Queue, Visited};
use crate::ring::memory::Memory;
use crate::ring::test_memory;

/// Room of each frame.
const SLOT: usize = 320;
/// Stamps of neighbours differ by this.
pub const STEP_NS: u64 = 10;
/// Frames that are received at once.
const MOST: u64 = 64;

/// What the test and the queue share.
#[derive(Debug)]
pub struct Wire {
    /// Stamp of the first frame.
    pub first_ns: u64,
    /// Frames that have arrived at the ring.
    pub sent: AtomicU64,
    /// Buffers that are held now.
    pub held: AtomicI64,
    pub lost: AtomicU64,
    bell: OwnedFd,
}

impl Wire {
    pub fn new(first_ns: u64) -> Arc<Self> {
        Arc::new(Self {
            first_ns,
            sent: AtomicU64::new(0),
            held: AtomicI64::new(0),
            lost: AtomicU64::new(0),
            bell: eventfd(0, EventfdFlags::NONBLOCK).unwrap(),
        })
    }

    pub fn stamp(&self, number: u64) -> u64 {
        self.first_ns + number * STEP_NS
    }

    pub fn send(&self, frames: u64) {
        self.sent.fetch_add(frames, Ordering::Relaxed);
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

/// A UDP frame that carries its number at 42; every third goes to port 53, each length is one of three.
pub fn bytes_of(number: u64) -> Vec<u8> {
    let length = [64, 301, 260][number as usize % 3];
    let mut f = vec![0u8; length];
    f[12..14].copy_from_slice(&[8, 0]);
    f[14] = 0x45;
    f[16..18].copy_from_slice(&((length - 14) as u16).to_be_bytes());
    f[23] = 17;
    f[36..38].copy_from_slice(&port_of(number).to_be_bytes());
    f[42..50].copy_from_slice(&number.to_be_bytes());
    f
}

pub fn port_of(number: u64) -> u16 {
    if number.is_multiple_of(3) || number.is_multiple_of(5) {
        53
    } else {
        80
    }
}

#[derive(Debug)]
pub struct WireQueue {
    wire: Arc<Wire>,
    memory: Memory,
    id: u32,
    /// Frames that are held: from the first to before the second number.
    range: (u64, u64),
    budget: u64,
    may_hold: usize,
    holds: Mutex<HashMap<u64, u32>>,
}

impl WireQueue {
    /// A queue for `frames` frames, of which `budget` are held as history.
    pub fn new(wire: &Arc<Wire>, frames: u64, budget: u64, may_hold: usize) -> Self {
        let mut content = vec![0; frames as usize * SLOT];
        for number in 0..frames {
            let bytes = bytes_of(number);
            content[number as usize * SLOT..][..bytes.len()].copy_from_slice(&bytes);
        }
        let (memory, id) = test_memory::of(content.into_boxed_slice());
        Self {
            wire: Arc::clone(wire),
            memory,
            id,
            range: (0, 0),
            budget,
            may_hold,
            holds: Mutex::default(),
        }
    }

    fn show(&self, number: u64, each: &mut impl FnMut(&Frame<'_>)) {
        let bytes = bytes_of(number);
        let offset = number * SLOT as u64;
        let offsets = [offset];
        let frame = Frame {
            bytes: &bytes,
            more: &[],
            wire_length: bytes.len() as u32,
            stamp_ns: self.wire.stamp(number),
            holder: (self.may_hold > 0).then_some(Holder {
                memory: self.id,
                offsets: &offsets,
                times: Cell::new(0),
            }),
        };
        each(&frame);
        let times = frame.holder.map_or(0, |h| h.times.get());
        *self.holds.lock().unwrap().entry(offset).or_default() += times;
        let held = self.wire.held.fetch_add(i64::from(times), Ordering::Relaxed);
        assert!(
            held + i64::from(times) <= self.may_hold as i64,
            "more is held than may be"
        );
    }
}

impl Queue for WireQueue {
    fn receive(&mut self) -> io::Result<Arrived> {
        let _ = rustix::io::read(&self.wire.bell, &mut [0; 8]);
        let sent = self.wire.sent.load(Ordering::Relaxed);
        let frames = (sent - self.range.1).min(MOST).min(self.budget);
        self.range.1 += frames;
        self.range.0 = self.range.0.max(self.range.1.saturating_sub(self.budget));
        Ok(Arrived { frames, bytes: 0 })
    }

    fn end(&self) -> Position {
        Position {
            number: self.range.1,
            hint: 0,
        }
    }

    fn seek(&mut self, stamp_ns: u64) -> Position {
        let number = (self.range.0..self.range.1)
            .find(|n| self.wire.stamp(*n) >= stamp_ns)
            .unwrap_or(self.range.1);
        Position { number, hint: 0 }
    }

    fn visit(&mut self, at: &mut Position, limit: u64, each: &mut impl FnMut(&Frame<'_>)) -> Visited {
        let overtaken = self.range.0.saturating_sub(at.number);
        let from = at.number.max(self.range.0);
        let to = self.range.1.min(from.saturating_add(limit));
        (from..to).for_each(|number| self.show(number, each));
        at.number = to.max(from);
        Visited {
            frames: to - from,
            overtaken,
        }
    }

    fn begin_anew(&mut self) {
        self.range.0 = self.range.1;
    }

    fn take_back(&mut self, held: &mut Vec<Held>) {
        let mut holds = self.holds.lock().unwrap();
        for held in held.drain(..) {
            let times = holds.get_mut(&held.offset()).unwrap();
            *times = times.checked_sub(1).expect("given back more often than taken");
            self.wire.held.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn may_hold(&self) -> usize {
        self.may_hold
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn history(&mut self) -> HistoryState {
        let all = self.range.0 == 0;
        HistoryState {
            packets: self.range.1 - self.range.0,
            budget_bytes: self.budget * SLOT as u64,
            complete_from_ns: if all { 1 } else { self.wire.stamp(self.range.0) },
        }
    }

    fn newest_ns(&mut self) -> Option<u64> {
        self.range.1.checked_sub(1).map(|n| self.wire.stamp(n))
    }

    fn losses(&mut self) -> io::Result<Losses> {
        Ok(Losses {
            ring: Some(self.wire.lost.load(Ordering::Relaxed)),
            nic: None,
            offered: None,
        })
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.wire.bell.as_fd()
    }

    fn clock_source(&self) -> &'static str {
        "test"
    }

    fn lag_ns(&self) -> u64 {
        0
    }
}
