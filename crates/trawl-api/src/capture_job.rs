//! CaptureJob: one bounded capture.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CaptureJobStatus,
    common::LocalRef,
    quantities::{ByteSize, GoDuration},
};

/// One bounded capture. Every field but retention is immutable: another capture is another CaptureJob.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "trawl.cloud",
    version = "v1alpha1",
    kind = "CaptureJob",
    namespaced,
    status = "CaptureJobStatus",
    shortname = "capture",
    shortname = "captures",
    doc = "One bounded capture of packets, and what became of it.",
    printcolumn = r#"{"name":"Type","type":"string","description":"Who asked: a person or a policy.","jsonPath":".spec.requestType"}"#,
    printcolumn = r#"{"name":"Tap","type":"string","description":"NetworkTap that is captured from.","jsonPath":".spec.tapRef.name"}"#,
    printcolumn = r#"{"name":"Node","type":"string","description":"Node that captures.","jsonPath":".spec.targetNode"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","description":"How far the capture is.","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Size","type":"integer","description":"Bytes of the capture file.","jsonPath":".status.sizeBytes"}"#,
    printcolumn = r#"{"name":"Expires","type":"string","description":"When the artifact will be deleted.","jsonPath":".status.retentionDeadline"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct CaptureJobSpec {
    /// Who asked. Manual, the default: a person. Policy: a CapturePolicy, through the event worker, which alone may use
    /// this word. Immutable.
    #[serde(default)]
    pub request_type: RequestType,
    /// The NetworkTap to capture from. Immutable.
    pub tap_ref: LocalRef,
    /// Name of the node that captures, one of the nodes of the tap. Required when requestType is Manual. Absent: the
    /// event worker found no node for the event, so the capture fails visibly. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_node: Option<String>,
    /// Capture filter in pcap syntax with numeric addresses, for example host 10.0.0.50 and tcp port 443; printable
    /// ASCII, at most 1024 bytes. Absent or empty: all packets. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Longest time of the capture, 1s to 1h in Go form, for example 90s or 5m. Immutable.
    pub duration: GoDuration,
    /// Bytes kept of each packet: 0, the default, for whole packets, or 64 to 262144. Immutable.
    #[serde(default)]
    pub snaplen: i32,
    /// Largest size of the file as a quantity of whole bytes, 1Mi to 1Gi. The file never exceeds it, and its last packet
    /// is whole. Immutable.
    pub max_size: ByteSize,
    /// How long before the event, or before now when requestType is Manual, the capture begins: 0s to 5m, as far as the
    /// sensor's history reaches. Absent: 0s. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_trigger: Option<GoDuration>,
    /// How long the artifact is kept after the capture was completed: 1h to 30d, in Go form (12h) or whole days (7d).
    /// Absent: 30d, or the ceiling of the installation where that is lower. The one field that may change: retention
    /// administrators may do so until the deadline has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<GoDuration>,
    /// The policy that asked. Required when requestType is Policy, forbidden otherwise. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_ref: Option<ImmutablePolicyReference>,
    /// The event that asked. Required when requestType is Policy, forbidden otherwise. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<TriggerSnapshot>,
    /// Equal for requests that ask for the same evidence, as sha256:<64 lower-case hex digits>. Required when
    /// requestType is Policy, forbidden otherwise. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deduplication_key: Option<String>,
}

/// Who asked for a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RequestType {
    /// A person.
    #[default]
    Manual,
    /// A CapturePolicy, through the event worker.
    Policy,
}

/// The policy as it was when it asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImmutablePolicyReference {
    /// Name of the CapturePolicy.
    pub name: String,
    /// UID of the CapturePolicy.
    pub uid: String,
    /// Generation of its spec.
    pub generation: i64,
}

/// Where a trigger event came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TriggerSource {
    /// An alert of Suricata.
    SuricataAlert,
    /// A flow that Cilium dropped.
    HubbleDrop,
}

/// The event that asked, kept with the evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriggerSnapshot {
    /// Where the event came from. SuricataAlert: an alert of Suricata. HubbleDrop: a flow that Cilium dropped. Selects
    /// which one of suricata and hubble is set.
    pub source: TriggerSource,
    /// Identity of the event as sha256:<64 hex digits>; stable when it is read again.
    pub fingerprint: String,
    /// When the event happened, by the clock of its source; RFC 3339, from 1970 to 9998.
    pub event_time: Time,
    /// When Trawl saw it; RFC 3339, from 1970 to 9998.
    pub observed_at: Time,
    /// The conversation that the event is about. Absent: the event names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowSnapshot>,
    /// The alert. Required when source is SuricataAlert, forbidden otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suricata: Option<SuricataSnapshot>,
    /// The drop. Required when source is HubbleDrop, forbidden otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hubble: Option<HubbleSnapshot>,
}

/// One conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSnapshot {
    /// Source address, IPv4 or IPv6. Absent: the event states none.
    #[serde(rename = "sourceIP", default, skip_serializing_if = "Option::is_none")]
    pub source_ip: Option<String>,
    /// Source port, 0 to 65535. Absent: the protocol has no ports.
    #[serde(rename = "sourcePort", default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<i32>,
    /// Destination address, IPv4 or IPv6. Absent: the event states none.
    #[serde(rename = "destinationIP", default, skip_serializing_if = "Option::is_none")]
    pub destination_ip: Option<String>,
    /// Destination port, 0 to 65535. Absent: the protocol has no ports.
    #[serde(rename = "destinationPort", default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<i32>,
    /// Name of the transport protocol as the source states it, for example TCP. Absent: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Community ID of the flow, as the analyzer states it. Absent: not stated.
    #[serde(rename = "communityID", default, skip_serializing_if = "Option::is_none")]
    pub community_id: Option<String>,
}

/// One alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuricataSnapshot {
    /// Signature id, 0 to 4294967295.
    #[serde(rename = "ruleID")]
    pub rule_id: u32,
    /// Revision of the signature, 0 to 4294967295. Absent: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// Severity, 1 (highest) to 4.
    pub severity: i32,
    /// Classification of the signature, at most 128 characters. Absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Message of the signature, at most 512 characters. Absent: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One dropped flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubbleSnapshot {
    /// Why Cilium dropped it, for example POLICY_DENIED.
    pub drop_reason: String,
    /// Namespace of the source. Absent: the source is outside the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_namespace: Option<String>,
    /// Namespace of the destination. Absent: the destination is outside the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_namespace: Option<String>,
}
