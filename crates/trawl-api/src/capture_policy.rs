//! CapturePolicy: what should trigger evidence.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{common::LocalRef, quantities::{ByteSize, GoDuration}};

#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "trawl.cloud", version = "v1alpha1", kind = "CapturePolicy", plural = "capturepolicies", namespaced, status = "CapturePolicyStatus")]
#[serde(rename_all = "camelCase")]
pub struct CapturePolicySpec {
    pub tap_ref: LocalRef,
    #[serde(default)]
    pub armed: bool,
    pub trigger: Trigger,
    pub capture: CaptureBounds,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<GoDuration>,
    pub rate_limit: RateLimit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TriggerType {
    SuricataAlert,
    HubbleDrop,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    #[serde(rename = "type")]
    pub type_: TriggerType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suricata_alert: Option<SuricataAlertTrigger>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hubble_drop: Option<HubbleDropTrigger>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuricataAlertTrigger {
    pub severities: Vec<i32>,
    #[serde(rename = "ruleIDs", default, skip_serializing_if = "Vec::is_empty")]
    pub rule_ids: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubbleDropTrigger {
    pub reasons: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_namespaces: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Threshold {
    pub count: i32,
    pub window: GoDuration,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptureBounds {
    pub duration: GoDuration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_template: Option<String>,
    #[serde(default)]
    pub snaplen: i32,
    pub max_size: ByteSize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_trigger: Option<GoDuration>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimit {
    pub max_captures_per_hour: i32,
    pub cooldown: GoDuration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PolicyPhase {
    Disarmed,
    Armed,
    Degraded,
    RateLimited,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapturePolicyStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PolicyPhase>,
    #[serde(rename = "resolvedTapUID", default, skip_serializing_if = "Option::is_none")]
    pub resolved_tap_uid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_captures: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_captures: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_trigger_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_capture_ref: Option<LocalRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Decisions>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decisions {
    #[serde(default)]
    pub matched: i64,
    #[serde(default)]
    pub not_matched: i64,
    #[serde(default)]
    pub duplicate: i64,
    #[serde(default)]
    pub rate_limited: i64,
    #[serde(default)]
    pub failed: i64,
}
