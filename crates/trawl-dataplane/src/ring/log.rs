//! The sequence of received buffers, and which frames they make: pure bookkeeping, no memory of frames is touched.

use crate::queue::{Arrived, Position};

/// What a receive ring says of one buffer.
pub(super) trait Descriptor: Copy + Default {
    /// Bytes in it.
    fn length(&self) -> u32;
    /// Whether the frame goes on in the next buffer.
    fn goes_on(&self) -> bool;
}

/// Buffers in the order in which they arrived. Slots are counted on for ever; the oldest are forgotten from the front.
#[derive(Debug)]
pub(super) struct Log<D> {
    ring: Box<[D]>,
    /// Number of the frame that each buffer belongs to; only when frames may have several buffers, else the slot
    /// is the number.
    numbers: Option<Box<[u64]>>,
    head: u64,
    /// Behind the last whole frame.
    whole: u64,
    /// Behind the last buffer, which may be the beginning of a frame.
    tail: u64,
    first: u64,
    next: u64,
    /// Whether what was forgotten last is the beginning of a frame whose rest is still here.
    torn: bool,
}

impl<D: Descriptor> Log<D> {
    /// For as many buffers as there are, so that it never overflows.
    pub fn new(buffers: usize, several_per_frame: bool) -> Self {
        let size = buffers.next_power_of_two();
        Self {
            ring: vec![D::default(); size].into_boxed_slice(),
            numbers: several_per_frame.then(|| vec![0; size].into_boxed_slice()),
            head: 0,
            whole: 0,
            tail: 0,
            first: 0,
            next: 0,
            torn: false,
        }
    }

    fn at(&self, slot: u64) -> usize {
        slot as usize & (self.ring.len() - 1)
    }

    /// Frames that are whole.
    pub fn frames(&self) -> u64 {
        self.next - self.first
    }

    /// Buffers.
    pub fn buffers(&self) -> u64 {
        self.tail - self.head
    }

    /// Number of the oldest frame, also when there is none yet.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Number of the next frame.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Room for new buffers, at most `limit` and as much as lies in one piece.
    pub fn vacant(&mut self, limit: usize) -> &mut [D] {
        let (start, free) = (self.at(self.tail), self.ring.len() - self.buffers() as usize);
        let end = self.ring.len().min(start + limit.min(free));
        &mut self.ring[start..end]
    }

    /// The first `count` of what [`Log::vacant`] gave are filled.
    pub fn commit(&mut self, count: usize) -> Arrived {
        let start = self.at(self.tail);
        let new = &self.ring[start..start + count];
        let bytes = new.iter().map(|d| u64::from(d.length())).sum();
        self.tail += count as u64;
        let before = self.next;
        match &mut self.numbers {
            None => {
                self.next = self.tail;
                self.whole = self.tail;
            }
            Some(numbers) => {
                for (i, descriptor) in new.iter().enumerate() {
                    numbers[start + i] = self.next;
                    if !descriptor.goes_on() {
                        self.next += 1;
                        self.whole = self.tail - (count - 1 - i) as u64;
                    }
                }
            }
        }
        Arrived {
            frames: self.next - before,
            bytes,
        }
    }

    /// The oldest buffers of whole frames, as many as lie in one piece.
    pub fn oldest(&self) -> &[D] {
        let start = self.at(self.head);
        let end = self.ring.len().min(start + (self.whole - self.head) as usize);
        &self.ring[start..end]
    }

    /// Forgets the oldest buffers, at most as many as [`Log::oldest`] gave.
    pub fn forget(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let last = self.head + count as u64 - 1;
        debug_assert!(last < self.whole);
        self.torn = self.ring[self.at(last)].goes_on() && self.numbers.is_some();
        self.first = match &self.numbers {
            None => last + 1,
            Some(numbers) => numbers[self.at(last)] + 1,
        };
        self.head = last + 1;
    }

    /// Whether the oldest buffers are the rest of a frame whose beginning was forgotten.
    pub fn torn(&self) -> bool {
        self.torn
    }

    /// Where the next frame will be.
    pub fn end(&self) -> Position {
        Position {
            number: self.next,
            hint: self.whole + 1,
        }
    }

    /// The slot of the frame at a position, and how many frames between it and the position are gone; the position
    /// moves there.
    pub fn find(&self, at: &mut Position) -> (u64, u64) {
        let overtaken = self.first.saturating_sub(at.number);
        if overtaken > 0 {
            at.number = self.first;
        }
        let slot = if at.number >= self.next {
            at.number = self.next;
            self.whole
        } else if overtaken == 0 && at.hint > self.head && at.hint <= self.whole {
            at.hint - 1
        } else {
            self.slot_of(at.number)
        };
        at.hint = slot + 1;
        (slot, overtaken)
    }

    /// Slot of the first buffer of a frame that is held.
    pub fn slot_of(&self, number: u64) -> u64 {
        match &self.numbers {
            None => number,
            Some(numbers) => search(self.head, self.whole, |slot| numbers[self.at(slot)] >= number),
        }
    }

