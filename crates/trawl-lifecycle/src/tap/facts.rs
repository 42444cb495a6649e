//! What a reconciler knows about one NetworkTap, and what it is told to do.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use trawl_api::{NetworkTapSpec, NetworkTapStatus, TargetStatus};

use crate::claim::Claim;
use crate::limits::Limits;

/// Everything that was observed, at one moment.
#[derive(Clone, Debug)]
pub struct TapFacts<'a> {
    pub generation: i64,
    pub claim: Claim,
    pub namespace_ok: bool,
    pub deleting: bool,
    pub spec: &'a NetworkTapSpec,
    pub status: &'a NetworkTapStatus,
    /// Nodes that the selector chooses.
    pub nodes: Vec<NodeMatch>,
    /// Other mirror taps that are not being deleted.
    pub rivals: Vec<Rival>,
    pub workload: WorkloadFact,
    /// The sensor pods, by node.
    pub pods: BTreeMap<String, PodFact>,
    /// What the sensors say of themselves beyond the status, by node.
    pub notes: BTreeMap<String, SensorNote>,
    pub now: Timestamp,
    pub limits: Limits,
}

/// One node that the selector chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeMatch {
    pub name: String,
    /// Whether it carries the label of sensor nodes. Others are never used, whatever the selector says.
    pub sensor: bool,
}

/// Another mirror tap: what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    pub claim: Claim,
    pub interface: String,
    /// The sensor nodes that its selector chooses.
    pub nodes: Vec<String>,
}

/// The Deployment or DaemonSet of the tap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadFact {
    Absent,
    /// An object of that name exists that this tap does not own; it is never adopted.
    Foreign,
    Exists {
        desired: i32,
        ready: i32,
    },
}

/// A sensor pod as the kubelet and scheduler describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFact {
    pub name: String,
    pub ready: bool,
    /// Why its container does not run, when something is said about it.
    pub trouble: Option<String>,
}

/// What a sensor says beside the status: how it captures, or why it cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensorNote {
    /// The pod that wrote it; a note of another pod is history.
    pub pod: String,
    /// zero-copy, copy, generic or af-packet, as read back from the socket.
    pub mode: Option<String>,
    /// Why each better mode was refused.
    pub refusals: Vec<String>,
    /// What is wrong with the NIC or its settings, each in a few words.
    pub nic: Vec<String>,
    pub problem: Option<Problem>,
}

/// Why a sensor has no frames to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub kind: ProblemKind,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    InterfaceMissing,
    /// captured cannot be reached.
    Unreachable,
    Other,
}

/// What to do about the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadAction {
    /// Apply ServiceAccount, Role, RoleBinding, ConfigMap and Deployment or DaemonSet.
    Apply,
    /// Remove the Deployment or DaemonSet when there is one.
    Remove,
    Leave,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct TapDecision {
    /// The operator's part of the status; `None` leaves it alone.
    pub status: Option<NetworkTapStatus>,
    pub workload: WorkloadAction,
    pub requeue: Option<Duration>,
}

/// Whether a report is recent enough to count. A stamp from the future is a clock apart, not silence.
pub fn is_fresh(target: &TargetStatus, now: Timestamp, stale: Duration) -> bool {
    Duration::try_from(now.duration_since(target.heartbeat_time.0)).map_or(true, |age| age < stale)
}
