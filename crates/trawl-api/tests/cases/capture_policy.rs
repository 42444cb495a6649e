use serde_json::{Value, json};

use super::{Case, case};

const SURICATA: &str = "capturepolicy-suricata";
const HUBBLE: &str = "capturepolicy-hubble";

fn policy(patch: Value, field: &'static str) -> Case {
    case(SURICATA, json!({"spec": patch}), field)
}

fn alert(patch: Value, field: &'static str) -> Case {
    policy(json!({"trigger": {"suricataAlert": patch}}), field)
}

fn drop(patch: Value, field: &'static str) -> Case {
    case(HUBBLE, json!({"spec": {"trigger": {"hubbleDrop": patch}}}), field)
}

fn capture(patch: Value, field: &'static str) -> Case {
    policy(json!({"capture": patch}), field)
}

fn template(text: &str) -> Case {
    capture(json!({"filterTemplate": text}), "spec.capture.filterTemplate")
}

pub fn create() -> Vec<Case> {
    let severities = "spec.trigger.suricataAlert.severities";
    let rules = "spec.trigger.suricataAlert.ruleIDs";
    let categories = "spec.trigger.suricataAlert.categories";
    let reasons = "spec.trigger.hubbleDrop.reasons";
    let namespaces = "spec.trigger.hubbleDrop.sourceNamespaces";
    let count = "spec.trigger.hubbleDrop.threshold.count";
    let window = "spec.trigger.hubbleDrop.threshold.window";
    let many: Vec<String> = (0..65).map(|n| format!("word-{n}")).collect();
    let rule_ids: Vec<u32> = (0..257).collect();
    let mut cases = vec![
        policy(json!({"tapRef": null}), "spec.tapRef"),
        policy(json!({"tapRef": {"name": ""}}), "spec.tapRef.name"),
        policy(json!({"tapRef": {"name": "Upper"}}), "spec.tapRef.name"),
        policy(json!({"armed": "true"}), "spec.armed"),
        policy(json!({"trigger": null}), "spec.trigger"),
        policy(json!({"trigger": {"type": "Cron"}}), "spec.trigger.type"),
        policy(
            json!({"trigger": {"suricataAlert": null}}),
            "spec.trigger.suricataAlert",
        ),
        policy(
            json!({"trigger": {"hubbleDrop": {"reasons": ["X"]}}}),
            "spec.trigger.hubbleDrop",
        ),
        policy(
            json!({"trigger": {"type": "HubbleDrop"}}),
            "spec.trigger.hubbleDrop",
        ),
        case(
            HUBBLE,
            json!({"spec": {"trigger": {"hubbleDrop": null}}}),
            "spec.trigger.hubbleDrop",
        ),
        case(
            HUBBLE,
            json!({"spec": {"trigger": {"suricataAlert": {"severities": [1]}}}}),
            "spec.trigger.suricataAlert",
        ),
        alert(json!({"severities": null}), severities),
        alert(json!({"severities": []}), severities),
        alert(json!({"severities": [0]}), severities),
        alert(json!({"severities": [5]}), severities),
        alert(json!({"severities": [1, 1]}), severities),
        alert(json!({"ruleIDs": [7, 7]}), rules),
        alert(json!({"ruleIDs": [-1]}), rules),
        alert(json!({"ruleIDs": [4_294_967_296_i64]}), rules),
        alert(json!({"ruleIDs": rule_ids}), rules),
        alert(json!({"categories": ["a", "a"]}), categories),
        alert(json!({"categories": [""]}), categories),
        alert(json!({"categories": ["x".repeat(129)]}), categories),
        alert(json!({"categories": ["é"]}), categories),
        alert(json!({"categories": many}), categories),
        drop(json!({"reasons": []}), reasons),
        drop(json!({"reasons": ["A", "A"]}), reasons),
        drop(json!({"reasons": many}), reasons),
        drop(json!({"sourceNamespaces": ["a", "a"]}), namespaces),
        drop(json!({"sourceNamespaces": ["Not_A_Namespace"]}), namespaces),
        drop(json!({"sourceNamespaces": many}), namespaces),
        drop(json!({"threshold": {"count": 0}}), count),
        drop(json!({"threshold": {"count": 10_001}}), count),
        drop(json!({"threshold": {"count": null}}), count),
        drop(json!({"threshold": {"window": "999ms"}}), window),
        drop(json!({"threshold": {"window": "15m1s"}}), window),
        drop(json!({"threshold": {"window": "1d"}}), window),
        policy(json!({"capture": null}), "spec.capture"),
        template(&"x".repeat(1025)),
        template("host ünïcode"),
        template(&"é".repeat(600)),
        template("host {{source.mac}}"),
        template("host {{source.ip}"),
        template("host {source.ip}"),
        template("host {{ env \"HOME\" }}"),
        template("host {{source.ip}}}}"),
        template("host {{hubble.dropReason}}"),
        case(
            HUBBLE,
            json!({"spec": {"capture": {"filterTemplate": "port {{ suricata.ruleID }}"}}}),
            "spec.capture.filterTemplate",
        ),
        policy(json!({"tapRef": {"name": "a".repeat(254)}}), "spec.tapRef.name"),
        policy(json!({"trigger": {"type": null}}), "spec.trigger.type"),
        alert(json!({"severities": ["1"]}), severities),
        alert(json!({"severities": [1, 2, 3, 4, 4]}), severities),
        alert(json!({"categories": ["tab\there"]}), categories),
        drop(json!({"reasons": null}), reasons),
        drop(json!({"reasons": [""]}), reasons),
        drop(json!({"reasons": ["x".repeat(129)]}), reasons),
        drop(json!({"reasons": ["é"]}), reasons),
        drop(json!({"sourceNamespaces": [""]}), namespaces),
        drop(json!({"sourceNamespaces": ["a".repeat(64)]}), namespaces),
        drop(json!({"sourceNamespaces": ["a.b"]}), namespaces),
        drop(json!({"threshold": {"count": -1}}), count),
        drop(json!({"threshold": {"window": null}}), window),
        drop(json!({"threshold": {"window": "0s"}}), window),
        drop(json!({"threshold": {"window": "15m0.000000001s"}}), window),
        drop(json!({"threshold": {"window": "soon"}}), window),
        capture(json!({"duration": null}), "spec.capture.duration"),
        capture(json!({"maxSize": null}), "spec.capture.maxSize"),
        template("host {{}}"),
        template("host {{Source.IP}}"),
        template("host {{source.ip}} {{{{source.ip}}}}"),
        template("host }}"),
        template("{{range .}}host {{source.ip}}{{end}}"),
        template("host $HOME {{.source.ip}}"),
        template("host\t{{source.ip}}"),
        template("host {{\u{a0}source.ip}}"),
        policy(json!({"rateLimit": null}), "spec.rateLimit"),
        policy(
            json!({"rateLimit": {"maxCapturesPerHour": null}}),
            "spec.rateLimit.maxCapturesPerHour",
        ),
        policy(
            json!({"rateLimit": {"maxCapturesPerHour": -1}}),
            "spec.rateLimit.maxCapturesPerHour",
        ),
        policy(
            json!({"rateLimit": {"cooldown": null}}),
            "spec.rateLimit.cooldown",
        ),
        policy(
            json!({"rateLimit": {"cooldown": "999ms"}}),
            "spec.rateLimit.cooldown",
        ),
        policy(
            json!({"rateLimit": {"cooldown": "1d"}}),
            "spec.rateLimit.cooldown",
        ),
        policy(
            json!({"rateLimit": {"maxCapturesPerHour": 0}}),
            "spec.rateLimit.maxCapturesPerHour",
        ),
        policy(
            json!({"rateLimit": {"maxCapturesPerHour": 101}}),
            "spec.rateLimit.maxCapturesPerHour",
        ),
        policy(
            json!({"rateLimit": {"cooldown": "0s"}}),
            "spec.rateLimit.cooldown",
        ),
        policy(
            json!({"rateLimit": {"cooldown": "1h1s"}}),
            "spec.rateLimit.cooldown",
        ),
    ];
    for text in super::capture_job::BAD_DURATIONS {
        cases.push(capture(json!({"duration": text}), "spec.capture.duration"));
    }
    for size in super::capture_job::bad_sizes() {
        cases.push(capture(json!({"maxSize": size}), "spec.capture.maxSize"));
    }
    for snaplen in super::capture_job::BAD_SNAPLENS {
        cases.push(capture(json!({"snaplen": snaplen}), "spec.capture.snaplen"));
    }
    for text in super::capture_job::BAD_PRE_TRIGGERS {
        cases.push(capture(json!({"preTrigger": text}), "spec.capture.preTrigger"));
    }
    for text in super::capture_job::BAD_RETENTIONS {
        cases.push(policy(json!({"retention": text}), "spec.retention"));
    }
    cases
}

