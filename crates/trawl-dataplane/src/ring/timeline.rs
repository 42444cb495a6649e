//! From stamps of the monotonic clock to real time, the same answer whenever a frame is asked for.

use std::collections::VecDeque;

use crate::clock;

/// Nanoseconds between two looks at the clocks.
const LOOK_NS: u64 = 1_000_000_000;
/// Differences below are measuring error, not a step of the clock.
const NOISE_NS: u128 = 50_000;
/// Corrections that are remembered; there is one a second at most.
const REMEMBERED: usize = 4096;

/// What holds from a monotonic moment on.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: u64,
    /// Real minus monotonic.
    offset: i128,
    /// Real time never shows less than at the end of the span before.
    floor: u64,
}

impl Span {
    fn apply(&self, monotonic: u64) -> u64 {
        u64::try_from(i128::from(monotonic) + self.offset)
            .unwrap_or(0)
            .max(self.floor)
    }
}

/// A never decreasing map from the monotonic clock to the epoch.
#[derive(Debug)]
pub(super) struct Timeline {
    /// At least one.
    spans: VecDeque<Span>,
    looked: u64,
}

impl Timeline {
    /// Reads the clocks.
    pub fn new() -> Self {
        Self::from(clock::monotonic_ns(), clock::monotonic_to_realtime_ns())
    }

    fn from(now: u64, offset: i128) -> Self {
        let span = Span {
            from: 0,
            offset,
            floor: 0,
        };
        Self {
            spans: VecDeque::from([span]),
            looked: now,
        }
    }

    /// Looks at the clocks again when that was long ago.
    pub fn keep_up(&mut self, now: u64) {
        if now.saturating_sub(self.looked) > LOOK_NS {
            self.correct(now, clock::monotonic_to_realtime_ns());
        }
    }

    /// From `now` on, this offset holds, if it differs at all.
    fn correct(&mut self, now: u64, offset: i128) {
        self.looked = now;
        let Some(last) = self.spans.back().copied() else {
            return;
        };
        if offset.abs_diff(last.offset) <= NOISE_NS || now <= last.from {
            return;
        }
        if self.spans.len() == REMEMBERED {
            self.spans.pop_front();
        }
        self.spans.push_back(Span {
            from: now,
            offset,
            floor: last.apply(now - 1),
        });
    }

    /// Nanoseconds since the epoch.
    pub fn real(&self, monotonic: u64) -> u64 {
        let span = self.spans.iter().rev().find(|s| s.from <= monotonic);
        let span = span.or(self.spans.front());
        span.map_or(0, |s| s.apply(monotonic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn real_time_never_goes_back_and_an_old_stamp_means_the_same_after_a_correction(
            corrections in prop::collection::vec((1u64..2_000_000_000, -5_000_000_000i64..5_000_000_000), 0..40),
            stamps in prop::collection::vec(0u64..60_000_000_000, 1..100),
        ) {
            let base = 1_700_000_000_000_000_000i128;
            let mut timeline = Timeline::from(0, base);
            let mut now = 0;
            for (later, offset) in corrections {
                now += later;
                let before: Vec<_> = stamps.iter().filter(|s| **s < now).map(|s| (*s, timeline.real(*s))).collect();
                timeline.correct(now, base + i128::from(offset));
                for (stamp, real) in before {
                    prop_assert_eq!(timeline.real(stamp), real);
                }
            }
            let mut stamps = stamps;
            stamps.sort_unstable();
            prop_assert!(stamps.iter().map(|s| timeline.real(*s)).is_sorted());
        }
    }

    #[test]
    fn a_clock_that_was_set_forward_is_followed() {
        let mut timeline = Timeline::from(0, 1_000);
        timeline.correct(2_000_000_000, 5_000_001_000);
        assert_eq!(timeline.real(1_999_999_999), 2_000_000_999);
        assert_eq!(timeline.real(2_000_000_000), 7_000_001_000);
    }
}
