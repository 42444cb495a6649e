//! CapturePolicy: what should trigger evidence.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::LocalRef,
    quantities::{ByteSize, GoDuration},
};

/// Which events start a capture on which tap, and how much is captured.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "trawl.cloud",
    version = "v1alpha1",
    kind = "CapturePolicy",
    plural = "capturepolicies",
    namespaced,
    status = "CapturePolicyStatus",
    shortname = "cpolicy",
    shortname = "cpolicies",
    doc = "A rule that turns detections into bounded captures while it is armed.",
    printcolumn = r#"{"name":"Armed","type":"boolean","description":"Whether the policy may start captures.","jsonPath":".spec.armed"}"#,
    printcolumn = r#"{"name":"Trigger","type":"string","description":"Kind of event.","jsonPath":".spec.trigger.type"}"#,
    printcolumn = r#"{"name":"Tap","type":"string","description":"NetworkTap that is captured from.","jsonPath":".spec.tapRef.name"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","description":"What was observed last.","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Captures","type":"integer","description":"Captures that the policy has started.","jsonPath":".status.totalCaptures"}"#,
    printcolumn = r#"{"name":"Active","type":"integer","description":"Captures that are running.","jsonPath":".status.activeCaptures"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct CapturePolicySpec {
    /// The NetworkTap in the same namespace whose traffic is captured.
    pub tap_ref: LocalRef,
    /// Whether the policy may start captures.
    #[serde(default)]
    pub armed: bool,
    /// The events that start a capture.
    pub trigger: Trigger,
    /// Bounds of each capture.
    pub capture: CaptureBounds,
    /// How long artifacts are kept, 1h to 30d, counted from the completion of the capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<GoDuration>,
    /// How often the policy may start captures.
    pub rate_limit: RateLimit,
}

/// Kind of trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TriggerType {
    /// An alert of Suricata on the tap.
    SuricataAlert,
    /// A flow that Cilium dropped.
    HubbleDrop,
}

/// The events that start a capture: a type and the one branch of that type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// Kind of event; selects which one of suricataAlert and hubbleDrop is set.
    #[serde(rename = "type")]
    pub type_: TriggerType,
    /// Alerts that count. Required when type is SuricataAlert, forbidden otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suricata_alert: Option<SuricataAlertTrigger>,
    /// Dropped flows that count. Required when type is HubbleDrop, forbidden otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hubble_drop: Option<HubbleDropTrigger>,
}

/// Alerts that start a capture. Lists that are set are all required to match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuricataAlertTrigger {
    /// Severities that count, 1 (highest) to 4, each once.
    pub severities: Vec<i32>,
    /// Signature ids that count. Absent: every signature.
    #[serde(rename = "ruleIDs", default, skip_serializing_if = "Vec::is_empty")]
    pub rule_ids: Vec<u32>,
    /// Classifications that count, by short name or description. Absent: every classification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
}

/// Dropped flows that start a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubbleDropTrigger {
    /// Drop reasons that count, for example POLICY_DENIED; 1 to 64, each once.
    pub reasons: Vec<String>,
    /// Namespaces that the flow must come from. Absent: every source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_namespaces: Vec<String>,
    /// How many drops between the same two hosts it takes. Absent: one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
}

/// A number of events within a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Threshold {
    /// Number of drops, 1 to 10000.
    pub count: i32,
    /// Time within which they must be observed, 1s to 15m.
    pub window: GoDuration,
}

/// Bounds of each capture of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptureBounds {
    /// Longest time of a capture, 1s to 1h.
    pub duration: GoDuration,
    /// Capture filter in pcap syntax with placeholders such as {{source.ip}}, filled from the event; at most 1024
    /// bytes. Absent: all packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_template: Option<String>,
    /// Bytes kept of each packet: 0 for whole packets, or 64 to 262144.
    #[serde(default)]
    pub snaplen: i32,
    /// Largest size of the file, 1Mi to 1Gi. The file never exceeds it and the last packet is whole.
    pub max_size: ByteSize,
    /// How long before the event the capture begins, 0s to 5m, as far as the sensor's history reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_trigger: Option<GoDuration>,
}

/// How often a policy may start captures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimit {
    /// Captures in any hour, 1 to 100.
    pub max_captures_per_hour: i32,
    /// Time after a capture of a flow before the same flow is captured again, 1s to 1h.
    pub cooldown: GoDuration,
}

/// State of a policy as observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PolicyPhase {
    /// Not armed.
    Disarmed,
    /// Watching for events.
    Armed,
    /// Armed, but the tap or the source of events is not available.
    Degraded,
    /// Armed, but the hourly limit is reached.
    RateLimited,
}

/// What the event worker observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapturePolicyStatus {
    /// Generation of the spec that was evaluated last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One word for the state: Disarmed, Armed, Degraded or RateLimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PolicyPhase>,
    /// UID of the NetworkTap that tapRef means.
    #[serde(rename = "resolvedTapUID", default, skip_serializing_if = "Option::is_none")]
    pub resolved_tap_uid: Option<String>,
    /// Captures that the policy has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_captures: Option<i64>,
    /// Captures that have not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_captures: Option<i32>,
    /// Time of the newest event that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_trigger_time: Option<Time>,
    /// The newest CaptureJob of this policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_capture_ref: Option<LocalRef>,
    /// How events were decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Decisions>,
    /// Conditions: Accepted, TapResolved, SourceConnected, WithinRateLimit, Ready. A condition that is missing or of
    /// an older generation is stale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// How many events were decided in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decisions {
    /// Events that led to a capture.
    #[serde(default)]
    pub matched: i64,
    /// Events that the trigger does not select.
    #[serde(default)]
    pub not_matched: i64,
    /// Events of a flow that was captured within the cooldown.
    #[serde(default)]
    pub duplicate: i64,
    /// Events refused by the hourly limit.
    #[serde(default)]
    pub rate_limited: i64,
    /// Events that matched and could not be captured.
    #[serde(default)]
    pub failed: i64,
}
