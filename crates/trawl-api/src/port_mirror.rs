//! PortMirror: which switch ports to mirror; the only kind that writes to hardware outside the cluster.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::LocalRef;

/// Which ports of which switch are mirrored, and to where.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "trawl.cloud",
    version = "v1alpha1",
    kind = "PortMirror",
    namespaced,
    status = "PortMirrorStatus",
    shortname = "mirror",
    shortname = "mirrors",
    doc = "A port mirror that Trawl configures on a switch and verifies by reading it back. The only kind that writes to hardware outside the cluster.",
    printcolumn = r#"{"name":"Provider","type":"string","description":"Driver for the device.","jsonPath":".spec.provider"}"#,
    printcolumn = r#"{"name":"Target","type":"string","description":"Port that receives the copies.","jsonPath":".spec.target"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","description":"What the device was last seen to do.","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Verified","type":"date","description":"Time since the last successful read-back.","jsonPath":".status.lastVerifiedTime"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PortMirrorSpec {
    /// Driver for the device. MikroTikRouterOS7: RouterOS 7 over its HTTPS REST interface. MikroTikRouterOS7SSH: the same
    /// over SSH, for the reviewed CRS328 profile. Immutable: delete the PortMirror, which reverts the device, and create
    /// another.
    pub provider: MirrorProvider,
    /// Secret in the same namespace with the address and the credential of the device. Immutable, because deleting the
    /// PortMirror reverts the device that this names.
    pub device_ref: LocalRef,
    /// Names of the ports whose traffic is copied, as the device calls them: 1 to 48, each once.
    pub sources: Vec<String>,
    /// Name of the port that receives the copies, as the device calls it; it must not be one of the sources.
    pub target: String,
    /// Which traffic of the sources is copied. Ingress: what they receive. Egress: what they send. Both, the default.
    #[serde(default)]
    pub direction: MirrorDirection,
}

/// Driver for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MirrorProvider {
    /// MikroTik RouterOS 7 over its HTTPS REST interface.
    MikroTikRouterOS7,
    /// MikroTik RouterOS 7 over SSH, for the reviewed CRS328 profile.
    MikroTikRouterOS7SSH,
}

impl MirrorProvider {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::MikroTikRouterOS7, Self::MikroTikRouterOS7SSH];
}

/// Which traffic of a port is copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MirrorDirection {
    /// Received and sent.
    #[default]
    Both,
    /// Received by the port.
    Ingress,
    /// Sent by the port.
    Egress,
}

/// One word for the state. Pending: the device was not asked yet. Active: a read-back, never merely an accepted write,
/// showed the wanted mirror. Degraded: the device holds something else. Error: the device cannot be used or refused
/// the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MirrorPhase {
    /// The device was not asked yet.
    Pending,
    /// A read-back showed the wanted mirror.
    Active,
    /// The device holds something else than wanted.
    Degraded,
    /// The device cannot be used or refused the change.
    Error,
}

/// What the device reports, read back by the operator. Where it differs from the spec, the device has drifted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortMirrorStatus {
    /// Generation of the spec that the operator evaluated last. Lower than metadata.generation: what follows is about an
    /// older spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One word for the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<MirrorPhase>,
    /// Names of the ports that the device says it mirrors. Absent: none, or not read yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_sources: Vec<String>,
    /// Name of the port that the device says receives the copies. Absent: none, or not read yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_target: Option<String>,
    /// Direction that the device reports for each source port, by the name of the port.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub observed_directions: BTreeMap<String, MirrorDirection>,
    /// Model and firmware, as the device states them. Absent: not read yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_identity: Option<String>,
    /// Time of the last successful read-back. Absent: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_verified_time: Option<Time>,
    /// Conditions: Accepted, DeviceReachable, MirrorConfigured. A condition that is missing or of an older
    /// generation is stale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
