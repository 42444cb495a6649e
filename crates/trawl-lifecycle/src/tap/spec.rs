//! Validation of a stored spec; a stored object with a missing branch is an Error phase, never a panic.

use trawl_api::{InterfaceSource, NetworkTapSpec, TapType};

/// The source branch that the type asks for, when it is there.
pub fn source(spec: &NetworkTapSpec) -> Option<&InterfaceSource> {
    match spec.type_ {
        TapType::MirrorInterface => spec.mirror_interface.as_ref(),
        TapType::NodeInterface => spec.node_interface.as_ref(),
    }
}

/// Every rule that is broken, as `field rule`.
pub fn check_spec(spec: &NetworkTapSpec) -> Vec<String> {
    let mut found = Vec::new();
    let (wanted, other, other_field) = match spec.type_ {
        TapType::MirrorInterface => ("spec.mirrorInterface", &spec.node_interface, "spec.nodeInterface"),
        TapType::NodeInterface => ("spec.nodeInterface", &spec.mirror_interface, "spec.mirrorInterface"),
    };
    if other.is_some() {
        found.push(format!("{other_field} is forbidden with this spec.type"));
    }
    match source(spec) {
        None => found.push(format!("{wanted} is required with this spec.type")),
        Some(source) => {
            if !is_interface_name(&source.interface) {
                found.push(format!("{wanted}.interface must be a Linux interface name of 1 to 15 bytes"));
            }
            let selector = &source.node_selector;
            let labels = selector.match_labels.as_ref().map_or(0, |l| l.len());
            let expressions = selector.match_expressions.as_ref().map_or(0, |e| e.len());
            if labels + expressions == 0 {
                found.push(format!("{wanted}.nodeSelector must not be empty"));
            }
        }
    }
    if !spec.analyzers.suricata.enabled && !spec.analyzers.zeek.enabled {
        found.push("spec.analyzers must enable at least one analyzer".into());
    }
    found
}

fn is_interface_name(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name != "."
        && name != ".."
        && name.bytes().all(|b| b.is_ascii_graphic() && b != b'/' && b != b':')
}
