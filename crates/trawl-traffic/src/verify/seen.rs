//! Which numbers were seen, as ranges: small as long as few are missing.

use std::collections::BTreeMap;

/// Most ranges that are kept, about 50 MB.
const MAX_RANGES: usize = 1 << 20;

/// What a number was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    New,
    Duplicate,
    /// The numbers lie so wide apart that they cannot all be remembered.
    TooScattered,
}

/// Ranges of numbers, first and last of each. None touches another.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    ranges: BTreeMap<u64, u64>,
    /// The highest range, kept apart since almost every number extends it.
    top: Option<(u64, u64)>,
    count: u64,
}

impl Seen {
    pub fn add(&mut self, number: u64) -> Arrival {
        let arrival = self.place(number);
        self.count += u64::from(arrival == Arrival::New);
        arrival
    }

    fn place(&mut self, number: u64) -> Arrival {
        match &mut self.top {
            Some((_, last)) if last.checked_add(1) == Some(number) => {
                *last = number;
                Arrival::New
            }
            Some((first, last)) if number > *last => {
                if self.ranges.len() >= MAX_RANGES {
                    return Arrival::TooScattered;
                }
                self.ranges.insert(*first, *last);
                self.top = Some((number, number));
                Arrival::New
            }
            Some((first, _)) if number >= *first => Arrival::Duplicate,
            Some(_) => self.place_below(number),
            None => {
                self.top = Some((number, number));
                Arrival::New
            }
        }
    }

    /// A number below the top range.
    fn place_below(&mut self, number: u64) -> Arrival {
        let before = self.ranges.range(..=number).next_back().map(|(f, l)| (*f, *l));
        if before.is_some_and(|(_, last)| last >= number) {
            return Arrival::Duplicate;
        }
        let (mut first, mut last) = (number, number);
        if let Some((f, l)) = before.filter(|(_, l)| l + 1 == number) {
            self.ranges.remove(&f);
            debug_assert_eq!(l + 1, number);
            first = f;
        }
        // Below the top, so there is a number above.
        let above = number + 1;
        if let Some(l) = self.ranges.remove(&above) {
            last = l;
        }
        match &mut self.top {
            Some((top, _)) if last + 1 == *top => *top = first,
            _ if self.ranges.len() >= MAX_RANGES => return Arrival::TooScattered,
            _ => drop(self.ranges.insert(first, last)),
        }
        Arrival::New
    }

    /// Distinct numbers.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Lowest and highest number.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let (top, last) = self.top?;
        let first = self.ranges.first_key_value().map_or(top, |(first, _)| *first);
        Some((first, last))
    }

    /// Holes between lowest and highest, and how many numbers lie in them.
    pub fn gaps(&self) -> (u64, u64) {
        let Some((first, last)) = self.bounds() else {
            return (0, 0);
        };
        // The whole range of numbers has one more than a u64 can say; then there is no gap, or the count is far off it.
        let span = (last - first).saturating_add(1);
        (self.ranges.len() as u64, span.saturating_sub(self.count))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_say_what_a_set_says(numbers in prop::collection::vec(0..60u64, 0..200)) {
            let (mut seen, mut set) = (Seen::default(), BTreeSet::new());
            for number in numbers {
                let new = set.insert(number);
                prop_assert_eq!(seen.add(number), if new { Arrival::New } else { Arrival::Duplicate });
            }
            prop_assert_eq!(seen.count(), set.len() as u64);
            let bounds = set.first().copied().zip(set.last().copied());
            prop_assert_eq!(seen.bounds(), bounds);
            if let Some((first, last)) = bounds {
                let holes = (first..last).filter(|n| set.contains(n) && !set.contains(&(n + 1))).count();
                prop_assert_eq!(seen.gaps(), (holes as u64, last - first + 1 - set.len() as u64));
            }
        }
    }

    #[test]
    fn the_ends_of_the_number_range_are_numbers_like_others() {
        let mut seen = Seen::default();
        for number in [u64::MAX, 0, u64::MAX - 1, 1] {
            assert_eq!(seen.add(number), Arrival::New);
        }
        assert_eq!(seen.add(u64::MAX), Arrival::Duplicate);
        assert_eq!(seen.bounds(), Some((0, u64::MAX)));
        assert_eq!(seen.gaps().0, 1);
    }
}
