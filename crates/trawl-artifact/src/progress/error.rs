//! Why records were refused.

use std::io;

use super::{MAX_RECORD_BYTES, PROGRESS_SCHEMA};

/// What is wrong with a progress record. Each names the file.
#[derive(Debug, thiserror::Error)]
pub enum ProgressError {
    #[error("{file}: already written; records are never replaced")]
    AlreadyWritten { file: &'static str },
    #[error("{file}: {source}")]
    Io { file: &'static str, source: io::Error },
    #[error("{file}: not a regular file (symbolic links are refused)")]
    NotRegular { file: &'static str },
    #[error("{file}: larger than {MAX_RECORD_BYTES} bytes")]
    TooLarge { file: &'static str },
    #[error("{file}: not a record of {PROGRESS_SCHEMA}: {source}")]
    Malformed {
        file: &'static str,
        source: serde_json::Error,
    },
    #[error("{file}: schema: only {PROGRESS_SCHEMA} is understood")]
    Schema { file: &'static str },
    #[error("{file}: jobUid: belongs to another CaptureJob")]
    WrongJob { file: &'static str },
    #[error("{file}: sequence {found} or body does not belong in this file (sequence {expected})")]
    WrongSequence {
        file: &'static str,
        expected: u32,
        found: u32,
    },
    #[error("{file}: out of order: {problem}")]
    WrongOrder {
        file: &'static str,
        problem: &'static str,
    },
    #[error("{file}: {field}: {problem}")]
    Field {
        file: &'static str,
        field: &'static str,
        problem: &'static str,
    },
}
