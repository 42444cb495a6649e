//! NetworkTap: where to watch.

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::LocalRef;

#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "trawl.cloud", version = "v1alpha1", kind = "NetworkTap", namespaced, status = "NetworkTapStatus")]
#[serde(rename_all = "camelCase")]
pub struct NetworkTapSpec {
    #[serde(default)]
    pub mode: TapMode,
    #[serde(rename = "type")]
    pub type_: TapType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror_interface: Option<InterfaceSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_interface: Option<InterfaceSource>,
    pub analyzers: AnalyzerSelection,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TapMode {
    #[default]
    Passive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TapType {
    MirrorInterface,
    NodeInterface,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceSource {
    pub interface: String,
    #[serde(default)]
    pub promiscuous: bool,
    pub node_selector: LabelSelector,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalyzerSelection {
    #[serde(default)]
    pub suricata: AnalyzerConfig,
    #[serde(default)]
    pub zeek: AnalyzerConfig,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalyzerConfig {
    #[serde(default)]
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_content: Option<CustomContentRef>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CustomContentRef {
    pub reference: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TapPhase {
    Pending,
    Active,
    Degraded,
    Error,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkTapStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<TapPhase>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_targets: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_targets: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_packet_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetStatus>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One node's report, owned by the sensor there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetStatus {
    pub node_name: String,
    pub interface: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_ref: Option<LocalRef>,
    pub reporter_instance: String,
    pub heartbeat_time: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_packet_time: Option<Time>,
    pub packets_observed: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_drops: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_observed: Option<i64>,
    pub duplication: Duplication,
    pub rejected_records: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub analyzers: Vec<AnalyzerStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Duplication {
    Unknown,
    NotDetected,
    Suspected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AnalyzerName {
    Suricata,
    Zeek,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalyzerStatus {
    pub name: AnalyzerName,
    pub healthy: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_record_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_fetched_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_content_digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
