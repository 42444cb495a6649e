//! Totals that never go back, although captured counts from zero with every attachment.

use jiff::Timestamp;
use trawl_api::TargetStatus;
use trawl_control::Counters;

/// What is reported. `None` is "not measured".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub packets: u64,
    pub bytes: Option<u64>,
    pub drops: Option<u64>,
}

/// Which run of captured's counters is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// When the daemon started and when it attached the interface, in ns since the epoch.
    pub daemon_started_ns: u64,
    pub attached_ns: u64,
}

/// Sum of the segments that are over, and the one that runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    base: Totals,
    current: Option<(Segment, Totals)>,
    /// What an earlier sensor reported, until the first counters show how they relate to it.
    earlier: Option<(Timestamp, Totals)>,
}

impl Tally {
    /// Continues the totals that the status already shows for this node.
    pub fn resume(earlier: Option<&TargetStatus>) -> Self {
        let number = |n: i64| u64::try_from(n).unwrap_or(0);
        let earlier = earlier.map(|t| {
            let totals = Totals {
                packets: number(t.packets_observed),
                bytes: t.bytes_observed.map(number),
                drops: t.kernel_drops.map(number),
            };
            (t.heartbeat_time.0, totals)
        });
        Self { earlier, ..Self::default() }
    }

    /// Takes captured's counters; returns the totals now.
    pub fn observe(&mut self, segment: Segment, counters: &Counters) -> Totals {
        let now = totals(counters);
        if let Some((reported_at, earlier)) = self.earlier.take() {
            self.base = base_after_restart(reported_at, earlier, segment, now);
        } else if let Some((_, last)) = self.current.filter(|(s, last)| *s != segment || now.packets < last.packets) {
            self.base = add(self.base, last);
        }
        self.current = Some((segment, now));
        self.totals()
    }

    /// The totals as last observed.
    pub fn totals(&self) -> Totals {
        let now = self.current.map_or(Totals::default(), |(_, totals)| totals);
        Totals {
            packets: self.base.packets.saturating_add(now.packets),
            // What is not measured now is absent, whatever was measured before.
            bytes: now.bytes.map(|b| b.saturating_add(self.base.bytes.unwrap_or(0))),
            drops: now.drops.map(|d| d.saturating_add(self.base.drops.unwrap_or(0))),
        }
    }
}

/// What to add to the counters after the sensor itself began anew. An attachment that is older than the last report was
/// part of it: then the total goes on from the larger of the two, and nothing is counted twice.
fn base_after_restart(reported_at: Timestamp, earlier: Totals, segment: Segment, now: Totals) -> Totals {
    let attached = Timestamp::from_nanosecond(i128::from(segment.attached_ns)).unwrap_or(Timestamp::MAX);
    if attached > reported_at {
        return earlier;
    }
    let rest = |earlier: Option<u64>, now: Option<u64>| earlier.map(|e| e.saturating_sub(now.unwrap_or(0)));
    Totals {
        packets: earlier.packets.saturating_sub(now.packets),
        bytes: rest(earlier.bytes, now.bytes),
        drops: rest(earlier.drops, now.drops),
    }
}

fn add(a: Totals, b: Totals) -> Totals {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    Totals { packets: a.packets.saturating_add(b.packets), bytes: sum(a.bytes, b.bytes), drops: sum(a.drops, b.drops) }
}

fn totals(c: &Counters) -> Totals {
    let drops = match (c.dropped_ring, c.dropped_nic) {
        (None, None) => None,
        (ring, nic) => Some(ring.unwrap_or(0).saturating_add(nic.unwrap_or(0))),
    };
    Totals { packets: c.packets, bytes: Some(c.bytes), drops }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(attached_ns: u64) -> Segment {
        Segment { daemon_started_ns: 1, attached_ns }
    }

    fn counters(packets: u64, dropped_ring: Option<u64>) -> Counters {
        Counters { packets, bytes: packets * 100, dropped_ring, dropped_nic: None }
    }

    fn report(packets: i64, drops: Option<i64>) -> TargetStatus {
        serde_json::from_value(serde_json::json!({
            "nodeName": "n", "interface": "eth0", "reporterInstance": "p/1", "heartbeatTime": "1970-01-01T00:01:00Z",
            "packetsObserved": packets, "kernelDrops": drops, "duplication": "Unknown", "rejectedRecords": 0,
        }))
        .unwrap()
    }

    #[test]
    fn totals_never_go_back_when_captured_restarts() {
        let mut tally = Tally::default();
        tally.observe(segment(1), &counters(10, Some(1)));
        tally.observe(segment(1), &counters(15, Some(2)));
        let after = tally.observe(segment(2), &counters(3, Some(0)));
        assert_eq!(after, Totals { packets: 18, bytes: Some(1800), drops: Some(2) });
        assert_eq!(tally.observe(segment(2), &counters(4, Some(1))).drops, Some(3));
    }

    #[test]
    fn a_counter_that_is_not_measured_is_absent_and_zero_is_zero() {
        let mut tally = Tally::default();
        assert_eq!(tally.observe(segment(1), &counters(10, None)).drops, None);
        assert_eq!(tally.observe(segment(1), &counters(10, Some(0))).drops, Some(0));
    }

    #[test]
    fn a_restarted_sensor_goes_on_from_what_the_status_shows() {
        let minute_and_a_half = 90_000_000_000;
        let mut fresh = Tally::resume(Some(&report(100, Some(7))));
        let totals = fresh.observe(segment(minute_and_a_half), &counters(5, Some(1)));
        assert_eq!((totals.packets, totals.drops), (105, Some(8)), "a new attachment adds to it");

        let mut same = Tally::resume(Some(&report(100, None)));
        assert_eq!(same.observe(segment(1_000), &counters(40, None)).packets, 100, "it was part of it: not twice");
        assert_eq!(same.observe(segment(1_000), &counters(45, None)).packets, 105);

        let mut ahead = Tally::resume(Some(&report(100, None)));
        assert_eq!(ahead.observe(segment(1_000), &counters(130, None)).packets, 130, "captured knows more");
    }
}
