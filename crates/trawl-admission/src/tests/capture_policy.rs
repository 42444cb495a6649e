use serde_json::{Value, json};
use trawl_audit::Action;

use super::common::*;
use crate::*;

const SURICATA: &str = "capturepolicy-suricata";
const HUBBLE: &str = "capturepolicy-hubble";
const TEMPLATE: &str = "spec.capture.filterTemplate";
const CATEGORY: &str = "spec.trigger.suricataAlert.categories[0]";

fn policy(patch: Value) -> Value {
    with(
        with(stored(SURICATA), json!({"spec": {"armed": false}})),
        json!({"spec": patch}),
    )
}

fn template(text: &str) -> Request {
    create(policy(json!({"capture": {"filterTemplate": text}})))
}

#[test]
fn the_samples_are_admitted_with_a_word_about_being_armed() {
    for sample in [SURICATA, HUBBLE] {
        let verdict = must_admit(&rules(), &create(stored(sample)));
        assert_eq!(verdict.action, Some(Action::CapturePolicyArm));
        must_warn(&verdict, "spec.armed", "created armed");
    }
    let verdict = must_admit(&rules(), &create(policy(json!({}))));
    assert_eq!(
        (verdict.action, verdict.warnings),
        (Some(Action::CapturePolicyCreate), vec![])
    );
}

#[test]
fn arming_disarming_and_changing_are_different_acts() {
    let cooldown = json!({"rateLimit": {"cooldown": "2m"}});
    for (old, new, action) in [
        (json!({}), json!({"armed": true}), Action::CapturePolicyArm),
        (
            json!({"armed": true}),
            json!({"armed": false}),
            Action::CapturePolicyDisarm,
        ),
        (
            json!({"armed": true}),
            json!({"armed": null}),
            Action::CapturePolicyDisarm,
        ),
        (json!({}), cooldown.clone(), Action::CapturePolicyUpdate),
        (
            json!({"armed": true}),
            json!({"armed": true, "rateLimit": {"cooldown": "2m"}}),
            Action::CapturePolicyUpdate,
        ),
        (
            json!({}),
            json!({"armed": true, "rateLimit": {"cooldown": "2m"}}),
            Action::CapturePolicyArm,
        ),
        (json!({"armed": true}), cooldown, Action::CapturePolicyDisarm),
    ] {
        let verdict = must_admit(&rules(), &update(policy(old), policy(new)));
        assert_eq!(verdict.action, Some(action));
        assert_eq!(
            verdict.warnings,
            Vec::<String>::new(),
            "only a new policy is told that it is armed"
        );
    }
    assert_eq!(
        must_admit(&rules(), &delete(policy(json!({})))).action,
        Some(Action::CapturePolicyDelete)
    );
}

#[test]
fn an_accepted_policy_can_always_be_disarmed() {
    let broken = json!({"armed": true, "capture": {"filterTemplate": "{{nonsense", "maxSize": "9Gi"}, "retention": "90d",
        "unknown": {"of": "older versions"}});
    let old = policy(broken);
    for armed in [json!(false), json!(null)] {
        let mut request = update(old.clone(), with(old.clone(), json!({"spec": {"armed": armed}})));
        request.namespace = "elsewhere".into();
        let verdict = must_admit(&rules(), &request);
        assert_eq!(verdict.action, Some(Action::CapturePolicyDisarm));
    }
    // Whoever changes more than that is judged by the rules of today.
    let more = with(old.clone(), json!({"spec": {"armed": false, "retention": "91d"}}));
    let verdict = judged(&rules(), &update(old.clone(), more));
    assert_eq!(
        fields(&verdict),
        ["spec.capture.maxSize", TEMPLATE, "spec.retention"]
    );
    let disarmed = with(old, json!({"spec": {"armed": false}}));
    let armed = with(disarmed.clone(), json!({"spec": {"armed": true}}));
    let verdict = judged(&rules(), &update(disarmed, armed));
    assert_eq!(verdict.action, Some(Action::CapturePolicyArm));
    assert!(!verdict.problems.is_empty(), "arming is no way around the rules");
}

