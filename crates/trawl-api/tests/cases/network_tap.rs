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

/// A domain of `length` characters.
fn domain(length: usize) -> String {
    "d".repeat(length)
}

/// A pinned reference of `length` characters.
fn pinned_of(length: usize) -> String {
    let repository = "r".repeat(length - DIGEST.len() - 1);
    format!("{repository}@{DIGEST}")
}

fn many_labels(count: usize) -> Value {
    (0..count)
        .map(|n| (format!("label-{n}"), json!("b")))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn many_quantities(count: usize) -> Value {
    (0..count)
        .map(|n| (format!("example.com/r{n}"), json!("1")))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn many_values(count: usize) -> Value {
    (0..count).map(|n| json!(format!("value-{n}"))).collect()
}

fn many_expressions(count: usize) -> Value {
    (0..count)
        .map(|n| json!({"key": format!("key-{n}"), "operator": "Exists"}))
        .collect()
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
        content(&format!("Registry.Example/Rules@{DIGEST}")),
        content(&format!("registry.example/rules@{}", DIGEST.to_uppercase())),
        content(&format!("registry.example/rules@sha512{}", &DIGEST[6..])),
        content(&format!("registry.example/rules@{DIGEST}0")),
        content(&format!("registry.example//rules@{DIGEST}")),
        content(&format!("registry.example:123456/rules@{DIGEST}")),
        content(&format!("https://registry.example/rules@{DIGEST}")),
        content(&pinned_of(513)),
        mirror(
            json!({"analyzers": {"suricata": {"customContent": {"reference": null}}}}),
            "spec.analyzers.suricata.customContent.reference",
        ),
        mirror(
            json!({"analyzers": {"suricata": {"enabled": "yes"}}}),
            "spec.analyzers.suricata.enabled",
        ),
        case(
            NODES,
            json!({"spec": {"nodeInterface": {"interface": "sixteen-bytes-xx"}}}),
            "spec.nodeInterface.interface",
        ),
        mirror(
            json!({"analyzers": {"zeek": {"customContent": {"reference": "scripts:latest"}}}}),
            "spec.analyzers.zeek.customContent.reference",
        ),
        case(
            NODES,
            json!({"spec": {"nodeInterface": {"interface": "eth 0"}}}),
            "spec.nodeInterface.interface",
        ),
        case(
            NODES,
            json!({"spec": {"analyzers": {"suricata": {"enabled": true}}}}),
            "spec.analyzers.suricata.resources",
        ),
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
        json!({"matchLabels": {"x".repeat(64): "b"}}),
        json!({"matchLabels": {"x".repeat(318): "b"}}),
        json!({"matchLabels": {format!("{}/n", domain(254)): "b"}}),
        json!({"matchLabels": {"a": "x".repeat(64)}}),
        json!({"matchLabels": {"a": "-b"}}),
        json!({"matchLabels": many_labels(17)}),
        json!({"matchExpressions": [{"key": format!("{}/n", domain(254)), "operator": "Exists"}]}),
        json!({"matchExpressions": [{"key": "not a key", "operator": "Exists"}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "NotIn"}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist", "values": ["b"]}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["not a value"]}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x".repeat(64)]}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "In", "values": many_values(65)}]}),
        json!({"matchExpressions": many_expressions(17)}),
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
        json!({"requests": {"memory": "-1Mi"}}),
        json!({"requests": {"cpu": -1}}),
        json!({"limits": {"cpu": -1}}),
        json!({"requests": {"memory": -1}}),
        json!({"limits": {"memory": -1}}),
        json!({"limits": {"cpu": "499m"}}),
        json!({"limits": {"memory": "511Mi"}}),
        json!({"limits": {"cpu": "0.0000001"}}),
        json!({"limits": {"cpu": true}}),
        json!({"requests": many_quantities(15)}),
        json!({"limits": many_quantities(15)}),
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
        case(
            NODES,
            json!({
                "spec": {
                    "type": "MirrorInterface",
                    "nodeInterface": null,
                    "mirrorInterface": {"interface": "eth0", "nodeSelector": {"matchLabels": {"a": "b"}}},
                }
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

pub fn accepted() -> Vec<Case> {
    let mut cases = vec![
        interface("e"),
        interface("fifteen-bytes-x"),
        interface("_vlan.100"),
        interface("0eth"),
        mirror(json!({"mode": null}), ""),
        mirror(json!({"analyzers": {"suricata": null}}), ""),
        mirror(json!({"analyzers": {"zeek": {"enabled": false}}}), ""),
        // A disabled analyzer may say anything about resources that is a quantity.
        mirror(
            json!({"analyzers": {"zeek": {"enabled": false, "resources": {"requests": {"cpu": "2"}}}}}),
            "",
        ),
        content(&pinned_of(512)),
        content(&format!("rules@{DIGEST}")),
        content(&format!("localhost:5000/a/b__c.d-e@{DIGEST}")),
        content(&format!("Registry.Example/rules@{DIGEST}")),
    ];
    for spoiled in [
        json!({"matchLabels": {"a": ""}}),
        json!({"matchLabels": {"a": "x".repeat(63)}}),
        json!({"matchLabels": {"x".repeat(63): "b"}}),
        json!({"matchLabels": {format!("{}/{}", domain(253), "n".repeat(63)): "b"}}),
        json!({"matchLabels": many_labels(16)}),
        json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist", "values": []}]}),
        json!({"matchExpressions": [{"key": "a/b", "operator": "In", "values": [""]}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": many_values(64)}]}),
        json!({"matchExpressions": many_expressions(16)}),
    ] {
        cases.extend(selector(spoiled));
    }
    for spoiled in [
        json!({"requests": {"cpu": "1000m", "memory": "1Gi"}}),
        json!({"requests": {"cpu": 0, "memory": 0}}),
        json!({"requests": {"memory": 1_073_741_824}}),
        json!({"requests": {"memory": "1e9"}}),
        json!({"limits": {"cpu": "0.5", "memory": ".5Gi"}}),
        json!({"requests": many_quantities(14)}),
        json!({"limits": many_quantities(14)}),
    ] {
        cases.extend(resources(spoiled));
    }
    for case in &mut cases {
        case.field = "";
    }
    cases
}
