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

    /// Shows a frame to all captures.
    #[inline]
    pub fn offer(&mut self, frame: &Frame<'_>, length: usize, stock: &mut Stock) {
        if frame.stamp_ns >= self.next_end_ns {
            self.close_until(frame.stamp_ns);
        }
        self.tally.frames += 1;
        if self.filter.matches(frame.bytes, frame.wire_length) {
            self.tally.matched += 1;
            for sink in &mut self.sinks {
                sink.keep(frame, length, self.tally, stock);
            }
        }
    }

    /// Frames were recycled before this group came to them. They count for captures that were closed since as well:
    /// what closed them came behind.
    pub fn overtaken(&mut self, frames: u64) {
        self.sinks.iter_mut().for_each(|sink| sink.overtaken(frames));
    }

    /// Closes captures that are over, and those whose windows end at or before this moment. To be called again when
    /// an end has been moved.
    pub fn close_until(&mut self, seen_until_ns: u64) {
        self.next_end_ns = u64::MAX;
        for sink in self.sinks.iter_mut().filter(|s| !s.is_closed()) {
            let end_ns = sink.window.end_ns();
            if end_ns <= seen_until_ns || sink.window.is_over() {
                sink.close(self.tally);
            } else {
                self.next_end_ns = self.next_end_ns.min(end_ns);
            }
        }
    }
}

/// A capture on its way through the history, until it has come to the end and joins those that are there.
pub(crate) struct Walker {
    pub alone: Group,
    pub at: Position,
    /// It has come to a frame of its window: all later ones are not before it either.
    entered: bool,
}

impl Walker {
    pub fn new(filter: Filter, sink: Sink, at: Position) -> Self {
        let mut alone = Group::new(filter);
        alone.join(sink);
        Self {
            alone,
            at,
            entered: false,
        }
    }

    /// Goes on by so many frames at most.
    pub fn walk(&mut self, queue: &mut impl Queue, limit: u64, stock: &mut Stock) {
        let Some(start_ns) = self.alone.sinks.first().and_then(|s| s.window.start_ns()) else {
            return;
        };
        let (group, entered) = (&mut self.alone, &mut self.entered);
        group.close_until(start_ns);
        if group.sinks.iter().all(Sink::is_closed) {
            return;
        }
        let visited = queue.visit(&mut self.at, limit, &mut |frame| {
            if *entered || frame.stamp_ns >= start_ns {
                *entered = true;
                group.offer(frame, frame.len(), stock);
            }
        });
        self.alone.overtaken(visited.overtaken);
    }

    /// Whether it has come to the end of what has arrived.
    pub fn is_at(&self, end: Position) -> bool {
        self.at.number == end.number
    }

    /// Whether it needs no look at stamps any more.
    pub fn has_entered(&self) -> bool {
        self.entered
    }
}
