use serde_json::{Value, json};
use trawl_audit::Action;

use super::common::*;
use crate::*;

const MANUAL: &str = "capturejob-manual";
const POLICY: &str = "by-worker/capturejob-policy";
const REQUESTER: &str = "metadata.annotations[trawl.cloud/requester]";

fn manual(patch: Value) -> Request {
    create(with(stored(MANUAL), json!({"spec": patch})))
}

fn by_worker(object: Value) -> Request {
    let mut request = create(with(
        object,
        json!({"metadata": {"annotations": {"trawl.cloud/requester": WORKER}}}),
    ));
    request.caller.username = WORKER.into();
    request
}

#[test]
fn the_samples_are_admitted_and_recorded() {
    let verdict = must_admit(&rules(), &create(stored(MANUAL)));
    assert_eq!(
        (verdict.action, verdict.warnings),
        (Some(Action::CaptureJobManualCreate), vec![])
    );
    let verdict = must_admit(&rules(), &by_worker(stored(POLICY)));
    assert_eq!(
        (verdict.action, verdict.warnings),
        (Some(Action::CaptureJobPolicyCreate), vec![])
    );
}

#[test]
fn only_the_worker_creates_captures_of_type_policy() {
    for username in [
        USER,
        "",
        "trawl-worker",
        "system:serviceaccount:other:trawl-worker",
    ] {
        let mut request = by_worker(stored(POLICY));
        request.caller.username = username.into();
        request.object = request.object.map(|o| {
            with(
                o,
                json!({"metadata": {"annotations": {"trawl.cloud/requester": username}}}),
            )
        });
        let verdict = must_refuse(
            &rules(),
            &request,
            "spec.requestType",
            "reserved for the event worker",
        );
        assert_eq!(verdict.action, Some(Action::CaptureJobPolicyCreate));
    }
}

#[test]
fn a_new_capture_names_the_one_who_asks() {
    for given in [json!("grace"), json!(""), Value::Null] {
        let object = with(
            stored(MANUAL),
            json!({"metadata": {"annotations": {"trawl.cloud/requester": given}}}),
        );
        let verdict = must_refuse(&rules(), &create(object), REQUESTER, "authenticated user");
        assert_eq!(verdict.action, Some(Action::CaptureJobManualCreate));
    }
}

#[test]
fn the_one_who_asked_stays_named_and_nobody_is_named_later() {
    let old = stored(MANUAL);
    for given in [json!("grace"), json!(""), Value::Null] {
        let object = with(
            old.clone(),
            json!({"metadata": {"annotations": {"trawl.cloud/requester": given}}}),
        );
        let request = as_administrator(update(old.clone(), object));
        let verdict = must_refuse(&rules(), &request, REQUESTER, "immutable");
        assert_eq!(verdict.action, None);
    }
    let mut before = old.clone();
    before["metadata"]
        .as_object_mut()
        .expect("metadata")
        .remove("annotations");
    must_refuse(&rules(), &update(before, old), REQUESTER, "immutable");
}

#[test]
fn evidence_has_no_owner() {
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": uid});
    let owned = |owners: Value| with(stored(MANUAL), json!({"metadata": {"ownerReferences": owners}}));
    let field = "metadata.ownerReferences";
    must_refuse(
        &rules(),
        &create(owned(json!([owner("1")]))),
        field,
        "spec.retention",
    );
    must_refuse(
        &rules(),
        &by_worker(with(
            stored(POLICY),
            json!({"metadata": {"ownerReferences": [owner("1")]}}),
        )),
        field,
        "evidence",
    );
    for (old, new) in [
        (json!([]), json!([owner("1")])),
        (json!([owner("1")]), json!([owner("2")])),
        (json!([owner("1")]), json!([owner("1"), owner("2")])),
    ] {
        must_refuse(&rules(), &update(owned(old), owned(new)), field, "evidence");
    }
    for (old, new) in [
        (json!([owner("1")]), json!([owner("1")])),
        (json!([owner("1"), owner("2")]), json!([owner("2")])),
        (json!([owner("1")]), json!([])),
    ] {
        must_admit(&rules(), &update(owned(old), owned(new)));
    }
}