#[test]
fn bounds_are_met_at_and_not_beyond_their_edges() {
    let rows = [
        (
            "spec.capture.duration",
            json!({"capture": {"duration": "999ms"}}),
            json!({"capture": {"duration": "1s"}}),
        ),
        (
            "spec.capture.duration",
            json!({"capture": {"duration": "61m"}}),
            json!({"capture": {"duration": "60m"}}),
        ),
        (
            "spec.capture.snaplen",
            json!({"capture": {"snaplen": 63}}),
            json!({"capture": {"snaplen": 64}}),
        ),
        (
            "spec.capture.maxSize",
            json!({"capture": {"maxSize": 1}}),
            json!({"capture": {"maxSize": "1Mi"}}),
        ),
        (
            "spec.capture.maxSize",
            json!({"capture": {"maxSize": "1025Mi"}}),
            json!({"capture": {"maxSize": "1Gi"}}),
        ),
        (
            "spec.capture.preTrigger",
            json!({"capture": {"preTrigger": "301s"}}),
            json!({"capture": {"preTrigger": "5m"}}),
        ),
        (
            "spec.rateLimit.cooldown",
            json!({"rateLimit": {"cooldown": "0s"}}),
            json!({"rateLimit": {"cooldown": "1s"}}),
        ),
        (
            "spec.rateLimit.cooldown",
            json!({"rateLimit": {"cooldown": "1h1s"}}),
            json!({"rateLimit": {"cooldown": "1h"}}),
        ),
        (
            "spec.rateLimit.maxCapturesPerHour",
            json!({"rateLimit": {"maxCapturesPerHour": 0}}),
            json!({"rateLimit": {"maxCapturesPerHour": 1}}),
        ),
        (
            "spec.rateLimit.maxCapturesPerHour",
            json!({"rateLimit": {"maxCapturesPerHour": 101}}),
            json!({"rateLimit": {"maxCapturesPerHour": 100}}),
        ),
        (
            "spec.retention",
            json!({"retention": "59m"}),
            json!({"retention": "60m"}),
        ),
    ];
    for (field, beyond, at) in rows {
        for old in [None, Some(policy(json!({})))] {
            let operation = if old.is_some() {
                Operation::Update
            } else {
                Operation::Create
            };
            let asked = |patch: &Value| request(operation, Some(policy(patch.clone())), old.clone());
            assert_eq!(fields(&judged(&rules(), &asked(&beyond))), [field], "{beyond}");
            must_admit(&rules(), &asked(&at));
        }
    }
}

#[test]
fn a_template_is_parsed_and_tried_out() {
    for (text, words) in [
        ("host {{source.mac}}", "byte 6: unknown placeholder"),
        ("host {source.ip}", "byte 6: braces"),
        ("host {{hubble.dropReason}}", "no value for SuricataAlert"),
        ("host {{suricata.category}}", "free text"),
        ("net {{source.ip}}/8", "stand alone"),
        ("net 0.0.0.0 mask {{source.ip}}", "value of a test"),
        ("host {{source.port}}", "byte 6"),
        ("host {{source.ip}} and secretword", "byte 24"),
        ("tcp and udp and host {{source.ip}}", "rejects all packets"),
        ("host\t{{source.ip}}", "printable ASCII"),
    ] {
        let verdict = must_refuse(&rules(), &template(text), TEMPLATE, words);
        assert!(!format!("{verdict:?}").contains("secretword"));
    }
    let long = format!("host {{{{source.ip}}}}{}", " ".repeat(1007));
    must_refuse(&rules(), &template(&long), TEMPLATE, "1024");
    let fits = "tcp".to_owned() + &" ".repeat(1021);
    must_admit(&rules(), &template(&fits));
}

#[test]
fn a_placeholder_of_the_other_trigger_is_refused_with_what_there_is() {
    let object = with(
        stored(HUBBLE),
        json!({"spec": {"capture": {"filterTemplate": "port {{suricata.ruleID}}"}}}),
    );
    must_refuse(
        &rules(),
        &create(object),
        TEMPLATE,
        "no value for HubbleDrop triggers; use one of {{source.ip}}",
    );
}

