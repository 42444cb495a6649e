use serde_json::{Value, json};

use super::{Case, case};

const MANUAL: &str = "capturejob-manual";
const POLICY: &str = "by-worker/capturejob-policy";
const SHA: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

pub const BAD_DURATIONS: [&str; 12] = [
    "",
    "0s",
    "999ms",
    "1h0m1s",
    "1d",
    "0d",
    "90",
    "abc",
    "-5m",
    "1h30",
    "1d1h",
    "999999999999999999999h",
];
pub const BAD_PRE_TRIGGERS: [&str; 5] = ["5m1s", "-1s", "1d", "300.000000001s", "soon"];
pub const BAD_RETENTIONS: [&str; 8] = ["", "59m59s", "0d", "31d", "720h0m1s", "1w", "99999d", "1.5d"];
pub const BAD_SNAPLENS: [i64; 4] = [-1, 1, 63, 262_145];

pub fn bad_sizes() -> Vec<Value> {
    let texts = [
        "",
        "1023Ki",
        "1025Mi",
        "1.5",
        "abc",
        "-50Mi",
        "1MB",
        "1048576.5",
        "1.1Mi",
        "1Ei",
        "0",
    ];
    let mut sizes: Vec<Value> = texts.iter().map(|t| json!(t)).collect();
    sizes.extend([
        json!(0),
        json!(-1),
        json!(1_048_575),
        json!(1_073_741_825),
        json!(1_048_576.5),
        json!(true),
    ]);
    sizes
}

fn manual(patch: Value, field: &'static str) -> Case {
    case(MANUAL, json!({"spec": patch}), field)
}

fn policy(patch: Value, field: &'static str) -> Case {
    case(POLICY, json!({"spec": patch}), field)
}

fn trigger(patch: Value, field: &'static str) -> Case {
    policy(json!({"trigger": patch}), field)
}

/// The job of a policy that watches drops.
fn dropped(hubble: Value, field: &'static str) -> Case {
    trigger(
        json!({"source": "HubbleDrop", "suricata": null, "hubble": hubble}),
        field,
    )
}

