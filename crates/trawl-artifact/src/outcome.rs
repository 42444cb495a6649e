//! The words in which a capture's end is told, shared by progress records, manifest and CaptureJob status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which bound ended the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum StopReason {
    Duration,
    Size,
    Cancelled,
    Error,
}

/// Whether the runner did all that it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    Succeeded,
    Failed,
}

/// Why a CaptureJob failed. Closed: existing values are never repurposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum FailureReason {
    InvalidBounds,
    InterfaceUnavailable,
    InvalidFilter,
    CaptureFailed,
    SizeExceeded,
    UploadFailed,
    InternalError,
    ArtifactMissing,
    ArtifactMismatch,
    TapInactive,
    TargetUnavailable,
}

impl FailureReason {
    /// The runner's process exit code for this reason.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::InvalidBounds => 10,
            Self::InterfaceUnavailable => 11,
            Self::InvalidFilter => 12,
            Self::CaptureFailed => 13,
            Self::SizeExceeded => 14,
            Self::UploadFailed => 15,
            _ => 16,
        }
    }

    /// What a runner's exit code says; `None` for 0 and for codes that the runner does not use.
    pub fn from_exit_code(code: i32) -> Option<Self> {
        Some(match code {
            10 => Self::InvalidBounds,
            11 => Self::InterfaceUnavailable,
            12 => Self::InvalidFilter,
            13 => Self::CaptureFailed,
            14 => Self::SizeExceeded,
            15 => Self::UploadFailed,
            16 => Self::InternalError,
            _ => return None,
        })
    }
}
