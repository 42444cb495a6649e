//! What was observed of a NetworkTap.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::LocalRef;

/// One word for the state. Pending: the workload is not ready or no node has reported yet. Active: every node reports
/// and every analyzer is healthy. Degraded: a node or an analyzer is unhealthy or silent. Error: the tap cannot work
/// as specified. Written by the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TapPhase {
    /// The workload is not ready, or no target reported yet.
    Pending,
    /// Every target reports and every analyzer is healthy.
    Active,
    /// A target or an analyzer is unhealthy or silent.
    Degraded,
    /// The tap cannot work as specified.
    Error,
}

/// What was observed. The operator writes the aggregate; each sensor writes its own entry of targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkTapStatus {
    /// Generation of the spec that the operator evaluated last. Lower than metadata.generation: what follows is about an
    /// older spec. Written by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One word for the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<TapPhase>,
    /// Number of nodes that the selector matches. Written by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_targets: Option<i32>,
    /// Number of nodes whose report is fresh and healthy. Written by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_targets: Option<i32>,
    /// Time of the newest packet on any node. Absent: no packet was ever seen. Written by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_packet_time: Option<Time>,
    /// One report for each node, each written by the sensor on that node alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetStatus>,
    /// Conditions: Accepted, TargetsResolved, WorkloadReady, AnalyzersHealthy, PacketsObserved. A condition that is
    /// missing or of an older generation is stale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One node's report, owned by the sensor there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetStatus {
    /// Node that reports; the key of the list.
    pub node_name: String,
    /// Name of the interface that is watched on the node.
    pub interface: String,
    /// Pod of the sensor that reports. Absent: the sensor does not know its pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_ref: Option<LocalRef>,
    /// Identity of the reporting process; changes when the sensor restarts.
    pub reporter_instance: String,
    /// Time of this report. A report older than 90 seconds is stale.
    pub heartbeat_time: Time,
    /// Time of the newest packet on this interface. Absent when none was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_packet_time: Option<Time>,
    /// Packets that arrived on the interface since the tap was attached to it.
    pub packets_observed: i64,
    /// Packets that the kernel or the NIC lost before Trawl saw them. 0: none. Absent: not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_drops: Option<i64>,
    /// Bytes of the packets observed. Absent: not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_observed: Option<i64>,
    /// Whether the same packet seems to arrive more than once, as a badly configured mirror delivers it. Unknown: too
    /// little traffic to tell. NotDetected: looked for and not found. Suspected: found.
    pub duplication: Duplication,
    /// Number of analyzer records that were malformed and not passed on.
    pub rejected_records: i64,
    /// Health of each analyzer on this node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub analyzers: Vec<AnalyzerStatus>,
}

/// Whether packets seem to arrive more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Duplication {
    /// Not enough traffic to tell.
    Unknown,
    /// Looked for and not found.
    NotDetected,
    /// Found in the traffic.
    Suspected,
}

/// Name of an analyzer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AnalyzerName {
    /// Suricata.
    Suricata,
    /// Zeek.
    Zeek,
}

/// Health of one analyzer on one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalyzerStatus {
    /// Which analyzer; the key of the list.
    pub name: AnalyzerName,
    /// Whether the analyzer runs and produces records.
    pub healthy: bool,
    /// Version that the analyzer states. Absent: it has not stated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Time of its newest record. Absent: no record yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_record_time: Option<Time>,
    /// When the rules or scripts in use were fetched from upstream. Absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_fetched_at: Option<Time>,
    /// Digest of the site-specific content in use, as sha256:<64 hex digits>. Absent: none is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_content_digest: Option<String>,
    /// Why it is not healthy, at most 256 bytes and without secrets. Absent: it is healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
