//! One audit record.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Value of [`Record::schema`].
pub const SCHEMA: &str = "trawl.audit/v1";

/// What was done or asked for; closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Action {
    /// A NetworkTap is created.
    #[serde(rename = "networktap.create")]
    NetworkTapCreate,
    /// A NetworkTap is changed.
    #[serde(rename = "networktap.update")]
    NetworkTapUpdate,
    /// A NetworkTap is deleted.
    #[serde(rename = "networktap.delete")]
    NetworkTapDelete,
    /// A CapturePolicy is created disarmed.
    #[serde(rename = "capturepolicy.create")]
    CapturePolicyCreate,
    /// A CapturePolicy is changed, and stays armed or disarmed as it was.
    #[serde(rename = "capturepolicy.update")]
    CapturePolicyUpdate,
    /// A CapturePolicy is deleted.
    #[serde(rename = "capturepolicy.delete")]
    CapturePolicyDelete,
    /// A CapturePolicy is armed, or created armed.
    #[serde(rename = "capturepolicy.arm")]
    CapturePolicyArm,
    /// A CapturePolicy is disarmed.
    #[serde(rename = "capturepolicy.disarm")]
    CapturePolicyDisarm,
    /// A person asks for a capture.
    #[serde(rename = "capturejob.manual_create")]
    CaptureJobManualCreate,
    /// A policy asks for a capture.
    #[serde(rename = "capturejob.policy_create")]
    CaptureJobPolicyCreate,
    /// A CaptureJob goes to another phase.
    #[serde(rename = "capturejob.transition")]
    CaptureJobTransition,
    /// An artifact is handed out.
    #[serde(rename = "artifact.download")]
    ArtifactDownload,
    /// An artifact is deleted because its time is over.
    #[serde(rename = "artifact.expire")]
    ArtifactExpire,
    /// The retention of a CaptureJob is changed.
    #[serde(rename = "retention.change")]
    RetentionChange,
    /// A PortMirror is created.
    #[serde(rename = "portmirror.create")]
    PortMirrorCreate,
    /// A PortMirror is changed.
    #[serde(rename = "portmirror.update")]
    PortMirrorUpdate,
    /// A PortMirror is deleted.
    #[serde(rename = "portmirror.delete")]
    PortMirrorDelete,
    /// A switch is told to mirror.
    #[serde(rename = "portmirror.configure")]
    PortMirrorConfigure,
    /// A switch is told to stop mirroring.
    #[serde(rename = "portmirror.revert")]
    PortMirrorRevert,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It may happen.
    Allowed,
    /// It is refused.
    Denied,
    /// It happened.
    Succeeded,
    /// It was tried and did not happen.
    Failed,
}

/// Who asked, as the API server authenticated them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// User name.
    pub username: String,
    /// UID of the user, when the authenticator states one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// What it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name; empty while only a generateName is known.
    pub name: String,
    /// UID; empty before the object exists.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// What is to be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// When it was decided.
    pub recorded_at: Timestamp,
    /// What.
    pub action: Action,
    /// What became of it.
    pub decision: Decision,
    /// One word of the closed list of reasons, or of the refusal.
    pub reason: String,
    /// One sanitized sentence of at most 512 bytes; never a filter or a template.
    pub message: String,
    /// Who.
    pub actor: Actor,
    /// About what.
    pub resource: Resource,
    /// Identity of the request that it belongs to.
    #[serde(rename = "requestID")]
    pub request_id: String,
    /// Equal for retries of the same act.
    pub stable_key: String,
    /// Program that decided, for example `trawl-operator`.
    pub initiated_by: String,
}

/// An entry as a ledger keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was recorded.
    #[serde(flatten)]
    pub entry: Entry,
    /// Where the ledger keeps it.
    pub ledger_key: String,
    /// When the ledger had it safe.
    pub committed_at: Timestamp,
    /// SHA-256 in lower-case hex of the record that the same writer committed before; empty for the first.
    pub previous: String,
}
