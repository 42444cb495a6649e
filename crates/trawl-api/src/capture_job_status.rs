//! What became of a CaptureJob.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trawl_artifact::outcome::{FailureReason, Outcome, StopReason};

use crate::common::LocalRef;

/// One word for the progress. Pending: not started. Capturing: packets are being captured. Storing: the file is being
/// stored and verified. Completed: the stored file was read again and verified. Failed: there is no complete
/// artifact. Expired: the artifact was deleted after its retention.
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
/// runnerResult and the conditions FilterValid and CaptureStarted; the operator writes the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptureJobStatus {
    /// Generation of the spec that the operator evaluated last. Lower than metadata.generation: what follows is about an
    /// older spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One word for the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<JobPhase>,
    /// UID of the NetworkTap that tapRef meant when the capture was accepted. Absent: not resolved yet.
    #[serde(rename = "resolvedTapUID", default, skip_serializing_if = "Option::is_none")]
    pub resolved_tap_uid: Option<String>,
    /// Name of the interface that was captured from. Absent: the capture has not started. Written by the reporter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_interface: Option<String>,
    /// The batch Job that runs the capture. Absent: not created yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_job_ref: Option<LocalRef>,
    /// When the capture was asked for. The hourly limit of a policy counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<Time>,
    /// When the capture began. Absent: it has not. Written by the reporter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When the capture ended. Absent: it has not. Written by the reporter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_ended_at: Option<Time>,
    /// When the artifact was verified; retention counts from here. Absent: it was not, or not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// Packets in the artifact, as recounted by the operator. 0: none matched. Absent: not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_count: Option<i64>,
    /// Size of the artifact in bytes, as read back by the operator. Absent: not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// SHA-256 of the artifact as 64 lower-case hex digits, recomputed by the operator. Absent: not computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Where the verified artifact is. Absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactReference>,
    /// When the artifact will be deleted: completedAt plus retention. Absent: there is no artifact to delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_deadline: Option<Time>,
    /// Why there is no complete artifact. Absent: the capture has not failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<CaptureFailure>,
    /// What the runner said last; a claim, not a proof. Absent: it said nothing yet. Written by the reporter.
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
    /// Entity tag that the store gave; informative, never proof of content. Absent: the store gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Version of the object. Absent: the store keeps no versions.
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
    /// What happened, at most 512 bytes and without secrets.
    pub message: String,
    /// Phase in which it happened. Pending: before the first packet. Capturing: while capturing. Storing: while storing or
    /// verifying.
    pub failed_phase: FailedPhase,
    /// Number of attempts that were made.
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
    /// Whether the runner did all that it was asked: Succeeded or Failed.
    pub outcome: Outcome,
    /// Why it did not. Absent: it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<FailureReason>,
    /// What ended the capture. Duration or Size: that bound was reached. Cancelled: it was told to stop. Error: it could
    /// not go on. Absent: it has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Packets that the runner wrote. Absent: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_count: Option<i64>,
    /// Bytes that the runner wrote. Absent: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// SHA-256 that the runner computed, as 64 lower-case hex digits. Absent: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Exit code that the runner announced, 0 to 255; 0 is success.
    pub exit_code: i32,
    /// What happened, at most 512 bytes and without secrets. Absent: nothing worth saying.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