pub fn create() -> Vec<Case> {
    let snapshot = super::sample(POLICY)["spec"]["trigger"].clone();
    let reference = json!({"name": "p", "uid": "u", "generation": 1});
    let drop = json!({"dropReason": "POLICY_DENIED"});
    let mut cases = vec![
        manual(json!({"requestType": "Cron"}), "spec.requestType"),
        manual(json!({"tapRef": null}), "spec.tapRef"),
        manual(json!({"tapRef": {"name": ""}}), "spec.tapRef.name"),
        manual(json!({"tapRef": {"name": "a".repeat(254)}}), "spec.tapRef.name"),
        manual(json!({"targetNode": null}), "spec.targetNode"),
        manual(
            json!({"requestType": null, "targetNode": null}),
            "spec.targetNode",
        ),
        manual(json!({"targetNode": ""}), "spec.targetNode"),
        manual(json!({"targetNode": "Not A Node"}), "spec.targetNode"),
        manual(json!({"policyRef": reference}), "spec.policyRef"),
        manual(json!({"trigger": snapshot}), "spec.trigger"),
        manual(json!({"deduplicationKey": SHA}), "spec.deduplicationKey"),
        manual(json!({"requestType": "Policy"}), "spec.policyRef"),
        policy(json!({"policyRef": null}), "spec.policyRef"),
        policy(json!({"trigger": null}), "spec.trigger"),
        policy(json!({"deduplicationKey": null}), "spec.deduplicationKey"),
        policy(json!({"requestType": "Manual"}), "spec.policyRef"),
        policy(json!({"requestType": null}), "spec.deduplicationKey"),
        manual(json!({"filter": "x".repeat(1025)}), "spec.filter"),
        manual(json!({"filter": "é".repeat(600)}), "spec.filter"),
        manual(json!({"filter": "host ünïcode"}), "spec.filter"),
        manual(json!({"filter": "tcp\nport 1"}), "spec.filter"),
        manual(json!({"filter": 5}), "spec.filter"),
        manual(json!({"duration": null}), "spec.duration"),
        manual(json!({"duration": 120}), "spec.duration"),
        manual(json!({"maxSize": null}), "spec.maxSize"),
        policy(json!({"policyRef": {"name": ""}}), "spec.policyRef.name"),
        policy(json!({"policyRef": {"uid": ""}}), "spec.policyRef.uid"),
        policy(json!({"policyRef": {"uid": null}}), "spec.policyRef.uid"),
        policy(
            json!({"policyRef": {"generation": 0}}),
            "spec.policyRef.generation",
        ),
        policy(json!({"deduplicationKey": "0123"}), "spec.deduplicationKey"),
        policy(
            json!({"deduplicationKey": SHA.to_uppercase()}),
            "spec.deduplicationKey",
        ),
        trigger(json!({"source": "Cron"}), "spec.trigger.source"),
        trigger(json!({"source": "HubbleDrop"}), "spec.trigger.hubble"),
        trigger(json!({"suricata": null}), "spec.trigger.suricata"),
        trigger(json!({"hubble": drop}), "spec.trigger.hubble"),
        trigger(json!({"fingerprint": "sha256:8807e"}), "spec.trigger.fingerprint"),
        trigger(json!({"eventTime": "yesterday"}), "spec.trigger.eventTime"),
        trigger(
            json!({"eventTime": "1969-12-31T23:59:59Z"}),
            "spec.trigger.eventTime",
        ),
        trigger(
            json!({"eventTime": "9999-12-31T23:59:59Z"}),
            "spec.trigger.eventTime",
        ),
        trigger(
            json!({"observedAt": "9999-12-31T23:59:59-14:00"}),
            "spec.trigger.observedAt",
        ),
        trigger(
            json!({"observedAt": "2026-08-29T19:30:20+99:99"}),
            "spec.trigger.observedAt",
        ),
        trigger(json!({"observedAt": null}), "spec.trigger.observedAt"),
        trigger(
            json!({"flow": {"sourceIP": "localhost"}}),
            "spec.trigger.flow.sourceIP",
        ),
        trigger(
            json!({"flow": {"destinationIP": "10.0.0.256"}}),
            "spec.trigger.flow.destinationIP",
        ),
        trigger(
            json!({"flow": {"destinationPort": 65_536}}),
            "spec.trigger.flow.destinationPort",
        ),
        trigger(
            json!({"flow": {"sourcePort": -1}}),
            "spec.trigger.flow.sourcePort",
        ),
        trigger(
            json!({"suricata": {"severity": 5}}),
            "spec.trigger.suricata.severity",
        ),
        trigger(
            json!({"suricata": {"ruleID": 4_294_967_296_i64}}),
            "spec.trigger.suricata.ruleID",
        ),
    ];
    for address in [
        "",
        "10.0.0.1/32",
        "10.0.0.01",
        "fe80::1%eth0",
        "::ffff:10.0.0.1",
        "1:2:3:4:5:6:7",
    ] {
        cases.push(trigger(
            json!({"flow": {"sourceIP": address}}),
            "spec.trigger.flow.sourceIP",
        ));
    }
    let protocol = "spec.trigger.flow.protocol";
    let community = "spec.trigger.flow.communityID";
    let drop_reason = "spec.trigger.hubble.dropReason";
    cases.extend([
        trigger(json!({"flow": {"protocol": ""}}), protocol),
        trigger(json!({"flow": {"protocol": "T CP"}}), protocol),
        trigger(json!({"flow": {"protocol": "x".repeat(17)}}), protocol),
        trigger(json!({"flow": {"communityID": "abc"}}), community),
        trigger(json!({"flow": {"communityID": "1:"}}), community),
        trigger(
            json!({"flow": {"communityID": format!("1:{}", "a".repeat(63))}}),
            community,
        ),
        trigger(
            json!({"flow": {"destinationPort": -1}}),
            "spec.trigger.flow.destinationPort",
        ),
        trigger(
            json!({"flow": {"sourcePort": 65_536}}),
            "spec.trigger.flow.sourcePort",
        ),
        trigger(json!({"eventTime": null}), "spec.trigger.eventTime"),
        trigger(
            json!({"eventTime": "9999-01-01T00:00:00Z"}),
            "spec.trigger.eventTime",
        ),
        trigger(json!({"source": null}), "spec.trigger.source"),
        trigger(json!({"fingerprint": null}), "spec.trigger.fingerprint"),
        trigger(
            json!({"fingerprint": SHA.to_uppercase()}),
            "spec.trigger.fingerprint",
        ),
        trigger(
            json!({"fingerprint": format!("{SHA}0")}),
            "spec.trigger.fingerprint",
        ),
        trigger(
            json!({"suricata": {"severity": 0}}),
            "spec.trigger.suricata.severity",
        ),
        trigger(
            json!({"suricata": {"severity": null}}),
            "spec.trigger.suricata.severity",
        ),
        trigger(
            json!({"suricata": {"ruleID": -1}}),
            "spec.trigger.suricata.ruleID",
        ),
        trigger(
            json!({"suricata": {"ruleID": null}}),
            "spec.trigger.suricata.ruleID",
        ),
        trigger(
            json!({"suricata": {"revision": 4_294_967_296_i64}}),
            "spec.trigger.suricata.revision",
        ),
        trigger(
            json!({"suricata": {"category": ""}}),
            "spec.trigger.suricata.category",
        ),
        trigger(
            json!({"suricata": {"category": "x".repeat(129)}}),
            "spec.trigger.suricata.category",
        ),
        trigger(
            json!({"suricata": {"category": "é"}}),
            "spec.trigger.suricata.category",
        ),
        trigger(
            json!({"suricata": {"message": "x".repeat(513)}}),
            "spec.trigger.suricata.message",
        ),
        dropped(json!({}), drop_reason),
        dropped(json!({"dropReason": ""}), drop_reason),
        dropped(json!({"dropReason": "x".repeat(129)}), drop_reason),
        dropped(json!({"dropReason": "line\nbreak"}), drop_reason),
        dropped(
            json!({"dropReason": "X", "sourceNamespace": "Upper"}),
            "spec.trigger.hubble.sourceNamespace",
        ),
        dropped(
            json!({"dropReason": "X", "destinationNamespace": "a.b"}),
            "spec.trigger.hubble.destinationNamespace",
        ),
        dropped(
            json!({"dropReason": "X", "destinationNamespace": "a".repeat(64)}),
            "spec.trigger.hubble.destinationNamespace",
        ),
        policy(json!({"policyRef": {"name": "Upper"}}), "spec.policyRef.name"),
        policy(
            json!({"policyRef": {"uid": "u".repeat(129)}}),
            "spec.policyRef.uid",
        ),
        policy(
            json!({"policyRef": {"generation": null}}),
            "spec.policyRef.generation",
        ),
        policy(
            json!({"deduplicationKey": format!("{SHA}0")}),
            "spec.deduplicationKey",
        ),
        manual(json!({"targetNode": "a".repeat(254)}), "spec.targetNode"),
        manual(json!({"filter": "tcp\tport 1"}), "spec.filter"),
        manual(json!({"filter": "tcp\u{7f}"}), "spec.filter"),
        manual(json!({"filter": ["tcp"]}), "spec.filter"),
        manual(json!({"snaplen": "64"}), "spec.snaplen"),
        manual(json!({"retention": 30}), "spec.retention"),
    ]);
    for text in BAD_DURATIONS {
        cases.push(manual(json!({"duration": text}), "spec.duration"));
    }
    for size in bad_sizes() {
        cases.push(manual(json!({"maxSize": size}), "spec.maxSize"));
    }
    for snaplen in BAD_SNAPLENS {
        cases.push(manual(json!({"snaplen": snaplen}), "spec.snaplen"));
    }
    for text in BAD_PRE_TRIGGERS {
        cases.push(manual(json!({"preTrigger": text}), "spec.preTrigger"));
    }
    for text in BAD_RETENTIONS {
        cases.push(manual(json!({"retention": text}), "spec.retention"));
    }
    cases
}