#[test]
fn controllers_change_what_is_not_guarded_without_being_judged_or_recorded() {
    let mut old = with(
        stored(MANUAL),
        json!({"spec": {"filter": "no filter at all", "retention": "90d"}}),
    );
    for namespace in ["trawl-system", "elsewhere"] {
        old["metadata"]["namespace"] = namespace.into();
        let object = with(
            old.clone(),
            json!({"metadata": {"finalizers": ["trawl.cloud/capturejob-cleanup"], "labels": {"a": "b"},
                "annotations": {"other": "x"}}}),
        );
        let verdict = must_admit(&rules(), &update(old.clone(), object));
        assert_eq!(verdict, Verdict::default());
    }
}

#[test]
fn captures_live_in_one_namespace() {
    for namespace in ["default", "trawl-system2", ""] {
        let object = with(stored(MANUAL), json!({"metadata": {"namespace": namespace}}));
        must_refuse(
            &rules(),
            &create(object),
            "metadata.namespace",
            "must be trawl-system",
        );
    }
}

#[test]
fn every_field_but_retention_is_immutable_by_presence_and_value() {
    let snapshot = stored(POLICY)["spec"]["trigger"].clone();
    let sha = format!("sha256:{}", "0".repeat(64));
    let rows = [
        (MANUAL, json!({"tapRef": {"name": "other"}}), "tapRef"),
        (MANUAL, json!({"targetNode": "other"}), "targetNode"),
        (POLICY, json!({"targetNode": null}), "targetNode"),
        (MANUAL, json!({"filter": "udp"}), "filter"),
        (MANUAL, json!({"filter": null}), "filter"),
        (MANUAL, json!({"filter": ""}), "filter"),
        (MANUAL, json!({"duration": "2m1s"}), "duration"),
        (MANUAL, json!({"snaplen": 128}), "snaplen"),
        (MANUAL, json!({"maxSize": "51Mi"}), "maxSize"),
        (MANUAL, json!({"maxSize": 52_428_801}), "maxSize"),
        (MANUAL, json!({"preTrigger": "1s"}), "preTrigger"),
        (MANUAL, json!({"requestType": "Policy"}), "requestType"),
        (
            MANUAL,
            json!({"policyRef": {"name": "p", "uid": "u", "generation": 1}}),
            "policyRef",
        ),
        (MANUAL, json!({"trigger": snapshot}), "trigger"),
        (MANUAL, json!({"deduplicationKey": sha}), "deduplicationKey"),
        (POLICY, json!({"policyRef": {"generation": 4}}), "policyRef"),
        (POLICY, json!({"policyRef": {"uid": "other"}}), "policyRef"),
        (POLICY, json!({"policyRef": null}), "policyRef"),
        (POLICY, json!({"trigger": {"flow": null}}), "trigger"),
        (
            POLICY,
            json!({"trigger": {"eventTime": "2026-08-29T19:30:19Z"}}),
            "trigger",
        ),
        (
            POLICY,
            json!({"trigger": {"suricata": {"message": "other"}}}),
            "trigger",
        ),
        (POLICY, json!({"deduplicationKey": sha}), "deduplicationKey"),
    ];
    for (sample, patch, field) in rows {
        let old = stored(sample);
        let object = with(old.clone(), json!({"spec": patch}));
        let request = as_administrator(update(old, object));
        let verdict = must_refuse(&rules(), &request, &format!("spec.{field}"), "immutable");
        assert_eq!(verdict.action, None, "{field}");
    }
}

