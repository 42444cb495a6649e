//! Loss counters over time, so that a window in the past gets what was lost in it.

use std::collections::VecDeque;

use crate::queue::Losses;

/// Samples kept: at five a second more than the longest time before a trigger that may be asked for.
const MOST: usize = 2048;

/// Totals of a queue, each with the moment it was read, in nanoseconds since the epoch.
#[derive(Debug)]
pub(crate) struct Samples(VecDeque<(u64, Losses)>);

impl Samples {
    pub fn new(at_ns: u64, losses: Losses) -> Self {
        Self([(at_ns, losses)].into())
    }

    pub fn add(&mut self, at_ns: u64, losses: Losses) {
        if self.0.len() == MOST {
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

    #[test]
    fn a_window_in_the_past_gets_the_losses_of_its_time_rounded_outwards() {
        let mut samples = Samples::new(100, ring(5));
        samples.add(200, ring(7));
        samples.add(300, ring(17));
        samples.add(400, ring(37));
        let lost = |from, to| samples.between(from, to).ring;
        assert_eq!(lost(200, 300), Some(10));
        assert_eq!(lost(250, 260), Some(10));
        assert_eq!(lost(250, 301), Some(30));
        assert_eq!(
            lost(50, 150),
            Some(2),
            "before the first sample nothing is known to be lost"
        );
        assert_eq!(lost(350, 900), Some(20));
        assert_eq!(lost(500, 900), Some(0));
        assert_eq!(samples.between(200, 300).nic, None, "not measured is not zero");
    }

    #[test]
    fn a_counter_that_began_anew_or_was_not_there_before_tells_nothing() {
        let mut samples = Samples::new(100, ring(50));
        samples.add(200, ring(3));
        samples.add(300, Losses::default());
        samples.add(400, ring(9));
        assert_eq!(samples.between(100, 200).ring, None);
        assert_eq!(samples.between(200, 300).ring, None);
        assert_eq!(samples.between(300, 400).ring, None);
        assert_eq!(samples.between(200, 400).ring, Some(6));
    }
}
