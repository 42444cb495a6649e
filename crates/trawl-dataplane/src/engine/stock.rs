//! What a receive thread gives to its captures and feeds to fill, and how much of its ring they may keep.

use crate::batch::{Batch, Held};
use crate::capture::blocks::Blocks;
use crate::ring::memory::Memory;

/// Empty buffers kept for later; more than a fast writer ever has on its way.
const SPARE: usize = 12;

/// Copied bytes that may wait for the writer of a capture, all receive threads together.
const MAX_WAITING: usize = 8 << 20;
/// A share of buffers that keeps a writer busy while it waits for the next ones.
const WIDE: usize = 2048;

/// What comes back from writers and senders.
pub(crate) enum Returned {
    Blocks(Blocks),
    /// Of the feed of this number.
    Batch(u64, Batch),
}

/// Belongs to one receive thread.
pub(crate) struct Stock {
    /// Number of the thread.
    pub queue: usize,
    /// What to write at packets.
    pub queue_option: Option<u32>,
    pub memory: Memory,
    /// Copied bytes that a capture may have on their way from this thread to its writer.
    pub may_wait: usize,
    /// Buffers of the ring that are held now.
    pub held: usize,
    most_held: usize,
    /// What one reader may hold.
    share: usize,
    blocks: Vec<Blocks>,
    batches: Vec<Batch>,
}

impl Stock {
    pub fn new(queue: usize, queues: usize, memory: Memory, most_held: usize) -> Self {
        Self {
            queue,
            queue_option: (queues > 1).then_some(queue as u32),
            memory,
            may_wait: MAX_WAITING / queues,
            held: 0,
            most_held,
            share: most_held,
            blocks: Vec::new(),
            batches: Vec::new(),
        }
    }

    /// Divides the allowance, so that no reader can use up what belongs to the others.
    pub fn share_among(&mut self, readers: usize) {
        self.share = self.most_held / readers.max(1);
    }

    /// Whether a reader that holds `own` buffers may hold so many `more`.
    #[inline]
    pub fn may_hold(&self, own: usize, more: usize) -> bool {
        own + more <= self.share && self.held + more <= self.most_held
    }

    /// What one reader may hold.
    pub fn share(&self) -> usize {
        self.share
    }

    /// Whether it is better to wait for buffers than to copy.
    pub fn has_wide_shares(&self) -> bool {
        self.share >= WIDE
    }

    /// Empty blocks.
    pub fn blocks(&mut self, owner: u64) -> Blocks {
        let mut blocks = self.blocks.pop().unwrap_or_default();
        (blocks.owner, blocks.queue) = (owner, self.queue);
        blocks
    }

    /// An empty batch.
    pub fn batch(&mut self) -> Batch {
        self.batches.pop().unwrap_or_else(|| Batch {
            queue: self.queue as u32,
            packets: Vec::new(),
            copied: Vec::new(),
            held: Vec::new(),
            memory: self.memory.clone(),
        })
    }

    /// Takes buffers back; `give` hands what was held to the ring.
    pub fn put(&mut self, returned: Returned, give: impl FnOnce(&mut Vec<Held>)) {
        match returned {
            Returned::Blocks(mut blocks) => {
                self.give_back(&mut blocks.held, give);
                if self.blocks.len() < SPARE {
                    blocks.clear();
                    self.blocks.push(blocks);
                }
            }
            Returned::Batch(_, mut batch) => {
                self.give_back(&mut batch.held, give);
                if self.batches.len() < SPARE {
                    batch.packets.clear();
                    batch.copied.clear();
                    self.batches.push(batch);
                }
            }
        }
    }

    fn give_back(&mut self, held: &mut Vec<Held>, give: impl FnOnce(&mut Vec<Held>)) {
        if !held.is_empty() {
            self.held -= held.len();
            give(held);
            held.clear();
        }
    }
}
