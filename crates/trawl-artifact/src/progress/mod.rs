//! `trawl.capture-progress/v1`: the runner's records, one JSON file each, from which the reporter derives status.
//!
//! Files are written to a temporary name, synced and renamed; they are never replaced. Times are RFC 3339.

mod error;
mod read;
mod write;

pub use error::ProgressError;
pub use read::{ProgressReader, parse};
pub use write::ProgressWriter;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::outcome::{FailureReason, Outcome, StopReason};

/// The only accepted value of [`ProgressRecord::schema`].
pub const PROGRESS_SCHEMA: &str = "trawl.capture-progress/v1";
/// Largest record file in bytes.
pub const MAX_RECORD_BYTES: u64 = 16 * 1024;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProgressRecord {
    pub schema: String,
    /// UID of the CaptureJob; a record of another job is refused.
    pub job_uid: String,
    /// 1 filter, 2 started, 3 ended, 9 result: equal to the number in the file name.
    pub sequence: u32,
    pub recorded_at: Timestamp,
    pub body: ProgressBody,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value")]
pub enum ProgressBody {
    Filter(FilterVerdict),
    Started(CaptureStarted),
    Ended(CaptureEnded),
    Result(CaptureResult),
}

impl ProgressBody {
    /// Sequence number and file name of this kind of record.
    pub fn slot(&self) -> (u32, &'static str) {
        match self {
            Self::Filter(_) => (1, "01-filter.json"),
            Self::Started(_) => (2, "02-started.json"),
            Self::Ended(_) => (3, "03-ended.json"),
            Self::Result(_) => (9, "09-result.json"),
        }
    }
}

/// All record file names in the order in which they appear.
pub const RECORD_FILES: [&str; 4] = [
    "01-filter.json",
    "02-started.json",
    "03-ended.json",
    "09-result.json",
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilterVerdict {
    pub accepted: bool,
    /// Set when refused: whether the program can never match, or the text is wrong.
    #[serde(default)]
    pub rejects_all: bool,
    /// Why it was refused; never echoes the filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaptureStarted {
    pub interface: String,
    /// zero-copy, copy, generic or af-packet.
    pub mode: String,
    pub started_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaptureEnded {
    pub stop_reason: StopReason,
    pub ended_at: Timestamp,
    pub packet_count: u64,
    pub size_bytes: u64,
    pub sha256: String,
}

/// The runner's last word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaptureResult {
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<FailureReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    pub exit_code: i32,
    /// Sanitized, at most 512 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