#[test]
fn other_words_for_the_same_value_are_no_change() {
    for patch in [
        json!({"duration": "120s", "maxSize": 52_428_800}),
        json!({"duration": "1m60s", "maxSize": "51200Ki", "snaplen": null, "preTrigger": "0"}),
        json!({"maxSize": "52428800"}),
        json!({"requestType": null, "preTrigger": null}),
        json!({"retention": "168h"}),
    ] {
        let old = stored(MANUAL);
        let object = with(old.clone(), json!({"spec": patch}));
        let verdict = must_admit(&rules(), &update(old, object));
        assert_eq!(verdict.action, None);
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let mut request = manual(json!({
        "targetNode": null, "filter": "host nowhere.example", "duration": "2h", "snaplen": 63, "maxSize": "2Gi",
        "preTrigger": "6m", "retention": "31d",
    }));
    request.namespace = "elsewhere".into();
    request.caller.username = "grace".into();
    assert_eq!(
        fields(&judged(&rules(), &request)),
        [
            "metadata.namespace",
            REQUESTER,
            "spec.duration",
            "spec.snaplen",
            "spec.maxSize",
            "spec.preTrigger",
            "spec.targetNode",
            "spec.filter",
            "spec.retention"
        ]
    );
}

#[test]
fn bounds_are_met_at_and_not_beyond_their_edges() {
    let rows = [
        ("duration", json!("999ms"), json!("1s")),
        ("duration", json!("1h0m0.001s"), json!("1h")),
        ("snaplen", json!(63), json!(64)),
        ("snaplen", json!(262_145), json!(262_144)),
        ("snaplen", json!(-1), json!(0)),
        ("maxSize", json!("1023Ki"), json!("1Mi")),
        ("maxSize", json!(1_073_741_825), json!("1Gi")),
        ("preTrigger", json!("5m0.1s"), json!("5m")),
        ("retention", json!("59m59s"), json!("1h")),
        ("retention", json!("720h0m1s"), json!("30d")),
        (
            "filter",
            json!("tcp ".to_owned() + &" ".repeat(1021)),
            json!("tcp ".to_owned() + &" ".repeat(1020)),
        ),
    ];
    for (field, beyond, at) in rows {
        let path = format!("spec.{field}");
        let verdict = judged(&rules(), &manual(json!({field: beyond})));
        assert_eq!(fields(&verdict), [path], "{beyond}");
        must_admit(&rules(), &manual(json!({field: at})));
    }
}

#[test]
fn a_filter_that_does_not_compile_is_refused_without_being_repeated() {
    for (filter, words) in [
        ("host secretserver.example", "byte 6"),
        ("tcp and udp", "rejects all packets"),
        ("tcp port", "filter"),
        ("(tcp", "byte 1"),
        ("tcp\nudp", "printable ASCII"),
        ("host ::ffff:10.0.0.1", "byte 6"),
    ] {
        let verdict = must_refuse(&rules(), &manual(json!({"filter": filter})), "spec.filter", words);
        assert!(!format!("{verdict:?}").contains("secretserver"));
    }
}

#[test]
fn what_is_legal_but_surprising_is_said() {
    for (patch, field, words) in [
        (json!({"filter": null}), "spec.filter", "every packet"),
        (json!({"filter": "   "}), "spec.filter", "every packet"),
        (json!({"snaplen": 64}), "spec.snaplen", "cut the headers"),
        (json!({"snaplen": 127}), "spec.snaplen", "128"),
        (json!({"preTrigger": "1ms"}), "spec.preTrigger", "history"),
        (
            json!({"filter": "(vlan and host 10.0.0.1) or host 10.0.0.1"}),
            "spec.filter",
            "untagged",
        ),
        (
            json!({"filter": "(mpls and host 10.0.0.1) or host 10.0.0.1"}),
            "spec.filter",
            "mpls",
        ),
    ] {
        let verdict = must_admit(&rules(), &manual(patch));
        assert_eq!(verdict.warnings.len(), 1, "{:?}", verdict.warnings);
        must_warn(&verdict, field, words);
    }
    assert_eq!(
        must_admit(&rules(), &manual(json!({"snaplen": 128}))).warnings,
        Vec::<String>::new()
    );
}

#[test]
fn a_missing_tap_is_a_warning_and_no_refusal() {
    for (tap, warned) in [
        (TapReference::Missing, true),
        (TapReference::Found, false),
        (TapReference::Unknown, false),
    ] {
        let verdict = must_admit(
            &rules(),
            &Request {
                tap,
                ..create(stored(MANUAL))
            },
        );
        assert_eq!(
            verdict.warnings.iter().any(|w| w.contains("no NetworkTap")),
            warned,
            "{tap:?}"
        );
    }
}

#[test]
fn deleting_is_admitted_everywhere_and_says_what_goes_with_it() {
    let old = with(stored(MANUAL), json!({"metadata": {"namespace": "elsewhere"}}));
    assert_eq!(judged(&rules(), &delete(old)), Verdict::default());
    let artifact =
        json!({"status": {"artifact": {"profile": "p", "key": "k", "verifiedAt": "2026-09-01T00:00:00Z"}}});
    let verdict = must_admit(&rules(), &delete(with(stored(MANUAL), artifact)));
    assert_eq!(verdict.action, None);
    must_warn(&verdict, "status.artifact", "deleted together");
}
