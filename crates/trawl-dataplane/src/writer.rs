//! One thread per capture: batches to file and hash in the same pass, and the summary at the end.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use trawl_control::{Ended, LossBalance, StopReason};

use crate::pcapng::{self, Statistics};

/// Whole blocks, and what is in them.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub bytes: Vec<u8>,
    pub packets: u64,
    pub truncated: u64,
    pub first_ns: Option<u64>,
    pub last_ns: Option<u64>,
}

/// What the receive thread knows at the end.
#[derive(Debug)]
pub(crate) struct Final {
    pub stop_reason: StopReason,
    pub message: Option<String>,
    pub started_at_ns: u64,
    pub ended_at_ns: u64,
    pub balance: LossBalance,
    pub clock_source: &'static str,
}

pub(crate) enum Message {
    Batch(Batch),
    Finish(Batch, Box<Final>),
}

/// What the writer tells the other threads while it works.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub packets: AtomicU64,
    pub bytes: AtomicU64,
    queued: AtomicUsize,
    failure: Mutex<Option<String>>,
    failed: std::sync::atomic::AtomicBool,
}

impl Shared {
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Acquire)
    }

    pub fn enqueue(&self) {
        self.queued.fetch_add(1, Ordering::AcqRel);
    }

    pub fn failure(&self) -> Option<String> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn fail(&self, message: String) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
        self.failed.store(true, Ordering::Release);
    }
}

/// Called once, from the writer thread.
pub type OnEnd = Box<dyn FnOnce(Ended) + Send>;

pub(crate) type WriterEnds = (Sender<Message>, Receiver<Vec<u8>>, Arc<Shared>);

/// Starts the writer of one capture.
pub(crate) fn start(file: File, on_end: OnEnd) -> std::io::Result<WriterEnds> {
    let (queue, messages) = channel();
    let (recycle, spare) = channel();
    let shared = Arc::new(Shared::default());
    let writer = Writer {
        file,
        shared: Arc::clone(&shared),
        hash: Sha256::new(),
        good: 0,
        done: Batch::default(),
    };
    std::thread::Builder::new()
        .name("trawl-writer".into())
        .spawn(move || {
            let ended = writer.run(&messages, &recycle);
            on_end(ended);
        })?;
    Ok((queue, spare, shared))
}

struct Writer {
    file: File,
    shared: Arc<Shared>,
    hash: Sha256,
    /// Bytes that are in the file for certain.
    good: u64,
    /// What the file holds, without its bytes.
    done: Batch,
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>, recycle: &Sender<Vec<u8>>) -> Ended {
        loop {
            match messages.recv() {
                Ok(Message::Batch(batch)) => {
                    self.write(&batch);
                    self.shared.queued.fetch_sub(1, Ordering::AcqRel);
                    let _ = recycle.send(batch.bytes);
                }
                Ok(Message::Finish(last, totals)) => {
                    self.write(&last);
                    return self.finish(*totals);
                }
                Err(_) => {
                    return self.finish(Final {
                        stop_reason: StopReason::Error,
                        message: Some("the receive thread ended unexpectedly".into()),
                        started_at_ns: 0,
                        ended_at_ns: 0,
                        balance: LossBalance::default(),
                        clock_source: "unknown",
                    });
                }
            }
        }
    }

    /// Writes whole blocks or, after a failure, nothing: the file never ends inside a block.
    fn write(&mut self, batch: &Batch) {
        if !self.write_bytes(&batch.bytes) {
            return;
        }
        self.done.packets += batch.packets;
        self.done.truncated += batch.truncated;
        self.done.first_ns = self.done.first_ns.or(batch.first_ns);
        self.done.last_ns = batch.last_ns.or(self.done.last_ns);
        self.shared.packets.store(self.done.packets, Ordering::Relaxed);
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> bool {
        if self.shared.failure().is_some() {
            return false;
        }
        if let Err(e) = self.file.write_all(bytes) {
            self.shared.fail(format!(
                "writing the output failed after {} bytes: {e}",
                self.good
            ));
            let _ = self.file.set_len(self.good);
            return false;
        }
        self.hash.update(bytes);
        self.good += bytes.len() as u64;
        self.shared.bytes.store(self.good, Ordering::Relaxed);
        true
    }

    fn finish(mut self, totals: Final) -> Ended {
        let mut balance = totals.balance;
        balance.written = self.done.packets;
        balance.lost_writer = balance.matched.saturating_sub(balance.written);
        debug_assert!(balance.adds_up(), "{balance:?}");
        let trailer = pcapng::statistics(&statistics(&totals, &balance));
        self.write_bytes(&trailer);
        let failure = self.shared.failure();
        let stop_reason = if failure.is_some() {
            StopReason::Error
        } else {
            totals.stop_reason
        };
        Ended {
            stop_reason,
            started_at_ns: totals.started_at_ns,
            ended_at_ns: totals.ended_at_ns,
            packets: self.done.packets,
            bytes: self.good,
            sha256: self.hash.finalize().iter().map(|b| format!("{b:02x}")).collect(),
            first_packet_ns: self.done.first_ns,
            last_packet_ns: self.done.last_ns,
            truncated_packets: self.done.truncated,
            balance,
            clock_source: totals.clock_source.into(),
            message: failure.or(totals.message),
        }
    }
}

fn statistics(totals: &Final, balance: &LossBalance) -> Statistics {
    Statistics {
        start_ns: totals.started_at_ns,
        end_ns: totals.ended_at_ns,
        received: balance.seen + balance.lost_ring.unwrap_or(0),
        accepted: balance.matched,
        delivered: balance.written,
        interface_dropped: balance.lost_nic,
        os_dropped: balance.lost_ring,
    }
}
