//! What became of a CaptureJob.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trawl_artifact::outcome::{FailureReason, Outcome, StopReason};

use crate::common::LocalRef;

/// How far a capture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum JobPhase {
    /// Not started.
    Pending,
    /// Packets are being captured.
    Capturing,
    /// The file is being stored and verified.
    Storing,
    /// The stored artifact was read again and verified.
    Completed,
    /// There is no complete artifact.
    Failed,
    /// The artifact was deleted after its retention.
    Expired,
}

/// What became of the capture. The reporter beside the runner writes resolvedInterface, startedAt, captureEndedAt,
/// runnerResult and two conditions; the operator writes the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptureJobStatus {
    /// Generation of the spec that the operator evaluated last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One word for the progress: Pending, Capturing, Storing, Completed, Failed or Expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<JobPhase>,
    /// UID of the NetworkTap that tapRef means.
    #[serde(rename = "resolvedTapUID", default, skip_serializing_if = "Option::is_none")]
    pub resolved_tap_uid: Option<String>,
    /// Interface that was captured from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_interface: Option<String>,
    /// The batch Job that runs the capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_job_ref: Option<LocalRef>,
    /// When the capture was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<Time>,
    /// When the capture began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When the capture ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_ended_at: Option<Time>,
    /// When the artifact was verified; retention counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// Packets in the artifact, as recounted by the operator. 0 means that none matched; absent means not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_count: Option<i64>,
    /// Bytes of the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// SHA-256 of the artifact in lower-case hex, as recomputed by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Where the verified artifact is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactReference>,
    /// When the artifact will be deleted: completedAt plus retention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_deadline: Option<Time>,
    /// Why there is no complete artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<CaptureFailure>,
    /// What the runner said last; a claim, not a proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_result: Option<RunnerResult>,
    /// Conditions: Accepted, TargetReady, FilterValid, CaptureStarted, ArtifactVerified, Downloadable,
    /// RetentionEnforced. A condition that is missing or of an older generation is stale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A verified artifact in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactReference {
    /// Name of the store, controlled by the installation.
    pub profile: String,
    /// Opaque key in the store, derived by the operator.
    pub key: String,
    /// Entity tag that the store gave; informative, never proof of content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Version of the object, where the store keeps versions.
    #[serde(rename = "versionID", default, skip_serializing_if = "Option::is_none")]
    pub version_id: Option<String>,
    /// When the operator read the object back and found it right.
    pub verified_at: Time,
}

/// Why there is no complete artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptureFailure {
    /// One word for the cause.
    pub reason: FailureReason,
    /// What happened; sanitized, at most 512 bytes.
    pub message: String,
    /// Phase in which it happened.
    pub failed_phase: FailedPhase,
    /// Attempts that were made.
    pub attempts: i32,
}

/// Phase in which a capture failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum FailedPhase {
    /// Before the first packet could be captured.
    Pending,
    /// While capturing.
    Capturing,
    /// While storing or verifying.
    Storing,
}

/// What the runner said last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerResult {
    /// Whether the runner did all that it was asked.
    pub outcome: Outcome,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<FailureReason>,
    /// Which bound ended the capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Packets that the runner wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_count: Option<i64>,
    /// Bytes that the runner wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// SHA-256 that the runner computed, in lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Exit code that the runner announced.
    pub exit_code: i32,
    /// What happened; sanitized, at most 512 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
