//! The part of a capture that one receive thread has: what it has counted, and the blocks that it fills.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use trawl_control::StopReason;

use super::blocks::Blocks;
use super::window::Window;
use super::writer::{Message, Part};
use crate::engine::stock::Stock;
use crate::pcapng;
use crate::queue::{Frame, Losses};

/// Packets from this length on are held rather than copied: below, a copy costs less than two visits to the ring.
const HOLD_FROM: usize = 256;

/// Frames that a group has judged, and those of them that matched; sinks know their own by the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub frames: u64,
    pub matched: u64,
}

/// Whether a sink takes frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Its writer is behind: it was stopped before the frame with this index in the visit.
    Blocked(u64),
    Closed,
}

pub(crate) struct Sink {
    pub window: Arc<Window>,
    blocks: Blocks,
    out: Sender<Message>,
    /// What is on its way to the writer or back.
    waiting_bytes: usize,
    waiting_held: usize,
    /// The tally of its group when it came into it.
    base: Tally,
    own: Tally,
    lost_history: u64,
    state: State,
}

impl Sink {
    pub fn new(window: Arc<Window>, out: Sender<Message>, stock: &mut Stock) -> Self {
        Self {
            blocks: stock.blocks(window.id),
            window,
            out,
            waiting_bytes: 0,
            waiting_held: 0,
            base: Tally::default(),
            own: Tally::default(),
            lost_history: 0,
            state: State::Open,
        }
    }

    /// Whether it takes no more frames of this queue.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether it takes frames now.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Before which frame of the visit it was stopped, if it was.
    pub fn blocked_at(&self) -> Option<u64> {
        match self.state {
            State::Blocked(index) => Some(index),
            _ => None,
        }
    }

    /// Comes into a group that has this tally, or goes on in it.
    pub fn join(&mut self, tally: Tally) {
        self.base = tally;
        if self.state != State::Closed {
            self.state = State::Open;
        }
    }

    /// Leaves its group. What a group judges after the sink was stopped or closed is not counted for it.
    pub fn leave(&mut self, tally: Tally) {
        if self.is_open() {
            self.own.frames += tally.frames - self.base.frames;
            self.own.matched += tally.matched - self.base.matched;
            self.base = tally;
        }
    }

    /// Takes no more frames of this queue.
    pub fn close(&mut self, tally: Tally) {
        self.leave(tally);
        self.state = State::Closed;
    }

    fn block(&mut self, index: u64, before: Tally, stock: &mut Stock) {
        self.leave(before);
        self.state = State::Blocked(index);
        self.flush(stock);
    }

    /// Whether its writer has made room for more than a few frames.
    pub fn has_room(&self, stock: &Stock) -> bool {
        self.waiting_bytes <= stock.may_wait / 2 && self.waiting_held <= stock.share() / 2
    }

    /// Frames of the window were recycled before this capture came to them.
    pub fn overtaken(&mut self, frames: u64) {
        self.lost_history += frames;
    }

    /// Takes a frame that matched, or ends the capture by it, or stops before it when the writer is behind: then the
    /// frame stays where it is, and the capture comes to it again. The tally includes the frame, which is the one
    /// with this index in the visit.
    #[inline]
    pub fn keep(
        &mut self,
        frame: &Frame<'_>,
        (index, length): (u64, usize),
        tally: Tally,
        stock: &mut Stock,
    ) {
        if !self.is_open() {
            return;
        }
        let before = Tally {
            frames: tally.frames - 1,
            matched: tally.matched - 1,
        };
        if self.window.is_over() {
            return self.close(before);
        }
        let kept = self.window.kept(length);
        if self.blocks.is_full() {
            self.flush(stock);
        }
        let parts = 1 + frame.more.len();
        let hold = kept >= HOLD_FROM && stock.may_hold(self.waiting_held + self.blocks.held.len(), parts);
        if !hold && !self.may_copy(frame, kept, stock) {
            return self.block(index, before, stock);
        }
        let block = pcapng::packet_length(kept, stock.queue_option);
        if !self.window.reserve(block as u64) {
            self.window.end_now(StopReason::Size, frame.stamp_ns, None);
            return self.close(tally);
        }
        if hold && self.blocks.hold(frame, kept, stock.queue_option, &stock.memory) {
            stock.held += parts;
        } else {
            self.blocks.copy(frame, kept, stock.queue_option);
        }
    }

    /// Whether a copy may be made. With nothing on its way there is nothing to wait for, so it always may.
    fn may_copy(&self, frame: &Frame<'_>, kept: usize, stock: &Stock) -> bool {
        let worth_waiting = kept >= HOLD_FROM && frame.holder.is_some() && stock.has_wide_shares();
        let fits = self.waiting_bytes + self.blocks.bytes.len() + kept <= stock.may_wait;
        (fits && !worth_waiting) || (self.waiting_bytes == 0 && self.blocks.bytes.len() < stock.may_wait)
    }

    /// Gives what there is to the writer.
    pub fn flush(&mut self, stock: &mut Stock) {
        if self.blocks.is_empty() {
            return;
        }
        let full = std::mem::replace(&mut self.blocks, stock.blocks(self.window.id));
        self.waiting_bytes += full.bytes.len();
        self.waiting_held += full.held.len();
        let _ = self.out.send(Message::Blocks(full));
    }

    /// Blocks of this capture came back.
    pub fn returned(&mut self, blocks: &Blocks) {
        self.waiting_bytes -= blocks.bytes.len();
        self.waiting_held -= blocks.held.len();
    }

    /// Hands the last blocks and the totals of this queue to the writer.
    pub fn finish(mut self, losses: Losses, clock_source: &'static str, stock: &mut Stock) {
        debug_assert!(self.is_closed());
        self.flush(stock);
        let _ = self.out.send(Message::Part(Part {
            frames: self.own.frames,
            matched: self.own.matched,
            lost_history: self.lost_history,
            losses,
            clock_source,
        }));
    }
}