pub fn update() -> Vec<Case> {
    vec![
        policy(json!({"retention": "31d"}), "spec.retention"),
        policy(json!({"trigger": {"type": "HubbleDrop"}}), "spec.trigger"),
        // The template was right for the trigger that it was written for.
        policy(
            json!({
                "trigger": {"type": "HubbleDrop", "suricataAlert": null, "hubbleDrop": {"reasons": ["X"]}},
                "capture": {"filterTemplate": "port {{suricata.severity}}"},
            }),
            "spec.capture.filterTemplate",
        ),
    ]
}

pub fn allowed() -> Vec<Case> {
    let mut cases = vec![
        policy(json!({"armed": false}), ""),
        policy(json!({"tapRef": {"name": "other"}, "retention": "1h"}), ""),
        policy(
            json!({"trigger": {"type": "HubbleDrop", "suricataAlert": null, "hubbleDrop": {"reasons": ["X"]}}}),
            "",
        ),
        template(
            "(host {{source.ip}} and port {{ source.port }}) or proto {{protocol}} or {{suricata.category}}",
        ),
        capture(
            json!({"filterTemplate": null, "snaplen": 64, "maxSize": 1_048_576, "preTrigger": "5m"}),
            "",
        ),
        capture(
            json!({"duration": "1h", "maxSize": "1Gi", "snaplen": 262_144, "preTrigger": "0d"}),
            "",
        ),
        alert(
            json!({"severities": [1, 2, 3, 4], "ruleIDs": [0, 4_294_967_295_u32]}),
            "",
        ),
    ];
    for text in [
        "1s", "1000ms", "0.5m", "1500ms", "59m60s", "1h", "60m", ".5h", "1.s", "1h0m0s",
    ] {
        cases.push(capture(json!({"duration": text}), ""));
    }
    for text in ["1h", "60m", "1d", "001d", "30d", "720h", "43200m", "24h0.5s"] {
        cases.push(policy(json!({"retention": text}), ""));
    }
    for text in ["0", "0s", "0d", "1ns", "5m", "300s", "4m60s", "2us", "2µs"] {
        cases.push(capture(json!({"preTrigger": text}), ""));
    }
    for size in [
        "1Mi",
        "1024Ki",
        "1.5Mi",
        ".5Gi",
        "1.Gi",
        "1G",
        "2e6",
        "2E6",
        "20e5",
        "+2Mi",
        "1048576000m",
        "1048576",
        "0.001T",
    ] {
        cases.push(capture(json!({"maxSize": size}), ""));
    }
    cases
}