pub fn update() -> Vec<Case> {
    let snapshot = super::sample(POLICY)["spec"]["trigger"].clone();
    vec![
        manual(json!({"tapRef": {"name": "other"}}), "spec.tapRef"),
        manual(json!({"targetNode": "other"}), "spec.targetNode"),
        policy(json!({"targetNode": null}), "spec.targetNode"),
        manual(json!({"filter": "udp"}), "spec.filter"),
        manual(json!({"filter": null}), "spec.filter"),
        manual(json!({"filter": ""}), "spec.filter"),
        manual(json!({"duration": "2m1s"}), "spec.duration"),
        manual(json!({"snaplen": 128}), "spec.snaplen"),
        manual(json!({"maxSize": "51Mi"}), "spec.maxSize"),
        manual(json!({"maxSize": 52_428_801}), "spec.maxSize"),
        manual(json!({"preTrigger": "1s"}), "spec.preTrigger"),
        manual(
            json!({
                "requestType": "Policy",
                "policyRef": {"name": "p", "uid": "u", "generation": 1},
                "trigger": snapshot,
                "deduplicationKey": SHA,
            }),
            "spec.requestType",
        ),
        policy(
            json!({"requestType": "Manual", "policyRef": null, "trigger": null, "deduplicationKey": null}),
            "spec.requestType",
        ),
        policy(json!({"policyRef": {"generation": 4}}), "spec.policyRef"),
        policy(json!({"trigger": {"flow": null}}), "spec.trigger"),
        policy(
            json!({"trigger": {"eventTime": "2026-08-29T19:30:19Z"}}),
            "spec.trigger",
        ),
        policy(json!({"deduplicationKey": SHA}), "spec.deduplicationKey"),
        manual(json!({"retention": "31d"}), "spec.retention"),
        manual(json!({"retention": "59m"}), "spec.retention"),
        manual(json!({"duration": "119.999999999s"}), "spec.duration"),
        manual(json!({"maxSize": "50M"}), "spec.maxSize"),
        manual(json!({"snaplen": 64}), "spec.snaplen"),
        manual(json!({"preTrigger": "1ns"}), "spec.preTrigger"),
        policy(json!({"policyRef": {"uid": "other"}}), "spec.policyRef"),
        policy(json!({"policyRef": {"name": "other"}}), "spec.policyRef"),
        policy(
            json!({"trigger": {"suricata": {"message": null}}}),
            "spec.trigger",
        ),
        policy(json!({"trigger": {"flow": {"sourcePort": 1}}}), "spec.trigger"),
        policy(
            json!({"trigger": {"source": "HubbleDrop", "suricata": null, "hubble": {"dropReason": "X"}}}),
            "spec.trigger",
        ),
    ]
}

