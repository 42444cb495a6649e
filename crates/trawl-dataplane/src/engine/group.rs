//! Captures whose filters are equal: each frame is judged once for all of them.

use trawl_filter::Filter;

use super::stock::Stock;
use crate::capture::sink::{Sink, Tally};
use crate::queue::{Frame, Position, Queue};

pub(crate) struct Group {
    pub filter: Filter,
    pub sinks: Vec<Sink>,
    tally: Tally,
    /// The earliest end of a window among the open ones; the only thing that each frame is compared with.
    next_end_ns: u64,
}

impl Group {
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            sinks: Vec::new(),
            tally: Tally::default(),
            next_end_ns: u64::MAX,
        }
    }

    /// Takes a capture in, at the place where this group is.
    pub fn join(&mut self, mut sink: Sink) {
        sink.join(self.tally);
        self.next_end_ns = self.next_end_ns.min(sink.window.end_ns());
        self.sinks.push(sink);
    }

    /// Lets its captures go.
    pub fn part(&mut self) -> impl Iterator<Item = Sink> {
        let tally = self.tally;
        self.sinks.drain(..).map(move |mut sink| {
            sink.leave(tally);
            sink
        })
    }

    /// Shows a frame to all captures: the one with this index in the visit.
    #[inline]
    pub fn offer(&mut self, frame: &Frame<'_>, (index, length): (u64, usize), stock: &mut Stock) {
        if frame.stamp_ns >= self.next_end_ns {
            self.close_until(frame.stamp_ns);
        }
        self.tally.frames += 1;
        if self.filter.matches(frame.bytes, frame.wire_length) {
            self.tally.matched += 1;
            for sink in &mut self.sinks {
                sink.keep(frame, (index, length), self.tally, stock);
            }
        }
    }

    /// Takes out a capture that was stopped during a visit, with the index of the frame that it is to come to next.
    pub fn take_blocked(&mut self) -> Option<(Sink, u64)> {
        let blocked = |s: &Sink| s.blocked_at();
        let (place, index) = (0..).zip(&self.sinks).find_map(|(i, s)| Some((i, blocked(s)?)))?;
        Some((self.sinks.swap_remove(place), index))
    }

    /// Frames were recycled before this group came to them. They count for captures that were closed since as well:
    /// what closed them came behind.
    pub fn overtaken(&mut self, frames: u64) {
        self.sinks.iter_mut().for_each(|sink| sink.overtaken(frames));
    }

    /// The sink of a group that has one.
    fn only(&mut self) -> Option<&mut Sink> {
        self.sinks.first_mut()
    }

    /// Closes captures that are over, and those whose windows end at or before this moment. To be called again when
    /// an end has been moved.
    pub fn close_until(&mut self, seen_until_ns: u64) {
        self.next_end_ns = u64::MAX;
        for sink in self.sinks.iter_mut().filter(|s| s.is_open()) {
            let end_ns = sink.window.end_ns();
            if end_ns <= seen_until_ns || sink.window.is_over() {
                sink.close(self.tally);
            } else {
                self.next_end_ns = self.next_end_ns.min(end_ns);
            }
        }
    }
}

/// A capture behind the live ones, on its way through the history: it began in the past, or its writer was slow.
pub(crate) struct Walker {
    pub alone: Group,
    pub at: Position,
    /// It has come to a frame of its window: all later ones are not before it either.
    entered: bool,
    /// It waits for its writer.
    waits: bool,
}

impl Walker {
    pub fn new(filter: Filter, sink: Sink, at: Position) -> Self {
        let mut alone = Group::new(filter);
        alone.join(sink);
        Self {
            alone,
            at,
            entered: false,
            waits: false,
        }
    }

    /// One that was live until the frame with this number.
    pub fn fallen_back(filter: Filter, sink: Sink, number: u64) -> Self {
        Self {
            entered: true,
            waits: true,
            ..Self::new(filter, sink, Position { number, hint: 0 })
        }
    }

    /// Goes on by so many frames at most, unless its writer is behind.
    pub fn walk(&mut self, queue: &mut impl Queue, limit: u64, stock: &mut Stock) {
        let Some(sink) = self.alone.sinks.first() else {
            return;
        };
        let Some(start_ns) = sink.window.start_ns() else {
            return;
        };
        self.waits &= !sink.has_room(stock);
        self.alone.close_until(start_ns);
        if self.waits || self.alone.sinks.iter().all(Sink::is_closed) {
            return;
        }
        let (group, entered) = (&mut self.alone, &mut self.entered);
        let (from, mut index) = (self.at.number, 0);
        let visited = queue.visit(&mut self.at, limit, &mut |frame| {
            if *entered || frame.stamp_ns >= start_ns {
                *entered = true;
                group.offer(frame, (index, frame.len()), stock);
            }
            index += 1;
        });
        self.alone.overtaken(visited.overtaken);
        let tally = self.alone.tally;
        if let Some(sink) = self.alone.only()
            && let Some(index) = sink.blocked_at()
        {
            sink.join(tally);
            self.waits = true;
            self.at = Position {
                number: from + visited.overtaken + index,
                hint: 0,
            };
        }
    }

    /// Gives up what lies between it and the end.
    pub fn give_up(&mut self, end: Position) {
        if self.entered {
            self.alone.overtaken(end.number.saturating_sub(self.at.number));
        }
    }

    /// Whether it has come to the end of what has arrived.
    pub fn is_at(&self, end: Position) -> bool {
        self.at.number == end.number
    }

    /// Whether it could go on at once.
    pub fn is_eager(&self, end: Position) -> bool {
        !self.waits && !self.is_at(end)
    }

    /// Whether it waits for its writer.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Whether it needs no look at stamps any more.
    pub fn has_entered(&self) -> bool {
        self.entered
    }
}
