//! What the operator tells the pods it makes, as one JSON argument each. None of it is secret.

use serde::{Deserialize, Serialize};

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
    pub duration_ms: u64,
    pub max_size_bytes: u64,
    pub snaplen: u32,
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SensorSource {
    MirrorInterface,
    NodeInterface,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectIdentity {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}