#[test]
fn what_is_legal_but_surprising_about_a_template_is_said() {
    for (text, words) in [
        ("", "every packet"),
        ("  ", "every packet"),
        ("ip host {{source.ip}}", "captures fail: IPv6"),
        (
            "host {{source.ip}} and port {{source.port}}",
            "captures fail: ICMP; ICMPv6",
        ),
        ("tcp port 443", "no placeholder"),
        ("(vlan and host {{source.ip}}) or host {{source.ip}}", "untagged"),
        ("(pppoes and host {{source.ip}}) or host {{source.ip}}", "pppoes"),
        (
            "vlan {{suricata.severity}} and host {{source.ip}}",
            "no part of a packet",
        ),
    ] {
        let verdict = must_admit(&rules(), &template(text));
        must_warn(&verdict, TEMPLATE, words);
    }
    let tunnels = Rules {
        filter: trawl_filter::Options {
            tunnels: true,
            ..Default::default()
        },
        ..rules()
    };
    must_warn(
        &must_admit(&tunnels, &template("not host {{source.ip}}")),
        TEMPLATE,
        "says not",
    );
    let without = create(policy(json!({"capture": {"filterTemplate": null}})));
    must_warn(&must_admit(&rules(), &without), TEMPLATE, "every packet");
}

#[test]
fn a_category_that_may_never_match_is_a_warning() {
    for (category, words) in [
        ("trojan-activity", ""),
        ("A Network Trojan was detected", ""),
        (
            "Trojan-Activity",
            "\"trojan-activity\" (A Network Trojan was detected)",
        ),
        ("my-own-class", "no classification"),
        ("network-scan", "severity 3"),
    ] {
        let object = policy(json!({"trigger": {"suricataAlert": {"categories": [category]}}}));
        let verdict = must_admit(&rules(), &create(object));
        if words.is_empty() {
            assert_eq!(verdict.warnings, Vec::<String>::new(), "{category}");
        } else {
            must_warn(&verdict, CATEGORY, words);
            assert!(!format!("{verdict:?}").contains("my-own-class"));
        }
    }
}

#[test]
fn the_two_policy_reasons_of_cilium_are_told_apart() {
    let field = "spec.trigger.hubbleDrop.reasons";
    for (reasons, words) in [
        (json!(["POLICY_DENIED"]), "their reason is POLICY_DENY"),
        (
            json!(["POLICY_DENY", "VLAN_FILTERED"]),
            "their reason is POLICY_DENIED",
        ),
    ] {
        let object = with(
            stored(HUBBLE),
            json!({"spec": {"armed": false, "trigger": {"hubbleDrop": {"reasons": reasons}}}}),
        );
        must_warn(&must_admit(&rules(), &create(object)), field, words);
    }
    let unknown = json!({"reasons": ["VLAN_FILTERED", "206", "POLICY_DENIDE"]});
    let object = with(
        stored(HUBBLE),
        json!({"spec": {"armed": false, "trigger": {"hubbleDrop": unknown}}}),
    );
    let verdict = must_admit(&rules(), &create(object));
    assert_eq!(verdict.warnings.len(), 1, "{:?}", verdict.warnings);
    must_warn(&verdict, "spec.trigger.hubbleDrop.reasons[2]", "no drop reason");
    let both = json!({"reasons": ["POLICY_DENIED", "POLICY_DENY"]});
    let object = with(
        stored(HUBBLE),
        json!({"spec": {"armed": false, "trigger": {"hubbleDrop": both}}}),
    );
    assert_eq!(
        must_admit(&rules(), &create(object)).warnings,
        Vec::<String>::new()
    );
}

#[test]
fn a_missing_tap_small_packets_and_the_past_are_warnings() {
    let mut request = create(policy(json!({"capture": {"snaplen": 64, "preTrigger": "10s"}})));
    request.tap = TapReference::Missing;
    let verdict = must_admit(&rules(), &request);
    must_warn(&verdict, "spec.tapRef.name", "no NetworkTap");
    must_warn(&verdict, "spec.capture.snaplen", "headers");
    must_warn(&verdict, "spec.capture.preTrigger", "history");
    assert_eq!(verdict.warnings.len(), 3);
}

#[test]
fn policies_live_in_one_namespace() {
    let object = with(stored(SURICATA), json!({"metadata": {"namespace": "default"}}));
    let verdict = must_refuse(
        &rules(),
        &create(object),
        "metadata.namespace",
        "must be trawl-system",
    );
    assert_eq!(verdict.action, Some(Action::CapturePolicyArm));
}
