use serde_json::{Value, json};
use trawl_audit::Action;

use super::common::*;
use crate::*;

const MIRROR: &str = "networktap-mirror";
const NODES: &str = "networktap-nodes";

fn mirror(patch: Value) -> Request {
    create(with(stored(MIRROR), json!({"spec": patch})))
}

#[test]
fn the_samples_are_admitted_and_recorded() {
    for sample in [MIRROR, NODES] {
        let verdict = must_admit(&rules(), &create(stored(sample)));
        assert_eq!(
            (verdict.action, verdict.warnings),
            (Some(Action::NetworkTapCreate), vec![])
        );
        let verdict = must_admit(&rules(), &delete(stored(sample)));
        assert_eq!(verdict.action, Some(Action::NetworkTapDelete));
        let old = stored(sample);
        let object = with(
            old.clone(),
            json!({"spec": {"analyzers": {"zeek": {"resources": {"limits": {"memory": "2Gi"}}}}}}),
        );
        assert_eq!(
            must_admit(&rules(), &update(old, object)).action,
            Some(Action::NetworkTapUpdate)
        );
    }
}

#[test]
fn type_and_interface_are_immutable() {
    let source = stored(MIRROR)["spec"]["mirrorInterface"].clone();
    for (sample, patch, field) in [
        (
            MIRROR,
            json!({"mirrorInterface": {"interface": "enp6s0"}}),
            "spec.mirrorInterface.interface",
        ),
        (
            NODES,
            json!({"nodeInterface": {"interface": "eth1"}}),
            "spec.nodeInterface.interface",
        ),
        (
            MIRROR,
            json!({"type": "NodeInterface", "mirrorInterface": null, "nodeInterface": source}),
            "spec.type",
        ),
    ] {
        let old = stored(sample);
        let object = with(old.clone(), json!({"spec": patch}));
        let verdict = must_refuse(&rules(), &update(old, object), field, "immutable");
        assert_eq!(verdict.action, Some(Action::NetworkTapUpdate));
    }
    let old = stored(MIRROR);
    let moved = json!({"nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "other"}}});
    let object = with(old.clone(), json!({"spec": {"mirrorInterface": moved}}));
    must_admit(&rules(), &update(old, object));
}

#[test]
fn the_rules_of_the_contract_hold() {
    let analyzer = |patch: Value| json!({"analyzers": {"suricata": patch}});
    let resources = |patch: Value| analyzer(json!({"resources": patch}));
    for (patch, field) in [
        (
            json!({"mirrorInterface": {"nodeSelector": {"matchLabels": null}}}),
            "spec.mirrorInterface.nodeSelector",
        ),
        (
            json!({"mirrorInterface": {"interface": "a".repeat(16)}}),
            "spec.mirrorInterface.interface",
        ),
        (json!({"mirrorInterface": null}), "spec.mirrorInterface"),
        (
            json!({"analyzers": {"suricata": {"enabled": false}, "zeek": {"enabled": false}}}),
            "spec.analyzers",
        ),
        (
            resources(json!({"requests": {"cpu": null}})),
            "spec.analyzers.suricata.resources",
        ),
        (
            resources(json!({"limits": {"memory": null}})),
            "spec.analyzers.suricata.resources",
        ),
        (
            resources(json!({"requests": {"memory": "1025Mi"}})),
            "spec.analyzers.suricata.resources",
        ),
        (
            analyzer(json!({"customContent": {"reference": "registry.example/rules:latest"}})),
            "spec.analyzers.suricata.customContent.reference",
        ),
    ] {
        must_refuse_within(&rules(), &mirror(patch), field);
    }
    must_admit(
        &rules(),
        &mirror(resources(json!({"requests": {"memory": "1Gi"}}))),
    );
    let pinned = format!("registry.example:5000/rules@sha256:{}", "a".repeat(64));
    must_admit(
        &rules(),
        &mirror(analyzer(json!({"customContent": {"reference": pinned}}))),
    );
}

#[test]
fn content_of_an_analyzer_that_does_not_run_is_a_warning() {
    let pinned = format!("registry.example/rules@sha256:{}", "a".repeat(64));
    let idle = json!({"analyzers": {"suricata": {"enabled": false, "customContent": {"reference": pinned}}}});
    let verdict = must_admit(&rules(), &mirror(idle));
    must_warn(&verdict, "spec.analyzers.suricata.customContent", "no effect");
}

#[test]
fn taps_live_in_one_namespace_but_can_be_deleted_anywhere_without_record() {
    let stray = with(stored(MIRROR), json!({"metadata": {"namespace": "default"}}));
    let verdict = must_refuse(
        &rules(),
        &create(stray.clone()),
        "metadata.namespace",
        "must be trawl-system",
    );
    assert_eq!(verdict.action, Some(Action::NetworkTapCreate));
    assert_eq!(judged(&rules(), &delete(stray)), Verdict::default());
}

#[test]
fn a_broken_stored_tap_may_still_be_finalized_and_deleted() {
    let mut old = stored(MIRROR);
    old["spec"]
        .as_object_mut()
        .expect("spec")
        .remove("mirrorInterface");
    let object = with(old.clone(), json!({"metadata": {"finalizers": []}}));
    assert_eq!(judged(&rules(), &update(old.clone(), object)), Verdict::default());
    assert_eq!(
        must_admit(&rules(), &delete(old)).action,
        Some(Action::NetworkTapDelete)
    );
}
