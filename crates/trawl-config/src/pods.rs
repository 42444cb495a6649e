//! What the operator tells the pods it makes, as one JSON argument each. None of it is secret.

use serde::{Deserialize, Serialize};
pub use trawl_artifact::manifest::ObjectIdentity;

use crate::store::StoreConfig;

/// `trawl-runner --spec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunnerSpec {
    pub job: ObjectIdentity,
    pub tap: ObjectIdentity,
    pub node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Whether the filter is also asked about the packets inside tunnels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub filter_tunnels: bool,
    pub duration_ms: u64,
    pub max_size_bytes: u64,
    pub snaplen: u32,
    /// When the event was that the capture is about, in nanoseconds since the epoch; absent when a person asked, who
    /// means now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_ns: Option<u64>,
    #[serde(default)]
    pub pre_trigger_ms: u64,
    /// Who asked, when known: written into the capture file's comments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<String>,
    /// How long uploads may be retried, in milliseconds.
    pub upload_budget_ms: u64,
    pub store: StoreConfig,
}

/// `trawl-sensor --spec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SensorSpec {
    pub tap: ObjectIdentity,
    pub source: SensorSource,
    pub interface: String,
    pub promiscuous: bool,
    /// The analyzers that the tap enables; the sensor reports on each of them.
    #[serde(default)]
    pub analyzers: Vec<Analyzer>,
}

/// An analyzer by its name in the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Analyzer {
    Suricata,
    Zeek,
}

/// What a sensor says of itself beside the tap's status, one JSON text per node in the ConfigMap
/// [`tap_objects_name`]. The status has no place for it, and the operator turns it into conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SensorNote {
    /// The pod that wrote it; the note of a pod that is gone is history.
    pub pod: String,
    /// zero-copy, copy, generic or af-packet, as captured read it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Why each better mode was refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// What is wrong with the NIC or its settings, each in a few words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nic: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<SensorProblem>,
}

/// Why no frame can arrive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SensorProblem {
    pub kind: SensorProblemKind,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SensorProblemKind {
    InterfaceMissing,
    /// captured does not answer.
    Unreachable,
    Other,
}

/// Name of everything that the operator makes for one tap, from its full UID.
pub fn tap_objects_name(uid: &str) -> String {
    format!("trawl-tap-{uid}")
}

/// Name of everything that the operator makes for one capture, from its full UID.
pub fn capture_objects_name(uid: &str) -> String {
    format!("trawl-capture-{uid}")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SensorSource {
    MirrorInterface,
    NodeInterface,
}