pub fn allowed() -> Vec<Case> {
    vec![
        manual(json!({"retention": "1h"}), ""),
        manual(json!({"retention": "720h"}), ""),
        manual(json!({"retention": null}), ""),
        manual(json!({"duration": "120s", "maxSize": 52_428_800}), ""),
        manual(
            json!({"duration": "1m60s", "maxSize": "51200Ki", "snaplen": null, "preTrigger": "0"}),
            "",
        ),
    ]
}

pub fn accepted() -> Vec<Case> {
    let mut cases = vec![
        manual(
            json!({"requestType": null, "filter": null, "snaplen": null, "retention": null}),
            "",
        ),
        manual(
            json!({"tapRef": {"name": "a".repeat(253)}, "targetNode": "a".repeat(253)}),
            "",
        ),
        manual(json!({"filter": ""}), ""),
        manual(json!({"filter": "x".repeat(1024)}), ""),
        manual(json!({"filter": "~ !"}), ""),
        policy(json!({"targetNode": null}), ""),
        policy(
            json!({"policyRef": {"name": "a".repeat(253), "uid": "u".repeat(128), "generation": 1}}),
            "",
        ),
        trigger(json!({"flow": null}), ""),
        trigger(json!({"flow": {"sourcePort": 0, "destinationPort": 65_535}}), ""),
        trigger(
            json!({"flow": {"sourceIP": "2001:db8::1", "destinationIP": "::", "protocol": "IPv6-ICMP"}}),
            "",
        ),
        trigger(
            json!({"flow": {"protocol": "x".repeat(16), "communityID": format!("1:{}", "a".repeat(62))}}),
            "",
        ),
        trigger(
            json!({"eventTime": "1970-01-01T00:00:00Z", "observedAt": "9998-12-31T23:59:59.999999Z"}),
            "",
        ),
        trigger(json!({"eventTime": "2026-08-29T21:30:20.123456+02:00"}), ""),
        trigger(
            json!({"suricata": {"severity": 4, "ruleID": 0, "revision": 0}}),
            "",
        ),
        trigger(
            json!({"suricata": {"ruleID": u32::MAX, "revision": u32::MAX, "message": "é".repeat(512)}}),
            "",
        ),
        trigger(
            json!({"suricata": {"category": "x".repeat(128), "message": null}}),
            "",
        ),
        dropped(json!({"dropReason": "x".repeat(128)}), ""),
        dropped(
            json!({"dropReason": "X", "sourceNamespace": "a".repeat(63), "destinationNamespace": "b"}),
            "",
        ),
    ];
    for duration in ["1s", "1000ms", "3600s", "1h", "59m59.999999999s"] {
        cases.push(manual(json!({"duration": duration}), ""));
    }
    for size in [
        json!("1Mi"),
        json!(1_048_576),
        json!("1Gi"),
        json!(1_073_741_824),
        json!("1G"),
    ] {
        cases.push(manual(json!({"maxSize": size}), ""));
    }
    for snaplen in [0, 64, 65, 262_143, 262_144] {
        cases.push(manual(json!({"snaplen": snaplen}), ""));
    }
    for text in ["0", "0s", "5m", "299.999999999s"] {
        cases.push(manual(json!({"preTrigger": text}), ""));
    }
    for text in ["1h", "1d", "30d", "720h", "3600s"] {
        cases.push(manual(json!({"retention": text}), ""));
    }
    cases
}
