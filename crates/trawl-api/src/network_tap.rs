//! NetworkTap: where to watch.

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NetworkTapStatus;

/// Where to watch, and which analyzers look at the traffic there. Watching is passive: nothing here can change,
/// delay or drop the traffic.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "trawl.cloud",
    version = "v1alpha1",
    kind = "NetworkTap",
    namespaced,
    status = "NetworkTapStatus",
    shortname = "tap",
    shortname = "taps",
    doc = "A place where Trawl watches traffic: one interface of one sensor node (a mirror port), or the same interface of a set of nodes.",
    printcolumn = r#"{"name":"Type","type":"string","description":"Kind of source.","jsonPath":".spec.type"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","description":"What was observed last.","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Targets","type":"integer","description":"Nodes that report packets and healthy analyzers.","jsonPath":".status.readyTargets"}"#,
    printcolumn = r#"{"name":"Matched","type":"integer","description":"Nodes that the selector matches.","jsonPath":".status.matchedTargets"}"#,
    printcolumn = r#"{"name":"Last Packet","type":"date","description":"Time since the newest packet on any target.","jsonPath":".status.lastPacketTime"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct NetworkTapSpec {
    /// How the tap relates to the traffic. Passive, the only mode and the default, observes: it never changes, delays
    /// or drops a packet.
    #[serde(default)]
    pub mode: TapMode,
    /// Kind of source. MirrorInterface: a dedicated interface of one node that receives a copy of traffic.
    /// NodeInterface: an interface that nodes themselves communicate through. Selects which one of mirrorInterface and
    /// nodeInterface is set. Immutable.
    #[serde(rename = "type")]
    pub type_: TapType,
    /// The interface that receives a copy of traffic and carries nothing else. Required when type is MirrorInterface,
    /// forbidden otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror_interface: Option<InterfaceSource>,
    /// The interface that the nodes communicate through, watched without being touched. Required when type is
    /// NodeInterface, forbidden otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_interface: Option<InterfaceSource>,
    /// The analyzers that look at the traffic. At least one must be enabled. Both may be changed at any time; a change
    /// restarts the pods of the tap.
    pub analyzers: AnalyzerSelection,
}

/// How a tap relates to the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TapMode {
    /// Observes; never changes, delays or drops.
    #[default]
    Passive,
}

/// Kind of source of a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TapType {
    /// A dedicated interface that receives mirrored traffic.
    MirrorInterface,
    /// An interface that the node itself uses.
    NodeInterface,
}

/// One interface on the nodes that a selector matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceSource {
    /// Name of the interface on the node, as Linux has it: 1 to 15 bytes, for example enp5s0. Immutable.
    pub interface: String,
    /// Whether the interface also accepts frames that are not addressed to it. Absent: false; but admission sets true
    /// for a mirror interface, which would see next to nothing without.
    #[serde(default)]
    pub promiscuous: bool,
    /// Labels of the nodes to watch on. It must name at least one label. A mirror interface needs exactly one matching
    /// node before the tap becomes active; a node interface is watched on every matching node.
    pub node_selector: LabelSelector,
}

/// The analyzers of a tap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalyzerSelection {
    /// Suricata: finds signatures, and is the source of SuricataAlert triggers. Absent: disabled.
    #[serde(default)]
    pub suricata: AnalyzerConfig,
    /// Zeek: writes records of connections, protocols and files. Absent: disabled.
    #[serde(default)]
    pub zeek: AnalyzerConfig,
}

/// One analyzer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalyzerConfig {
    /// Whether the analyzer runs. Absent: false.
    #[serde(default)]
    pub enabled: bool,
    /// CPU and memory of the analyzer on each node, as Kubernetes quantities. Required when enabled: a request and a
    /// limit of each, no request above its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Site-specific rules or scripts, laid over the content that ships with the analyzer. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_content: Option<CustomContentRef>,
}

/// Site-specific content, pinned by digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CustomContentRef {
    /// OCI artifact as repository@sha256:<64 lower-case hex digits>, at most 512 characters. A tag is refused: what a
    /// tag means can change, and nobody would notice.
    pub reference: String,
}
