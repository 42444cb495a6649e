//! Analyzer feeds: everything that arrives, handed to an [`Outlet`] on a thread of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use trawl_control::FeedStatus;

use super::stock::{Returned, Stock};
use crate::batch::{Batch, Packet, Place};
use crate::cpu;
use crate::outlet::Outlet;
use crate::queue::Frame;

/// Frames after which a batch goes out.
const FULL: usize = 256;
/// Without frames for so long, the outlet is asked how it is.
const LOOK: Duration = Duration::from_secs(1);
/// Copied bytes that may wait for the sender, of each receive thread.
const MAX_WAITING: usize = 4 << 20;

/// What a feed tells while it runs.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    name: String,
    over: AtomicBool,
    packets: AtomicU64,
    bytes: AtomicU64,
    dropped: AtomicU64,
    problem: Mutex<Option<String>>,
}

impl Feed {
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub fn status(&self) -> FeedStatus {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        FeedStatus {
            interface: self.name.clone(),
            packets: self.packets.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            problem: problem.clone(),
        }
    }

    fn set_problem(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    fn serve(&self, outlet: &mut dyn Outlet, batches: &Receiver<Batch>, returns: &[(u64, Sender<Returned>)]) {
        loop {
            let batch = match batches.recv_timeout(LOOK) {
                Ok(batch) => batch,
                Err(RecvTimeoutError::Timeout) => {
                    self.set_problem(outlet.look());
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let sent = if self.is_over() {
                crate::outlet::Sent::default()
            } else {
                outlet.send(&batch)
            };
            self.packets.fetch_add(sent.packets, Ordering::Relaxed);
            self.bytes.fetch_add(sent.bytes, Ordering::Relaxed);
            self.dropped.fetch_add(sent.dropped, Ordering::Relaxed);
            self.set_problem(sent.problem);
            if let Some((id, queue)) = returns.get(batch.queue as usize) {
                let _ = queue.send(Returned::Batch(*id, batch));
            }
        }
        self.end();
    }
}

/// Starts the sender; it ends, and drops the outlet, when all receive threads have let go of the channel.
pub(crate) fn start(
    name: String,
    mut outlet: Box<dyn Outlet>,
    returns: Vec<(u64, Sender<Returned>)>,
) -> std::io::Result<(Arc<Feed>, Sender<Batch>)> {
    let (out, batches) = channel();
    let feed = Arc::new(Feed {
        name,
        ..Feed::default()
    });
    let served = Arc::clone(&feed);
    std::thread::Builder::new()
        .name("trawl-feed".into())
        .spawn(move || {
            cpu::stand_aside();
            served.serve(&mut *outlet, &batches, &returns);
        })?;
    Ok((feed, out))
}

/// The part of a feed that one receive thread has.
pub(crate) struct FeedSink {
    pub id: u64,
    pub feed: Arc<Feed>,
    batch: Batch,
    out: Sender<Batch>,
    waiting_held: usize,
    waiting_bytes: usize,
    dropped: u64,
}

impl FeedSink {
    pub fn new(id: u64, feed: Arc<Feed>, out: Sender<Batch>, stock: &mut Stock) -> Self {
        Self {
            id,
            feed,
            batch: stock.batch(),
            out,
            waiting_held: 0,
            waiting_bytes: 0,
            dropped: 0,
        }
    }

    #[inline]
    pub fn offer(&mut self, frame: &Frame<'_>, length: usize, stock: &mut Stock) {
        if self.batch.packets.len() >= FULL {
            self.flush(stock);
        }
        let parts = 1 + frame.more.len();
        let at = self.batch.held.len();
        let place =
            if stock.may_hold(self.waiting_held + at, parts) && frame.hold(length, &mut self.batch.held) {
                stock.held += parts;
                Place::Held(at, parts)
            } else if self.waiting_bytes + self.batch.copied.len() + length <= MAX_WAITING {
                let at = self.batch.copied.len();
                frame.copy(length, &mut self.batch.copied);
                Place::Copied(at)
            } else {
                self.dropped += 1;
                return;
            };
        self.batch.packets.push(Packet {
            stamp_ns: frame.stamp_ns,
            wire_length: frame.wire_length,
            kept: length as u32,
            place,
        });
    }

    pub fn overtaken(&mut self, frames: u64) {
        self.dropped += frames;
    }

    /// Hands on what there is.
    pub fn flush(&mut self, stock: &mut Stock) {
        if self.dropped > 0 {
            self.feed.dropped.fetch_add(self.dropped, Ordering::Relaxed);
            self.dropped = 0;
        }
        if self.batch.packets.is_empty() {
            return;
        }
        let full = std::mem::replace(&mut self.batch, stock.batch());
        self.waiting_held += full.held.len();
        self.waiting_bytes += full.copied.len();
        let _ = self.out.send(full);
    }

    /// A batch of this feed came back.
    pub fn returned(&mut self, batch: &Batch) {
        self.waiting_held -= batch.held.len();
        self.waiting_bytes -= batch.copied.len();
    }
}
