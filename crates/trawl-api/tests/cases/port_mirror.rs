use serde_json::{Value, json};

use super::{Case, case};

fn mirror(patch: Value, field: &'static str) -> Case {
    case("portmirror", json!({"spec": patch}), field)
}

pub fn create() -> Vec<Case> {
    let many: Vec<String> = (0..49).map(|n| format!("port{n}")).collect();
    vec![
        mirror(json!({"provider": "CiscoIOS"}), "spec.provider"),
        mirror(json!({"provider": null}), "spec.provider"),
        mirror(json!({"deviceRef": null}), "spec.deviceRef"),
        mirror(json!({"deviceRef": {"name": ""}}), "spec.deviceRef.name"),
        mirror(json!({"deviceRef": {"name": null}}), "spec.deviceRef.name"),
        mirror(json!({"sources": null}), "spec.sources"),
        mirror(json!({"sources": []}), "spec.sources"),
        mirror(json!({"sources": ["ether1", "ether1"]}), "spec.sources"),
        mirror(json!({"sources": ["ether 1"]}), "spec.sources"),
        mirror(json!({"sources": [""]}), "spec.sources"),
        mirror(json!({"sources": ["=ether1"]}), "spec.sources"),
        mirror(json!({"sources": many}), "spec.sources"),
        mirror(json!({"sources": ["e".repeat(65)]}), "spec.sources"),
        mirror(json!({"sources": ["ether1\n"]}), "spec.sources"),
        mirror(json!({"sources": ["-ether1"]}), "spec.sources"),
        mirror(json!({"sources": "ether1"}), "spec.sources"),
        mirror(json!({"sources": [1]}), "spec.sources"),
        mirror(json!({"deviceRef": {"name": "Upper"}}), "spec.deviceRef.name"),
        mirror(
            json!({"deviceRef": {"name": "a".repeat(254)}}),
            "spec.deviceRef.name",
        ),
        mirror(json!({"provider": "mikrotikrouteros7"}), "spec.provider"),
        mirror(json!({"direction": "both"}), "spec.direction"),
        mirror(json!({"target": "ether2"}), "spec.target"),
        mirror(json!({"target": " ether24"}), "spec.target"),
        mirror(json!({"target": null}), "spec.target"),
        mirror(json!({"target": ""}), "spec.target"),
        mirror(json!({"target": "ether1"}), "spec.target"),
        mirror(json!({"target": "e".repeat(65)}), "spec.target"),
        mirror(json!({"target": "ether24;reboot"}), "spec.target"),
        mirror(json!({"direction": "Sideways"}), "spec.direction"),
    ]
}

pub fn update() -> Vec<Case> {
    vec![
        mirror(json!({"provider": "MikroTikRouterOS7SSH"}), "spec.provider"),
        mirror(json!({"deviceRef": {"name": "other"}}), "spec.deviceRef"),
        mirror(json!({"sources": ["ether24"]}), "spec.target"),
    ]
}

pub fn allowed() -> Vec<Case> {
    vec![
        mirror(
            json!({"sources": ["sfp-sfpplus1", "ether3"], "target": "sfp-sfpplus4", "direction": "Ingress"}),
            "",
        ),
        mirror(json!({"direction": null}), ""),
        mirror(json!({"direction": "Egress"}), ""),
        mirror(json!({"target": "ether25"}), ""),
    ]
}

pub fn accepted() -> Vec<Case> {
    let most: Vec<String> = (0..48).map(|n| format!("port{n}")).collect();
    vec![
        mirror(json!({"sources": most}), ""),
        mirror(json!({"sources": ["ether1"]}), ""),
        mirror(json!({"sources": ["e".repeat(64)], "target": "f".repeat(64)}), ""),
        mirror(json!({"sources": ["1/1/1", "Gi0_1.2-x"], "target": "0"}), ""),
        mirror(json!({"deviceRef": {"name": "a".repeat(253)}}), ""),
        mirror(json!({"provider": "MikroTikRouterOS7SSH"}), ""),
        // Names of ports are told apart by case, as the devices do.
        mirror(json!({"sources": ["ether1", "Ether1"], "target": "ETHER1"}), ""),
    ]
}
