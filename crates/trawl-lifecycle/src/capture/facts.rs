//! What a reconciler knows about one CaptureJob when it asks for a decision, and what it is told to do.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use trawl_api::{CaptureJobSpec, CaptureJobStatus, NetworkTapStatus, TapType};
use trawl_artifact::outcome::Outcome;

use crate::limits::Limits;

/// Everything that was observed, at one moment.
#[derive(Clone, Debug)]
pub struct CaptureFacts<'a> {
    pub generation: i64,
    pub created_at: Timestamp,
    /// Whether the object lives in the installation's namespace.
    pub namespace_ok: bool,
    pub deleting: bool,
    /// Whether our finalizer is on the object.
    pub finalizer: bool,
    pub spec: &'a CaptureJobSpec,
    /// The status as stored, the reporter's part included.
    pub status: &'a CaptureJobStatus,
    /// Name that the Kubernetes Job of this CaptureJob has or will have.
    pub job_name: &'a str,
    pub tap: TapFact<'a>,
    pub node: NodeFact,
    pub job: JobFact,
    pub runner: RunnerFact,
    pub artifact: ArtifactFact,
    pub cleanup: CleanupFact,
    pub now: Timestamp,
    pub limits: Limits,
}

/// The tap that the job names.
#[derive(Clone, Debug)]
pub enum TapFact<'a> {
    Missing,
    Found(TapView<'a>),
}

/// The parts of a NetworkTap that a capture depends on.
#[derive(Clone, Debug)]
pub struct TapView<'a> {
    pub uid: &'a str,
    pub generation: i64,
    pub deleting: bool,
    pub type_: TapType,
    pub status: &'a NetworkTapStatus,
}

/// The node that the job names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeFact {
    Absent,
    NotReady,
    /// The tap's selector does not choose it.
    NotSelected,
    Eligible,
}

/// The Kubernetes Job of the derived name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobFact {
    /// There is none.
    Absent,
    /// One exists that this CaptureJob does not own; it is never adopted.
    Foreign,
    Active,
    Succeeded,
    /// With the reason and message of its `Failed` condition.
    Failed { reason: String, message: String },
}

/// The runner container of the Job's pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunnerFact {
    /// No pod, or its state is not known.
    Unknown,
    /// Not started; with the kubelet's or scheduler's words when there are any.
    Waiting(Option<String>),
    Running,
    Exited { code: i32, reason: Option<String> },
}

/// What a look into the store showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArtifactFact {
    NotLooked,
    Absent,
    /// Nobody could look; says nothing about what is there.
    Unreachable(String),
    /// Read back, re-hashed and recounted; manifest and runner agree with it.
    Verified(VerifiedArtifact),
    /// Only one of capture and manifest is there: its writer was stopped in between.
    Incomplete(String),
    /// The bytes there are not those that were announced.
    Mismatch(String),
}

/// What the operator itself found in the stored object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedArtifact {
    pub profile: String,
    pub key: String,
    pub etag: Option<String>,
    pub version_id: Option<String>,
    pub packet_count: u64,
    pub size_bytes: u64,
    pub sha256: String,
    /// What the manifest says: `Failed` is a partial capture.
    pub outcome: Outcome,
}

/// What is left of a CaptureJob that is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupFact {
    /// Our Kubernetes Job still exists.
    pub job: bool,
    /// At least one of its pods still exists.
    pub pods: bool,
    pub objects: ObjectsFact,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectsFact {
    NotLooked,
    Gone,
    Unreachable,
}

impl CleanupFact {
    /// Before anything was looked at.
    pub const UNKNOWN: Self = Self { job: false, pods: false, objects: ObjectsFact::NotLooked };
}

/// One thing to do, in the order given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    AddFinalizer,
    /// Make ServiceAccount, Role, RoleBinding and Job.
    CreateJob,
    /// Read the stored object back, then decide again with what was found.
    VerifyArtifact,
    /// Remove the wrong object and its manifest; absent objects are fine.
    DeleteArtifact,
    /// Delete the Kubernetes Job together with its pods.
    DeleteJob,
    /// Delete capture and manifest, then decide again.
    DeleteObjects,
    RemoveFinalizer,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The operator's part of the status; `None` leaves it alone.
    pub status: Option<CaptureJobStatus>,
    pub actions: Vec<Action>,
    /// When to look again if nothing happens before.
    pub requeue: Option<Duration>,
}
