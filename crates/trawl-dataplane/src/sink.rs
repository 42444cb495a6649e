//! One capture as the receive thread sees it: its window, its size bound, and the batch that it fills.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use trawl_control::{LossBalance, StopReason};

use crate::backend::{Frame, Losses};
use crate::pcapng;
use crate::writer::{Batch, Final, Message, Shared};

/// Bytes after which a batch goes to the writer.
pub(crate) const BATCH_BYTES: usize = 256 << 10;
/// Batches that may wait for the writer.
const MAX_QUEUED: usize = 64;

/// The bounds of a capture. Everything in nanoseconds since the epoch and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub start_ns: u64,
    pub end_ns: u64,
    pub max_size: u64,
    pub snaplen: u32,
    /// Length of the statistics block that is still to come.
    pub trailer: u64,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Stamped before the window.
    Early,
    Keep(usize),
    /// The first frame at or after the end of the window.
    TooLate,
    /// The first packet that would not fit.
    TooLarge,
}

impl Bounds {
    fn judge(&self, frame: &Frame<'_>, matched: bool, file_length: u64) -> Verdict {
        if frame.stamp_ns < self.start_ns {
            return Verdict::Early;
        }
        if frame.stamp_ns >= self.end_ns {
            return Verdict::TooLate;
        }
        let limit = if self.snaplen == 0 {
            usize::MAX
        } else {
            self.snaplen as usize
        };
        let kept = frame.bytes.len().min(limit);
        let after = file_length + pcapng::packet_length(kept) as u64 + self.trailer;
        if matched && after > self.max_size {
            Verdict::TooLarge
        } else {
            Verdict::Keep(kept)
        }
    }
}

pub(crate) struct Sink {
    pub id: u64,
    pub shared: Arc<Shared>,
    bounds: Bounds,
    file_length: u64,
    batch: Batch,
    queue: Sender<Message>,
    spare: Receiver<Vec<u8>>,
    balance: LossBalance,
    losses_at_start: Losses,
    ended: Option<(StopReason, u64, Option<String>)>,
}

impl Sink {
    pub fn new(
        id: u64,
        bounds: Bounds,
        header: Vec<u8>,
        losses_at_start: Losses,
        writer: (Sender<Message>, Receiver<Vec<u8>>, Arc<Shared>),
    ) -> Self {
        let (queue, spare, shared) = writer;
        let file_length = header.len() as u64;
        let batch = Batch {
            bytes: header,
            ..Batch::default()
        };
        let balance = LossBalance::default();
        Self {
            id,
            shared,
            bounds,
            file_length,
            batch,
            queue,
            spare,
            balance,
            losses_at_start,
            ended: None,
        }
    }

    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Takes a frame, or ends the capture by it.
    #[inline]
    pub fn offer(&mut self, frame: &Frame<'_>, matched: bool) {
        if self.ended.is_some() {
            return;
        }
        match self.bounds.judge(frame, matched, self.file_length) {
            Verdict::Early => {}
            Verdict::TooLate => self.end(StopReason::Duration, self.bounds.end_ns, None),
            Verdict::TooLarge => {
                self.balance.seen += 1;
                self.balance.matched += 1;
                self.balance.lost_writer += 1;
                self.end(StopReason::Size, frame.stamp_ns, None);
            }
            Verdict::Keep(kept) => {
                self.balance.seen += 1;
                if matched {
                    self.balance.matched += 1;
                    self.keep(frame, kept);
                } else {
                    self.balance.filtered += 1;
                }
            }
        }
    }

    fn keep(&mut self, frame: &Frame<'_>, kept: usize) {
        if self.batch.bytes.len() >= BATCH_BYTES && !self.flush() {
            self.balance.lost_writer += 1;
            return;
        }
        pcapng::packet(
            &mut self.batch.bytes,
            frame.stamp_ns,
            &frame.bytes[..kept],
            frame.wire_length,
        );
        self.batch.packets += 1;
        self.batch.truncated += u64::from(kept < frame.wire_length as usize);
        self.batch.first_ns.get_or_insert(frame.stamp_ns);
        self.batch.last_ns = Some(frame.stamp_ns);
        self.file_length += pcapng::packet_length(kept) as u64;
    }

