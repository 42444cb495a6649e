//! Where copies of the traffic go that are no files: an analyzer's interface.

use crate::batch::Batch;

/// Takes batches of frames, on a thread of its own.
pub trait Outlet: Send {
    /// Sends what can be sent without waiting for the reader.
    fn send(&mut self, batch: &Batch) -> Sent;

    /// What is wrong now, in words. Asked about once a second while there is nothing to send, so that an outlet that
    /// nobody reads any more is known before the next frame comes.
    fn look(&mut self) -> Option<String> {
        None
    }
}

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames that went out.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that the reader had no room for.
    pub dropped: u64,
    /// What is wrong now, in words.
    pub problem: Option<String>,
}