    /// The buffer in a slot between the oldest and the end.
    pub fn buffer(&self, slot: u64) -> D {
        self.ring[self.at(slot)]
    }

    /// Behind the last whole frame, as a slot.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// The first frame for which `late` holds, given that it holds for all behind that one; its number.
    pub fn first_that(&self, late: impl FnMut(u64) -> bool) -> u64 {
        search(self.first, self.next, late)
    }
}

/// The first of `low..high` for which `holds`, else `high`.
fn search(mut low: u64, mut high: u64, mut holds: impl FnMut(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Says its own frame's number, as the kernel would not.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Buffer {
        frame: u64,
        part: u32,
        goes_on: bool,
    }

    impl Descriptor for Buffer {
        fn length(&self) -> u32 {
            self.part + 1
        }

        fn goes_on(&self) -> bool {
            self.goes_on
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// Buffers arrive; frames of so many each.
        Arrive(usize, u32),
        /// Buffers are wanted back.
        Forget(usize),
        /// A reader goes on by so many frames.
        Read(u64),
    }

    fn step(most: u32) -> impl Strategy<Value = Step> {
        prop_oneof![
            (1usize..20, 1..=most).prop_map(|(n, parts)| Step::Arrive(n, parts)),
            (1usize..20).prop_map(Step::Forget),
            (0u64..10).prop_map(Step::Read),
        ]
    }

    struct Model {
        log: Log<Buffer>,
        /// What arrives next: frame, part, parts.
        next: (u64, u32, u32),
        reader: Position,
        read: u64,
    }

    impl Model {
        fn arrive(&mut self, buffers: usize, parts: u32) {
            let (mut frames, mut bytes) = (0, 0);
            let vacant = self.log.vacant(buffers);
            for place in &mut *vacant {
                let (frame, part, all) = self.next;
                let all = if part == 0 { parts } else { all };
                let goes_on = part + 1 < all;
                *place = Buffer { frame, part, goes_on };
                bytes += u64::from(part + 1);
                frames += u64::from(!goes_on);
                self.next = if goes_on {
                    (frame, part + 1, all)
                } else {
                    (frame + 1, 0, 0)
                };
            }
            let count = vacant.len();
            assert_eq!(self.log.commit(count), Arrived { frames, bytes });
        }

        fn forget(&mut self, buffers: usize) {
            let run = self.log.oldest().len().min(buffers);
            self.log.forget(run);
            while self.log.torn() {
                assert!(self.log.oldest()[0].part > 0);
                self.log.forget(1);
            }
        }

        fn read(&mut self, limit: u64) {
            let before = self.reader.number;
            let (mut slot, overtaken) = self.log.find(&mut self.reader);
            assert_eq!(before + overtaken, self.reader.number);
            for _ in 0..limit {
                if slot == self.log.whole() {
                    break;
                }
                let mut parts = 0;
                loop {
                    let buffer = self.log.buffer(slot);
                    assert_eq!((buffer.frame, buffer.part), (self.reader.number, parts));
                    (slot, parts) = (slot + 1, parts + 1);
                    if !buffer.goes_on {
                        break;
                    }
                }
                self.reader.number += 1;
                self.read += 1;
            }
            self.reader.hint = slot + 1;
        }

        fn check(&self) {
            assert_eq!(self.log.next(), self.next.0);
            if self.log.frames() > 0 {
                let oldest = self.log.buffer(self.log.slot_of(self.log.first()));
                assert_eq!((oldest.frame, oldest.part), (self.log.first(), 0));
                let middle = self.log.first() + self.log.frames() / 2;
                assert_eq!(self.log.buffer(self.log.slot_of(middle)).frame, middle);
                assert_eq!(self.log.first_that(|n| n >= middle), middle);
            }
            let mut looked = Position {
                number: self.reader.number,
                hint: 0,
            };
            let mut hinted = self.reader;
            assert_eq!(self.log.find(&mut looked), self.log.find(&mut hinted));
            assert_eq!(looked, hinted);
        }
    }

    fn run(steps: Vec<Step>, several: bool) {
        let mut model = Model {
            log: Log::new(50, several),
            next: (0, 0, 0),
            reader: Position::default(),
            read: 0,
        };
        for step in steps {
            match step {
                Step::Arrive(buffers, parts) => model.arrive(buffers, parts),
                Step::Forget(buffers) => model.forget(buffers),
                Step::Read(limit) => model.read(limit),
            }
            model.check();
        }
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn a_reader_sees_every_frame_that_is_still_there_whole_and_in_order(
            steps in prop::collection::vec(step(1), 1..200),
        ) {
            run(steps, false);
        }

        #[test]
        fn frames_of_several_buffers_are_never_seen_or_forgotten_in_part(
            steps in prop::collection::vec(step(5), 1..200),
        ) {
            run(steps, true);
        }
    }

    fn cases() -> ProptestConfig {
        ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        }
    }
}
