//! The blocks of a ring that are held back: which frames they have, without looking at them.

use std::collections::VecDeque;

use crate::queue::Position;

/// A place in a block fits below these bits of a hint; the number of the block, from 1 on, is above.
const PLACE_BITS: u32 = 24;

/// A block that the kernel has filled and not got back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    /// Number of its first frame.
    pub first: u64,
    /// Frames that count.
    pub frames: u64,
    /// Where its first frame is.
    pub place: usize,
    /// Stamp of its last frame, not less than that of any frame before.
    pub last_ns: u64,
    /// Up to which place its frames have been mended, and the stamp of the last one of those.
    pub mended: (usize, u64),
}

/// Blocks in the order in which the kernel fills them. They are counted on for ever; the oldest go back first.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    held: VecDeque<Filled>,
    head: u64,
    next: u64,
    last_ns: u64,
}

impl Blocks {
    /// Number of the block that the kernel fills next.
    pub fn tail(&self) -> u64 {
        self.head + self.held.len() as u64
    }

    /// Blocks held.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Number of the oldest frame, also when there is none yet.
    pub fn first(&self) -> u64 {
        self.held.front().map_or(self.next, |b| b.first)
    }

    /// Number of the next frame.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Stamp of the newest frame; 0 when there was none.
    pub fn newest_ns(&self) -> u64 {
        self.last_ns
    }

    /// Takes in the block at the tail.
    pub fn push(&mut self, frames: u64, place: usize, last_ns: u64) {
        let before = self.last_ns;
        if frames > 0 {
            self.last_ns = before.max(last_ns);
        }
        self.held.push_back(Filled {
            first: self.next,
            frames,
            place,
            last_ns: self.last_ns,
            mended: (place, before),
        });
        self.next += frames;
    }

    /// Gives up the oldest block; its number.
    pub fn pop(&mut self) -> Option<u64> {
        self.held.pop_front()?;
        self.head += 1;
        Some(self.head - 1)
    }

    /// Stamps of what comes may be less than those of what was there. Only when no block is held.
    pub fn begin_anew(&mut self) {
        debug_assert!(self.held.is_empty());
        self.last_ns = 0;
    }

    /// A held block by its number.
    pub fn get(&mut self, number: u64) -> Option<&mut Filled> {
        self.held
            .get_mut(usize::try_from(number.checked_sub(self.head)?).ok()?)
    }

    /// Where the next frame will be.
    pub fn end(&self) -> Position {
        Position {
            number: self.next,
            hint: hint(self.tail(), 0),
        }
    }

    /// The block of a position, the place in it (0: its first frame), and how many frames before are gone; the
    /// position moves to the oldest frame when it must.
    pub fn find(&self, at: &mut Position) -> (u64, usize, u64) {
        let overtaken = self.first().saturating_sub(at.number);
        if overtaken > 0 {
            at.number = self.first();
        }
        let (block, place) = (at.hint >> PLACE_BITS, at.hint & ((1 << PLACE_BITS) - 1));
        if overtaken == 0 && block > self.head && block <= self.tail() + 1 {
            return (block - 1, place as usize, 0);
        }
        let behind = self.held.partition_point(|b| b.first + b.frames <= at.number);
        (self.head + behind as u64, 0, overtaken)
    }

    /// The first block whose last frame is stamped at or after this moment.
    pub fn seek(&self, stamp_ns: u64) -> u64 {
        self.head + self.held.partition_point(|b| b.last_ns < stamp_ns) as u64
    }
}

/// Of a place in a block.
pub(super) fn hint(block: u64, place: usize) -> u64 {
    ((block + 1) << PLACE_BITS) | place as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Blocks {
        let mut blocks = Blocks::default();
        for (frames, last_ns) in [(3, 30), (0, 99), (4, 20), (2, 60)] {
            blocks.push(frames, 48, last_ns);
        }
        blocks
    }

    #[test]
    fn frames_are_counted_through_and_stamps_never_go_back() {
        let mut blocks = blocks();
        let rows: Vec<_> = (0..4).map(|n| *blocks.get(n).unwrap()).collect();
        assert_eq!(rows.iter().map(|b| b.first).collect::<Vec<_>>(), [0, 3, 3, 7]);
        // The moment at which an empty block was given up is nobody's stamp.
        assert_eq!(
            rows.iter().map(|b| b.last_ns).collect::<Vec<_>>(),
            [30, 30, 30, 60]
        );
        assert_eq!((blocks.next(), blocks.newest_ns(), blocks.tail()), (9, 60, 4));
        assert_eq!([0, 30, 31, 60, 61].map(|ns| blocks.seek(ns)), [0, 0, 3, 3, 4]);
    }

    #[test]
    fn stamps_go_back_when_the_ring_begins_anew_and_only_then() {
        let mut blocks = blocks();
        while blocks.pop().is_some() {}
        blocks.begin_anew();
        assert_eq!((blocks.first(), blocks.next(), blocks.newest_ns()), (9, 9, 0));
        blocks.push(1, 48, 10);
        assert_eq!(blocks.get(4).unwrap().last_ns, 10);
        assert_eq!((blocks.seek(5), blocks.seek(11)), (4, 5));
    }

    #[test]
    fn a_position_finds_its_block_with_and_without_a_hint() {
        let mut blocks = blocks();
        let look = |number| Position { number, hint: 0 };
        assert_eq!(blocks.find(&mut look(5)), (2, 0, 0));
        let hint = hint(2, 700);
        assert_eq!(blocks.find(&mut Position { number: 5, hint }), (2, 700, 0));
        assert_eq!(blocks.find(&mut blocks.end()), (4, 0, 0));
        // Overtaken: the hint is worth nothing any more.
        for number in 0..3 {
            assert_eq!(blocks.pop(), Some(number));
        }
        let mut late = Position { number: 5, hint };
        assert_eq!(blocks.find(&mut late), (3, 0, 2));
        assert_eq!(late.number, 7);
        assert!(blocks.get(2).is_none());
        assert_eq!((blocks.pop(), blocks.pop(), blocks.first()), (Some(3), None, 9));
    }

    #[test]
    fn the_end_of_a_block_that_was_given_back_meanwhile_is_the_start_of_the_next() {
        let mut blocks = blocks();
        let mut read = Position {
            number: 3,
            hint: hint(0, 900),
        };
        blocks.pop();
        assert_eq!(blocks.find(&mut read), (2, 0, 0));
    }
}
