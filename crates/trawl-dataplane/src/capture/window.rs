//! What all receive threads and the writer of a capture share: its bounds, and why it ended.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use trawl_control::StopReason;

/// How far the writer is.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub packets: AtomicU64,
    pub bytes: AtomicU64,
}

/// Why and when a capture ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub reason: StopReason,
    /// Nanoseconds since the epoch.
    pub at_ns: u64,
    pub message: Option<String>,
}

/// The bounds of a capture. Moments in nanoseconds since the epoch, sizes in bytes.
#[derive(Debug)]
pub(crate) struct Window {
    pub id: u64,
    /// When the capture was begun.
    pub begun_ns: u64,
    /// 0 until all receive threads have said how far back they reach.
    start_ns: AtomicU64,
    /// Moves forward in time never, backward when the capture is cancelled.
    end_ns: AtomicU64,
    /// Room of packets: the bound of the file without header and closing statistics.
    room: u64,
    /// Bytes of that which are promised to packets.
    reserved: AtomicU64,
    /// One receive thread reserves alone and needs no atomic exchange.
    alone: bool,
    pub snaplen: u32,
    /// Nothing more is taken, whatever its stamp.
    over: AtomicBool,
    ending: Mutex<Option<Ending>>,
    pub progress: Progress,
}

impl Window {
    /// A window that is not open yet: it was asked for at one moment and closes at the other.
    pub fn new(id: u64, (begun_ns, end_ns): (u64, u64), room: u64, snaplen: u32, queues: usize) -> Self {
        Self {
            id,
            begun_ns,
            start_ns: AtomicU64::new(0),
            end_ns: AtomicU64::new(end_ns),
            room,
            reserved: AtomicU64::new(0),
            alone: queues == 1,
            snaplen,
            over: AtomicBool::new(false),
            ending: Mutex::new(None),
            progress: Progress::default(),
        }
    }

    /// Opens the window; receive threads wait for this.
    pub fn begin(&self, start_ns: u64) {
        self.start_ns.store(start_ns.max(1), Ordering::Release);
    }

    /// The start, once it is settled.
    pub fn start_ns(&self) -> Option<u64> {
        Some(self.start_ns.load(Ordering::Acquire)).filter(|ns| *ns > 0)
    }

    pub fn end_ns(&self) -> u64 {
        self.end_ns.load(Ordering::Acquire)
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Bytes kept of a frame of this length.
    #[inline]
    pub fn kept(&self, length: usize) -> usize {
        match self.snaplen {
            0 => length,
            limit => length.min(limit as usize),
        }
    }

    /// Promises room to a packet; false when it would not fit any more.
    #[inline]
    pub fn reserve(&self, length: u64) -> bool {
        let fits = |reserved: u64| Some(reserved + length).filter(|after| *after <= self.room);
        if !self.alone {
            let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
            return self.reserved.fetch_update(set, get, fits).is_ok();
        }
        match fits(self.reserved.load(Ordering::Relaxed)) {
            Some(after) => {
                self.reserved.store(after, Ordering::Relaxed);
                true
            }
            None => false,
        }
    }

    /// Ends the capture at once; the first reason stays.
    pub fn end_now(&self, reason: StopReason, at_ns: u64, message: Option<String>) {
        self.note(reason, at_ns, message);
        self.over.store(true, Ordering::Release);
    }

    /// Ends the capture with the packets stamped before this moment: those belong to it wherever they are now.
    pub fn cut(&self, reason: StopReason, at_ns: u64, message: Option<String>) {
        self.note(reason, at_ns, message);
        self.end_ns.fetch_min(at_ns, Ordering::AcqRel);
    }

    fn note(&self, reason: StopReason, at_ns: u64, message: Option<String>) {
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.get_or_insert(Ending {
            reason,
            at_ns,
            message,
        });
    }

    /// How the capture ended: by its duration unless something else was noted.
    pub fn ending(&self) -> Ending {
        let noted = self.ending.lock().unwrap_or_else(PoisonError::into_inner).clone();
        noted.unwrap_or_else(|| Ending {
            reason: StopReason::Duration,
            at_ns: self.end_ns(),
            message: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_to_the_last_byte_and_not_one_further() {
        for queues in [1, 2] {
            let window = Window::new(1, (0, 100), 300, 0, queues);
            assert!(window.reserve(200));
            assert!(!window.reserve(101));
            assert!(window.reserve(100));
            assert!(!window.reserve(1));
        }
    }

    #[test]
    fn the_first_reason_stays() {
        let window = Window::new(1, (0, 100), 300, 0, 1);
        assert_eq!(window.ending().reason, StopReason::Duration);
        window.end_now(StopReason::Size, 50, None);
        window.cut(StopReason::Cancelled, 60, None);
        assert_eq!(
            (window.ending().reason, window.ending().at_ns),
            (StopReason::Size, 50)
        );
    }

    #[test]
    fn a_cut_never_makes_a_window_longer() {
        let window = Window::new(1, (0, 100), 300, 0, 1);
        window.cut(StopReason::Cancelled, 160, None);
        assert_eq!(window.end_ns(), 100);
    }
}
