//! What a receive thread publishes for those who ask.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use trawl_control::{CaptureMode, Counters, HistoryStatus, QueueStatus};

use crate::clock;
use crate::queue::{HistoryState, Losses};

/// A report that is older than this is none, in nanoseconds.
const STALE_NS: u64 = 2_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub packets: AtomicU64,
    pub bytes: AtomicU64,
    pub last_packet_ns: AtomicU64,
    report: Mutex<Report>,
}

/// What changes several times a second at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// When it was made, in nanoseconds since the epoch; 0 is never.
    pub at_ns: u64,
    pub losses: Losses,
    pub history: HistoryState,
    pub problem: Option<String>,
}

impl Totals {
    pub fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn counters(&self) -> Counters {
        let losses = self.report().losses;
        Counters {
            packets: self.packets.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            dropped_ring: losses.ring,
            dropped_nic: losses.nic,
        }
    }

    pub fn status(&self, queue: usize, mode: CaptureMode) -> QueueStatus {
        let counters = self.counters();
        QueueStatus {
            queue: queue as u32,
            mode,
            mode_proved: counters.packets > 0,
            counters,
            offered: self.report().losses.offered,
            rebinds: 0,
        }
    }
}

/// Sums over queues. What one of them does not measure is not known of all; except the losses of the NIC, which
/// count once for the interface.
pub(crate) fn counters(all: &[impl AsRef<Totals>]) -> Counters {
    let each: Vec<_> = all.iter().map(|t| t.as_ref().counters()).collect();
    let nic: Vec<_> = each.iter().filter_map(|c| c.dropped_nic).collect();
    Counters {
        packets: each.iter().map(|c| c.packets).sum(),
        bytes: each.iter().map(|c| c.bytes).sum(),
        dropped_ring: each.iter().map(|c| c.dropped_ring).sum(),
        dropped_nic: (!nic.is_empty()).then(|| nic.iter().sum()),
    }
}

/// What all queues hold together; nothing while one of them does not answer.
pub(crate) fn history(all: &[impl AsRef<Totals>]) -> Option<HistoryStatus> {
    let now = clock::realtime_ns();
    let mut sum = HistoryStatus::default();
    for totals in all {
        let report = totals.as_ref().report();
        if now.saturating_sub(report.at_ns) > STALE_NS {
            return None;
        }
        sum.packets += report.history.packets;
        sum.budget_bytes += report.history.budget_bytes;
        sum.complete_from_ns = sum.complete_from_ns.max(report.history.complete_from_ns);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn losing(ring: Option<u64>, nic: Option<u64>) -> Arc<Totals> {
        let totals = Totals::default();
        totals.report().losses = Losses {
            ring,
            nic,
            offered: None,
        };
        Arc::new(totals)
    }

    #[test]
    fn a_sum_with_something_unmeasured_is_unmeasured() {
        let sum = counters(&[losing(Some(1), Some(5)), losing(Some(2), None)]);
        assert_eq!((sum.dropped_ring, sum.dropped_nic), (Some(3), Some(5)));
        let sum = counters(&[losing(Some(1), None), losing(None, None)]);
        assert_eq!((sum.dropped_ring, sum.dropped_nic), (None, None));
    }

    #[test]
    fn a_history_that_nobody_reported_is_absent() {
        assert_eq!(history(&[losing(None, None)]), None);
    }
}