    /// Gives the batch to the writer unless too many wait already.
    pub fn flush(&mut self) -> bool {
        if self.batch.bytes.is_empty() {
            return true;
        }
        if self.shared.queued() >= MAX_QUEUED {
            return false;
        }
        let mut next = self.spare.try_recv().unwrap_or_default();
        next.clear();
        let full = std::mem::replace(
            &mut self.batch,
            Batch {
                bytes: next,
                ..Batch::default()
            },
        );
        self.shared.enqueue();
        let _ = self.queue.send(Message::Batch(full));
        true
    }

    /// Ends the capture when its window lies wholly before `seen_until_ns`.
    pub fn pass_time(&mut self, seen_until_ns: u64) {
        if seen_until_ns >= self.bounds.end_ns {
            self.end(StopReason::Duration, self.bounds.end_ns, None);
        }
    }

    /// Ends the capture when its writer cannot go on.
    pub fn check_writer(&mut self, now_ns: u64) {
        if self.ended.is_none()
            && let Some(message) = self.shared.failure()
        {
            self.end(StopReason::Error, now_ns, Some(message));
        }
    }

    /// Ends the capture; the first reason stays.
    pub fn end(&mut self, reason: StopReason, at_ns: u64, message: Option<String>) {
        self.ended
            .get_or_insert((reason, at_ns.max(self.bounds.start_ns), message));
    }

    /// Hands the last batch and the totals to the writer.
    pub fn finish(mut self, losses: Losses, clock_source: &'static str) {
        let (stop_reason, ended_at_ns, message) =
            self.ended
                .take()
                .unwrap_or((StopReason::Error, self.bounds.start_ns, None));
        let since = |now: Option<u64>, then: Option<u64>| now.map(|n| n.saturating_sub(then.unwrap_or(0)));
        self.balance.lost_ring = since(losses.ring, self.losses_at_start.ring);
        self.balance.lost_nic = since(losses.nic, self.losses_at_start.nic);
        debug_assert_eq!(self.balance.seen, self.balance.matched + self.balance.filtered);
        let totals = Final {
            stop_reason,
            message,
            started_at_ns: self.bounds.start_ns,
            ended_at_ns,
            balance: self.balance,
            clock_source,
        };
        let last = std::mem::take(&mut self.batch);
        let _ = self.queue.send(Message::Finish(last, Box::new(totals)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        start_ns: 100,
        end_ns: 200,
        max_size: 1000,
        snaplen: 64,
        trailer: 100,
    };

    fn verdict(stamp_ns: u64, length: usize, matched: bool, file_length: u64) -> Verdict {
        let bytes = vec![0; length];
        BOUNDS.judge(
            &Frame {
                bytes: &bytes,
                wire_length: length as u32,
                stamp_ns,
            },
            matched,
            file_length,
        )
    }

    #[test]
    fn the_window_includes_its_start_and_excludes_its_end() {
        assert_eq!(verdict(99, 60, true, 0), Verdict::Early);
        assert_eq!(verdict(100, 60, true, 0), Verdict::Keep(60));
        assert_eq!(verdict(199, 60, true, 0), Verdict::Keep(60));
        assert_eq!(verdict(200, 60, true, 0), Verdict::TooLate);
    }

    #[test]
    fn a_packet_fits_to_the_last_byte_and_not_one_further() {
        let room = 1000 - 100 - pcapng::packet_length(60) as u64;
        assert_eq!(verdict(150, 60, true, room), Verdict::Keep(60));
        assert_eq!(verdict(150, 60, true, room + 1), Verdict::TooLarge);
        assert_eq!(
            verdict(150, 60, false, room + 1),
            Verdict::Keep(60),
            "what is filtered needs no room"
        );
    }

    #[test]
    fn the_snap_length_cuts_before_the_size_is_judged() {
        assert_eq!(verdict(150, 1500, true, 1000 - 100 - 96), Verdict::Keep(64));
    }
}
