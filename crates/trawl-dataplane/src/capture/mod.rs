//! One capture: what it keeps, the part that each receive thread has in it, and the thread that writes its file.

pub(crate) mod blocks;
pub(crate) mod losses;
mod output;
pub(crate) mod sink;
pub(crate) mod statistics;
pub(crate) mod window;
pub(crate) mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use trawl_control::Ended;
use trawl_filter::Filter;

use crate::pcapng::{self, Header};
use window::Window;

/// Called once, from the writer thread, when the file is finished.
pub type OnEnd = Box<dyn FnOnce(Ended) + Send>;

/// What a capture keeps and when it ends.
#[derive(Clone, Debug)]
pub struct CaptureSpec {
    /// The compiled filter.
    pub filter: Filter,
    /// Its text, for the file.
    pub filter_text: String,
    /// The moment of the trigger in nanoseconds since the epoch, not in the future; absent is now.
    pub trigger_ns: Option<u64>,
    /// How far before the trigger the window begins, in nanoseconds.
    pub pre_trigger_ns: u64,
    /// How far after the trigger the window ends, in nanoseconds.
    pub duration_ns: u64,
    /// Upper bound of the file in bytes.
    pub max_size: u64,
    /// Bytes kept of each packet; 0 for all.
    pub snaplen: u32,
    /// Comments for the file.
    pub comments: Vec<String>,
    /// Interface name, for the file.
    pub interface: String,
    /// Program and version, for the file.
    pub application: String,
    /// Link speed in bits per second, when known.
    pub speed: Option<u64>,
}

impl CaptureSpec {
    /// Section header and interface description of the file.
    pub(crate) fn file_header(&self) -> Vec<u8> {
        let uname = rustix::system::uname();
        let os = format!(
            "{} {}",
            uname.sysname().to_string_lossy(),
            uname.release().to_string_lossy()
        );
        pcapng::header(&Header {
            application: &self.application,
            os: &os,
            comments: &self.comments,
            interface: &self.interface,
            speed: self.speed,
            filter: &self.filter_text,
            snaplen: self.snaplen,
        })
    }
}

/// A capture that is under way.
#[derive(Clone, Debug)]
pub struct Running {
    /// Names it towards [`crate::Engine::cancel`].
    pub id: u64,
    /// When the capture was begun, in nanoseconds since the epoch.
    pub started_at_ns: u64,
    /// The start of the window that was asked for.
    pub requested_from_ns: u64,
    /// The earliest moment that the file covers: the requested one, or as far back as the history reached.
    pub covered_from_ns: u64,
    pub(crate) window: Arc<Window>,
}

impl Running {
    /// Packets and bytes in the file so far.
    #[must_use]
    pub fn written(&self) -> (u64, u64) {
        let progress = &self.window.progress;
        (
            progress.packets.load(Ordering::Relaxed),
            progress.bytes.load(Ordering::Relaxed),
        )
    }
}
