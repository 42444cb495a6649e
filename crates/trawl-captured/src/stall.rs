//! A ring that stands still says nothing; only a count made elsewhere shows it.

use trawl_dataplane::InterfaceName;

/// Looks, a second apart, that a ring may get nothing of what arrives.
const PATIENCE: u32 = 3;
/// Longest pause between two attempts to set a ring going again, in looks.
const MAX_PATIENCE: u32 = 300;
/// Frames that must have passed by: a NIC may count a few (pause frames, say) that no ring ever gets.
const ENOUGH: u64 = 10;

/// What was counted before a ring, and in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// By the interface, or by the program on it.
    pub before: u64,
    /// Frames that came out of the ring or were counted as lost in it.
    pub ring: u64,
}

/// Watches one ring.
#[derive(Debug)]
pub(crate) struct Stall {
    /// When the ring last moved; while it stands, what the interface counts from.
    moved: Option<Count>,
    /// What the interface counted at the last look.
    last: u64,
    /// Whether the ring stood still at the last look.
    stands: bool,
    still: u32,
    patience: u32,
}

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It moves, or nothing arrives.
    Fine,
    /// It gets nothing of what arrives, for so few looks that it may be chance.
    Suspect,
    /// It stands still.
    Stalled,
}

impl Default for Stall {
    fn default() -> Self {
        Self::with_patience(PATIENCE)
    }
}

impl Stall {
    fn with_patience(patience: u32) -> Self {
        Self {
            moved: None,
            last: 0,
            stands: false,
            still: 0,
            patience,
        }
    }

    /// For the ring that replaces a stalled one: when that one gets nothing either, the next attempt comes later.
    pub fn after_rebind(&self) -> Self {
        Self::with_patience((self.patience * 2).min(MAX_PATIENCE))
    }

    /// Takes a count, once a second.
    pub fn look(&mut self, count: Count) -> Finding {
        let arriving = count.before > std::mem::replace(&mut self.last, count.before);
        let Some(moved) = &mut self.moved else {
            self.moved = Some(count);
            return Finding::Fine;
        };
        if count.ring != moved.ring || count.before < moved.before {
            if count.ring != moved.ring {
                self.patience = PATIENCE;
            }
            self.moved = Some(count);
            self.still = 0;
            self.stands = false;
            return Finding::Fine;
        }
        // The two are not counted in the same moment: what the interface counted late has come out of the ring before.
        if !std::mem::replace(&mut self.stands, true) {
            moved.before = count.before;
        }
        if count.before - moved.before < ENOUGH || !arriving {
            return Finding::Fine;
        }
        self.still += 1;
        if self.still < self.patience {
            Finding::Suspect
        } else {
            Finding::Stalled
        }
    }
}

/// Frames that the interface counts as received, in the network namespace of this process; `None` when it is not there.
pub(crate) fn interface_packets(name: &InterfaceName) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    received(&table, name.as_str())
}

/// Bytes, then packets, are the first columns behind the name.
fn received(table: &str, name: &str) -> Option<u64> {
    let numbers = table.lines().find_map(|line| {
        let (interface, numbers) = line.split_once(':')?;
        (interface.trim() == name).then_some(numbers)
    })?;
    numbers.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(stall: &mut Stall, counts: &[(u64, u64)]) -> Vec<Finding> {
        let look = |&(before, ring)| stall.look(Count { before, ring });
        counts.iter().map(look).collect()
    }

    #[test]
    fn a_ring_that_gets_nothing_of_what_arrives_stands_still_after_a_few_looks() {
        use Finding::*;
        let mut stall = Stall::default();
        let counts = [
            (0, 0),
            (100, 100),
            (200, 100),
            (300, 100),
            (400, 100),
            (500, 100),
            (600, 600),
        ];
        assert_eq!(
            looks(&mut stall, &counts),
            [Fine, Fine, Fine, Suspect, Suspect, Stalled, Fine]
        );
    }

    #[test]
    fn silence_and_a_few_frames_that_no_ring_gets_are_no_stall() {
        let mut stall = Stall::default();
        let counts: Vec<_> = (0..20).map(|i| (100 + i.min(9), 7)).collect();
        assert!(looks(&mut stall, &counts).iter().all(|f| *f == Finding::Fine));
    }

    #[test]
    fn the_last_frames_of_a_burst_are_no_stall_though_the_interface_counted_them_after_the_look() {
        let mut stall = Stall::default();
        // The interface was asked a moment before the ring was, or counts behind the ring.
        let counts = [(0, 0), (19_000, 20_000), (19_900, 20_000), (20_000, 20_000)];
        assert!(
            looks(&mut stall, &counts[..2])
                .iter()
                .all(|f| *f == Finding::Fine)
        );
        looks(&mut stall, &counts[2..]);
        let silence = [(20_000, 20_000); 20];
        assert!(looks(&mut stall, &silence).iter().all(|f| *f == Finding::Fine));

        // Then only what no ring gets, a pause frame now and then.
        looks(&mut stall, &[(39_000, 40_000)]);
        let strays: Vec<_> = (0..20).map(|i| (40_000 + i / 3, 40_000)).collect();
        assert!(looks(&mut stall, &strays).iter().all(|f| *f == Finding::Fine));
    }

    #[test]
    fn a_ring_that_no_rebind_helps_is_tried_ever_more_seldom_until_it_moves() {
        let mut stall = Stall::default();
        for _ in 0..20 {
            stall = stall.after_rebind();
        }
        let counts: Vec<_> = (0..=301).map(|i| (i * 100, 0)).collect();
        let findings = looks(&mut stall, &counts);
        assert_eq!(findings.iter().filter(|f| **f == Finding::Stalled).count(), 1);
        looks(&mut stall, &[(40_000, 9), (41_000, 9), (42_000, 9), (43_000, 9)]);
        assert_eq!(
            stall.look(Count {
                before: 44_000,
                ring: 9
            }),
            Finding::Stalled
        );
    }

    #[test]
    fn counters_that_began_anew_are_no_stall() {
        let mut stall = Stall::default();
        let findings = looks(&mut stall, &[(1000, 5), (3, 5), (5, 5), (8, 5)]);
        assert!(findings.iter().all(|f| *f == Finding::Fine));
    }

    #[test]
    fn received_packets_are_read_by_the_whole_name() {
        let table = "Inter-|   Receive\n face |bytes packets\n    lo:  10 1 0 0\n  eth0: 900 12 0 0 0\n eth01:5 3 0\n";
        assert_eq!(received(table, "eth0"), Some(12));
        assert_eq!(received(table, "eth01"), Some(3));
        assert_eq!(received(table, "eth"), None);
    }
}
