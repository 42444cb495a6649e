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
    /// The NetworkTap whose traffic is captured. It need not exist yet; until it does the policy is Degraded.
    pub tap_ref: LocalRef,
    /// Whether the policy may start captures. Absent: false.
    #[serde(default)]
    pub armed: bool,
    /// The events that start a capture: a type and the one branch of that type.
    pub trigger: Trigger,
    /// Bounds of each capture. A capture ends at the first bound that it reaches.
    pub capture: CaptureBounds,
    /// How long each artifact is kept after its capture was completed: 1h to 30d, in Go form (12h) or whole days (7d).
    /// Absent: 30d, or the ceiling of the installation where that is lower. It applies to captures made from now on.
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
    /// Kind of event. SuricataAlert: an alert of Suricata on the tap. HubbleDrop: a flow that Cilium dropped. Selects
    /// which one of suricataAlert and hubbleDrop is set.
    #[serde(rename = "type")]
    pub type_: TriggerType,
    /// The alerts that count. Required when type is SuricataAlert, forbidden otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suricata_alert: Option<SuricataAlertTrigger>,
    /// The dropped flows that count. Required when type is HubbleDrop, forbidden otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hubble_drop: Option<HubbleDropTrigger>,
}

/// Alerts that start a capture. Lists that are set are all required to match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuricataAlertTrigger {
    /// Severities that count, 1 (highest) to 4, each once. An alert must match this list and every other list that is
    /// set.
    pub severities: Vec<i32>,
    /// Signature ids that count, 0 to 4294967295, at most 256, each once. Absent or empty: every signature.
    #[serde(rename = "ruleIDs", default, skip_serializing_if = "Vec::is_empty")]
    pub rule_ids: Vec<u32>,
    /// Classifications that count, by their short name (trojan-activity) or their description; at most 64 of at most
    /// 128 characters, each once. Absent or empty: every classification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
}

/// Dropped flows that start a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubbleDropTrigger {
    /// Names of the drop reasons that count, for example POLICY_DENIED; 1 to 64, each once.
    pub reasons: Vec<String>,
    /// Namespaces that the flow must come from, at most 64, each once. Absent or empty: every source, also one outside
    /// the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_namespaces: Vec<String>,
    /// How many drops between the same two hosts, in either direction, start a capture. Absent: one.
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
    /// Longest time of a capture, 1s to 1h in Go form, for example 90s or 5m.
    pub duration: GoDuration,
    /// Capture filter in pcap syntax with placeholders that are filled from the event; printable ASCII, at most 1024
    /// bytes. For both types of trigger: {{source.ip}}, {{source.port}}, {{destination.ip}}, {{destination.port}},
    /// {{protocol}}. For alerts also {{suricata.ruleID}} and {{suricata.severity}}. The free text of an event
    /// ({{suricata.category}}, {{hubble.dropReason}}, {{hubble.sourceNamespace}}, {{hubble.destinationNamespace}}) is
    /// refused by admission, because no packet carries it. An event that has no value for a placeholder starts no
    /// capture. Absent: all packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_template: Option<String>,
    /// Bytes kept of each packet: 0, the default, for whole packets, or 64 to 262144.
    #[serde(default)]
    pub snaplen: i32,
    /// Largest size of the file as a quantity of whole bytes, 1Mi to 1Gi. The file never exceeds it, and its last packet
    /// is whole.
    pub max_size: ByteSize,
    /// How long before the event the capture begins, 0s to 5m, as far as the sensor's history reaches. Absent: 0s, which
    /// begins at the packet of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_trigger: Option<GoDuration>,
}

/// How often a policy may start captures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimit {
    /// Most captures that the policy starts within any 60 minutes, 1 to 100. Further events count as rateLimited.
    pub max_captures_per_hour: i32,
    /// Time since the newest capture of a flow was created in which the same flow is not captured again, 1s to 1h.
    /// Events within it count as duplicate.
    pub cooldown: GoDuration,
}

/// One word for the state. Disarmed: starts no captures. Armed: watches for events. Degraded: armed, but the tap, the
/// source of events or the worker is not available. RateLimited: armed, but the hourly limit is reached.
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

/// What the event worker observed. Only when the worker has fallen silent does the operator write here: it sets the
/// phase and the conditions that say so, and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapturePolicyStatus {
    /// Generation of the spec that the event worker evaluated last. Lower than metadata.generation: what follows is
    /// about an older spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One word for the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PolicyPhase>,
    /// UID of the NetworkTap that tapRef means. Absent: there is no such tap.
    #[serde(rename = "resolvedTapUID", default, skip_serializing_if = "Option::is_none")]
    pub resolved_tap_uid: Option<String>,
    /// Number of captures that the policy has started since it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_captures: Option<i64>,
    /// Number of its captures that have not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_captures: Option<i32>,
    /// Time of the newest event that matched. Absent: none has matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_trigger_time: Option<Time>,
    /// The newest CaptureJob of this policy. Absent: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_capture_ref: Option<LocalRef>,
    /// How many events were decided in which way since the policy was created.
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
