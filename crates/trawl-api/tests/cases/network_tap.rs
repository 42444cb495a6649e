use serde_json::{Value, json};

use super::{Case, case};

const MIRROR: &str = "networktap-mirror";
const NODES: &str = "networktap-nodes";
const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn mirror(patch: Value, field: &'static str) -> Case {
    case(MIRROR, json!({"spec": patch}), field)
}

fn interface(name: &str) -> Case {
    mirror(
        json!({"mirrorInterface": {"interface": name}}),
        "spec.mirrorInterface.interface",
    )
}

/// The same selector on both kinds of source.
fn selector(selector: Value) -> [Case; 2] {
    let spoil = |sample, branch: &str, own: &str, field| {
        let mut selector = selector.clone();
        if selector["matchLabels"].is_null() {
            selector["matchLabels"] = Value::Null;
        } else {
            selector["matchLabels"][own] = Value::Null;
        }
        case(
            sample,
            json!({"spec": {branch: {"nodeSelector": selector}}}),
            field,
        )
    };
    [
        spoil(
            MIRROR,
            "mirrorInterface",
            "kubernetes.io/hostname",
            "spec.mirrorInterface.nodeSelector",
        ),
        spoil(
            NODES,
            "nodeInterface",
            "trawl.cloud/sensor",
            "spec.nodeInterface.nodeSelector",
        ),
    ]
}

/// The same resources on both analyzers.
fn resources(patch: Value) -> [Case; 2] {
    [
        mirror(
            json!({"analyzers": {"zeek": {"resources": patch}}}),
            "spec.analyzers.zeek.resources",
        ),
        mirror(
            json!({"analyzers": {"suricata": {"resources": patch}}}),
            "spec.analyzers.suricata.resources",
        ),
    ]
}

fn content(reference: &str) -> Case {
    mirror(
        json!({"analyzers": {"suricata": {"customContent": {"reference": reference}}}}),
        "spec.analyzers.suricata.customContent.reference",
    )
}

pub fn create() -> Vec<Case> {
    let node = json!({"interface": "eth0", "nodeSelector": {"matchLabels": {"a": "b"}}});
    let mut cases = vec![
        mirror(json!({"mode": "Inline"}), "spec.mode"),
        mirror(json!({"type": "Tunnel"}), "spec.type"),
        mirror(json!({"type": null}), "spec.type"),
        mirror(json!({"mirrorInterface": null}), "spec.mirrorInterface"),
        mirror(json!({"nodeInterface": node}), "spec.nodeInterface"),
        mirror(json!({"type": "NodeInterface"}), "spec.nodeInterface"),
        mirror(
            json!({"type": "NodeInterface", "nodeInterface": node}),
            "spec.mirrorInterface",
        ),
        case(
            NODES,
            json!({"spec": {"nodeInterface": null}}),
            "spec.nodeInterface",
        ),
        case(
            NODES,
            json!({"spec": {"mirrorInterface": node}}),
            "spec.mirrorInterface",
        ),
        mirror(
            json!({"mirrorInterface": {"interface": null}}),
            "spec.mirrorInterface.interface",
        ),
        mirror(
            json!({"mirrorInterface": {"promiscuous": "yes"}}),
            "spec.mirrorInterface.promiscuous",
        ),
        interface(""),
        interface("sixteen-bytes-xx"),
        interface("eth 0"),
        interface("eth/0"),
        interface(".."),
        interface("eth0\n"),
        interface("éth0"),
        mirror(
            json!({"mirrorInterface": {"nodeSelector": null}}),
            "spec.mirrorInterface.nodeSelector",
        ),
        mirror(json!({"analyzers": null}), "spec.analyzers"),
        mirror(
            json!({"analyzers": {"suricata": {"enabled": false}, "zeek": {"enabled": false}}}),
            "spec.analyzers",
        ),
        mirror(
            json!({"analyzers": {"suricata": null, "zeek": null}}),
            "spec.analyzers",
        ),
        mirror(
            json!({"analyzers": {"zeek": {"resources": null}}}),
            "spec.analyzers.zeek.resources",
        ),
        content("registry.example/rules:latest"),
        content(&format!("registry.example/rules:latest@{DIGEST}")),
        content("registry.example/rules@sha256:0123"),
        content(&format!("@{DIGEST}")),
        content(""),
    ];
    for spoiled in [
        json!({}),
        json!({"matchLabels": {}, "matchExpressions": []}),
        json!({"matchLabels": {"a": "not a value"}}),
        json!({"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
        json!({"matchExpressions": [{"key": "", "operator": "Exists"}]}),
        json!({"matchLabels": {"not/a/key": "b"}}),
        json!({"matchLabels": {"x".repeat(318): "b"}}),
    ] {
        cases.extend(selector(spoiled));
    }
    for spoiled in [
        json!({"requests": {"cpu": null}}),
        json!({"requests": {"memory": null}}),
        json!({"limits": {"cpu": null}}),
        json!({"limits": {"memory": null}}),
        json!({"limits": null}),
        json!({"requests": {"cpu": "1001m"}}),
        json!({"requests": {"memory": "1025Mi"}}),
        json!({"requests": {"memory": "lots"}}),
    ] {
        cases.extend(resources(spoiled));
    }
    cases
}

pub fn update() -> Vec<Case> {
    vec![
        mirror(
            json!({"mirrorInterface": {"interface": "enp6s0"}}),
            "spec.mirrorInterface.interface",
        ),
        case(
            NODES,
            json!({"spec": {"nodeInterface": {"interface": "eth1"}}}),
            "spec.nodeInterface.interface",
        ),
        mirror(
            json!({
                "type": "NodeInterface",
                "mirrorInterface": null,
                "nodeInterface": {"interface": "enp5s0", "nodeSelector": {"matchLabels": {"a": "b"}}},
            }),
            "spec.type",
        ),
        mirror(
            json!({"analyzers": {"suricata": {"enabled": false}, "zeek": {"enabled": false}}}),
            "spec.analyzers",
        ),
    ]
}

pub fn allowed() -> Vec<Case> {
    vec![
        mirror(json!({"mirrorInterface": {"promiscuous": false}}), ""),
        mirror(
            json!({"mirrorInterface": {"nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "other"}}}}),
            "",
        ),
        mirror(
            json!({"analyzers": {"zeek": {"enabled": false, "resources": null}}}),
            "",
        ),
        mirror(
            json!({"analyzers": {"zeek": {"resources": {"requests": {"cpu": 1, "memory": "1024Mi"}}}}}),
            "",
        ),
        mirror(
            json!({"analyzers": {"zeek": {"customContent": {"reference": format!("reg.example:5000/a/b@{DIGEST}")}}}}),
            "",
        ),
    ]
}
