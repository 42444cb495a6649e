//! Records for the reporter. A record that cannot be written costs its news, never the evidence.

use std::sync::Mutex;

use jiff::Timestamp;
use trawl_artifact::progress::{ProgressBody, ProgressError, ProgressWriter};

pub(crate) struct Records {
    writer: ProgressWriter,
    /// Stamps never run backwards, even when the clock is set.
    latest: Mutex<Timestamp>,
}

impl Records {
    pub(crate) fn new(writer: ProgressWriter) -> Self {
        Self {
            writer,
            latest: Mutex::new(Timestamp::UNIX_EPOCH),
        }
    }

    pub(crate) fn write(&self, body: ProgressBody) {
        let file = body.slot().1;
        let now = match self.latest.lock() {
            Ok(mut latest) => {
                *latest = Timestamp::now().max(*latest);
                *latest
            }
            Err(_) => Timestamp::now(),
        };
        match self.writer.write(body, now) {
            Ok(()) => tracing::info!(file, "progress"),
            Err(error @ ProgressError::AlreadyWritten { .. }) => tracing::debug!(%error, "progress"),
            Err(error) => tracing::error!(%error, "progress record not written"),
        }
    }
}