pub fn accepted() -> Vec<Case> {
    let words: Vec<String> = (0..64).map(|n| format!("word-{n}")).collect();
    let rule_ids: Vec<u32> = (0..256).collect();
    let mut cases = vec![
        policy(json!({"tapRef": {"name": "a".repeat(253)}}), ""),
        policy(json!({"armed": null, "retention": null}), ""),
        alert(json!({"severities": [4], "categories": null}), ""),
        alert(json!({"ruleIDs": rule_ids, "categories": words}), ""),
        alert(json!({"ruleIDs": [], "categories": []}), ""),
        alert(
            json!({"categories": ["x".repeat(128), "~ A Network Trojan was detected!"]}),
            "",
        ),
        drop(
            json!({"reasons": words, "sourceNamespaces": words, "threshold": null}),
            "",
        ),
        drop(
            json!({"reasons": ["x".repeat(128)], "sourceNamespaces": ["a".repeat(63)]}),
            "",
        ),
        drop(json!({"threshold": {"count": 1, "window": "1s"}}), ""),
        drop(json!({"threshold": {"count": 10_000, "window": "15m"}}), ""),
        drop(json!({"threshold": {"window": "0.25h"}}), ""),
        template(""),
        template(&"x".repeat(1024)),
        template(&format!("{{{{source.ip}}}}{}", "x".repeat(1024 - 13))),
        template("{{  source.ip  }}{{destination.ip}}{{destination.port}}"),
        template("{{suricata.ruleID}} {{suricata.severity}} {{suricata.category}}"),
        case(
            HUBBLE,
            json!({"spec": {"capture": {"filterTemplate":
                "{{hubble.dropReason}}{{hubble.sourceNamespace}}{{ hubble.destinationNamespace }}{{protocol}}"}}}),
            "",
        ),
        policy(
            json!({"rateLimit": {"maxCapturesPerHour": 1, "cooldown": "1s"}}),
            "",
        ),
        policy(
            json!({"rateLimit": {"maxCapturesPerHour": 100, "cooldown": "1h"}}),
            "",
        ),
        capture(json!({"snaplen": 65, "preTrigger": null}), ""),
        capture(json!({"snaplen": 0, "maxSize": 1_073_741_824}), ""),
    ];
    for case in &mut cases {
        case.field = "";
    }
    cases
}
