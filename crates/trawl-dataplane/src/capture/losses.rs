//! Loss counters over time, so that a window in the past gets what was lost in it.

use std::collections::VecDeque;

use crate::queue::Losses;

/// Samples kept, and the least time from one to the next but one, in nanoseconds: together more than the longest time
/// before a trigger that may be asked for, however often a capture ends.
const MOST: usize = 2 * 2048;
const SPACING_NS: u64 = 150_000_000;

/// Totals of a queue, each with the moment it was read, in nanoseconds since the epoch.
#[derive(Debug)]
pub(crate) struct Samples(VecDeque<(u64, Losses)>);

impl Samples {
    pub fn new(at_ns: u64, losses: Losses) -> Self {
        Self([(at_ns, losses)].into())
    }

    pub fn add(&mut self, at_ns: u64, losses: Losses) {
        let last_but_one = self.0.len().checked_sub(2).and_then(|i| self.0.get(i));
        if last_but_one.is_some_and(|(at, _)| at_ns.saturating_sub(*at) < SPACING_NS) {
            self.0.pop_back();
        } else if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((at_ns, losses));
    }

    /// The newest totals.
    pub fn now(&self) -> Losses {
        self.0.back().map_or_else(Losses::default, |(_, l)| *l)
    }

    /// What was lost from `start_ns` to `end_ns`, each rounded outwards to the next sample there is.
    pub fn between(&self, start_ns: u64, end_ns: u64) -> Losses {
        let before = self.0.partition_point(|(at, _)| *at <= start_ns);
        let after = self.0.partition_point(|(at, _)| *at < end_ns);
        let then = self.0.get(before.saturating_sub(1)).map(|(_, l)| *l);
        let then = then.unwrap_or_default();
        let until = self.0.get(after).map_or_else(|| self.now(), |(_, l)| *l);
        // A counter that went back, or was not there, tells nothing of the time between.
        let since = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        Losses {
            ring: since(until.ring, then.ring),
            nic: since(until.nic, then.nic),
            offered: since(until.offered, then.offered),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(lost: u64) -> Losses {
        Losses {
            ring: Some(lost),
            ..Losses::default()
        }
    }

    const SECOND: u64 = 1_000_000_000;

    fn samples(totals: &[(u64, Losses)]) -> Samples {
        let mut samples = Samples::new(totals[0].0 * SECOND, totals[0].1);
        totals[1..]
            .iter()
            .for_each(|(at, losses)| samples.add(at * SECOND, *losses));
        samples
    }

    fn lost(samples: &Samples, from: u64, to: u64) -> Option<u64> {
        samples.between(from * SECOND, to * SECOND).ring
    }

    #[test]
    fn a_window_in_the_past_gets_the_losses_of_its_time_rounded_outwards() {
        let samples = samples(&[(10, ring(5)), (20, ring(7)), (30, ring(17)), (40, ring(37))]);
        assert_eq!(lost(&samples, 20, 30), Some(10));
        assert_eq!(lost(&samples, 25, 26), Some(10));
        assert_eq!(lost(&samples, 25, 31), Some(30));
        assert_eq!(
            lost(&samples, 5, 15),
            Some(2),
            "before the first sample nothing is known to be lost"
        );
        assert_eq!(lost(&samples, 35, 90), Some(20));
        assert_eq!(lost(&samples, 50, 90), Some(0));
        let nic = samples.between(20 * SECOND, 30 * SECOND).nic;
        assert_eq!(nic, None, "not measured is not zero");
    }

    #[test]
    fn a_counter_that_began_anew_or_was_not_there_before_tells_nothing() {
        let samples = samples(&[
            (10, ring(50)),
            (20, ring(3)),
            (30, Losses::default()),
            (40, ring(9)),
        ]);
        assert_eq!(lost(&samples, 10, 20), None);
        assert_eq!(lost(&samples, 20, 30), None);
        assert_eq!(lost(&samples, 30, 40), None);
        assert_eq!(lost(&samples, 20, 40), Some(6));
    }

    #[test]
    fn captures_that_end_all_the_time_do_not_push_out_what_was_lost_five_minutes_ago() {
        let mut samples = Samples::new(0, ring(0));
        for millisecond in 1..=400_000 {
            samples.add(millisecond * 1_000_000, ring(millisecond));
        }
        let lost = lost(&samples, 101, 400).unwrap();
        assert!((299_000..299_400).contains(&lost), "{lost}");
    }
}
