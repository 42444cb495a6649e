use serde_json::{Value, json};
use trawl_api::MirrorProvider;
use trawl_audit::Action;

use super::common::*;
use crate::*;

fn mirror(patch: Value) -> Value {
    with(stored("portmirror"), json!({"spec": patch}))
}

#[test]
fn the_sample_is_admitted_recorded_and_said_to_do_nothing_yet() {
    let verdict = must_admit(&rules(), &create(mirror(json!({}))));
    assert_eq!(verdict.action, Some(Action::PortMirrorCreate));
    must_warn(&verdict, "spec.provider", "no device is configured");
    assert_eq!(
        must_admit(&rules(), &delete(mirror(json!({})))).action,
        Some(Action::PortMirrorDelete)
    );
}

#[test]
fn a_provider_without_driver_is_refused() {
    let one = Rules {
        providers: vec![MirrorProvider::MikroTikRouterOS7],
        ..rules()
    };
    must_admit(&one, &create(mirror(json!({}))));
    let request = create(mirror(json!({"provider": "MikroTikRouterOS7SSH"})));
    must_refuse(
        &one,
        &request,
        "spec.provider",
        "with a driver: MikroTikRouterOS7",
    );
    let none = Rules {
        providers: vec![],
        ..rules()
    };
    let verdict = must_refuse(&none, &request, "spec.provider", "none");
    assert_eq!(verdict.action, Some(Action::PortMirrorCreate));
}

#[test]
fn device_and_provider_are_immutable_and_the_rest_is_not() {
    for (patch, field) in [
        (json!({"provider": "MikroTikRouterOS7SSH"}), "spec.provider"),
        (json!({"deviceRef": {"name": "other"}}), "spec.deviceRef"),
    ] {
        let request = update(mirror(json!({})), mirror(patch));
        let verdict = must_refuse(&rules(), &request, field, "keep mirroring");
        assert_eq!(verdict.action, Some(Action::PortMirrorUpdate));
    }
    for patch in [
        json!({"sources": ["ether5"]}),
        json!({"target": "ether5"}),
        json!({"direction": "Ingress"}),
    ] {
        let verdict = must_admit(&rules(), &update(mirror(json!({})), mirror(patch)));
        assert_eq!(verdict.action, Some(Action::PortMirrorUpdate));
    }
}

#[test]
fn the_rules_of_the_contract_hold() {
    let ports = |count: usize| {
        (0..count)
            .map(|n| format!("ether{}", n + 100))
            .collect::<Vec<_>>()
    };
    for (patch, field) in [
        (json!({"sources": []}), "spec.sources"),
        (json!({"sources": ports(49)}), "spec.sources"),
        (json!({"sources": ["ether1", "ether1"]}), "spec.sources"),
        (json!({"sources": ["bad port"]}), "spec.sources[0]"),
        (json!({"target": "ether1", "sources": ["ether1"]}), "spec.target"),
        (json!({"target": "a".repeat(65)}), "spec.target"),
        (json!({"deviceRef": {"name": ""}}), "spec.deviceRef.name"),
    ] {
        must_refuse_within(&rules(), &create(mirror(patch)), field);
    }
    must_admit(
        &rules(),
        &create(mirror(json!({"sources": ports(48), "target": "a".repeat(64)}))),
    );
}
