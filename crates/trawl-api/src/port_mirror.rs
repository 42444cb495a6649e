//! PortMirror: which switch ports to mirror; the only kind that writes to hardware outside the cluster.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::LocalRef;

#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "trawl.cloud", version = "v1alpha1", kind = "PortMirror", namespaced, status = "PortMirrorStatus")]
#[serde(rename_all = "camelCase")]
pub struct PortMirrorSpec {
    pub provider: MirrorProvider,
    pub device_ref: LocalRef,
    pub sources: Vec<String>,
    pub target: String,
    #[serde(default)]
    pub direction: MirrorDirection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MirrorProvider {
    MikroTikRouterOS7,
    MikroTikRouterOS7SSH,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MirrorDirection {
    #[default]
    Both,
    Ingress,
    Egress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MirrorPhase {
    Pending,
    Active,
    Degraded,
    Error,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortMirrorStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<MirrorPhase>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_sources: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_target: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub observed_directions: BTreeMap<String, MirrorDirection>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_identity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_verified_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
