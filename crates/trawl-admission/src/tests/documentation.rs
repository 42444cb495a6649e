//! Every refusal that is Trawl's own is explained in docs/refusals, word for word.

use std::{fs, path::PathBuf};

use regex::Regex;
use serde_json::{Value, json};
use trawl_api::MirrorProvider;

use super::common::*;
use crate::*;

/// The messages of a page as patterns: what stands in backquotes in the first column, `<...>` for anything.
fn explained(page: &str) -> Vec<Regex> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/refusals/{page}.md"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let messages = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let hole = Regex::new("<[a-z]+>").expect("pattern");
    let patterns = messages.map(|(message, _)| {
        let pieces: Vec<String> = hole.split(message).map(regex::escape).collect();
        Regex::new(&format!("^{}$", pieces.join(".+"))).expect("pattern")
    });
    patterns.collect()
}

#[track_caller]
fn all_explained(page: &str, messages: &[String]) {
    let patterns = explained(page);
    assert!(patterns.len() >= 10, "{page} has {} messages", patterns.len());
    for message in messages {
        assert!(
            patterns.iter().any(|p| p.is_match(message)),
            "{page}.md does not explain: {message}"
        );
    }
}

fn told(rules: &Rules, request: &Request) -> Vec<String> {
    let problems = judged(rules, request).problems;
    assert!(!problems.is_empty(), "{request:?}");
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn every_refusal_of_admission_is_explained() {
    let job = || stored("capturejob-manual");
    let spec = |patch: Value| with(job(), json!({"spec": patch}));
    let noted = |patch: Value| with(job(), json!({"metadata": patch}));
    let expired = |phase: &str| {
        with(
            job(),
            json!({"status": {"phase": phase, "retentionDeadline": "2026-01-01T00:00:00Z"}}),
        )
    };
    let longer = |old: Value| update(old.clone(), with(old, json!({"spec": {"retention": "8d"}})));
    let tap = || stored("networktap-mirror");
    let mirror = || stored("portmirror");
    let one = Rules {
        providers: vec![MirrorProvider::MikroTikRouterOS7SSH],
        ..rules()
    };
    let missing = Request {
        object: None,
        ..create(job())
    };
    let nobody = Rules {
        retention_administrators: Vec::new(),
        ..rules()
    };
    let mut messages = Vec::new();
    for (rules, request) in [
        (nobody, longer(job())),
        (rules(), create(noted(json!({"namespace": "default"})))),
        (
            rules(),
            create(with(stored("by-worker/capturejob-policy"), json!({}))),
        ),
        (rules(), create(noted(json!({"annotations": null})))),
        (rules(), update(job(), noted(json!({"annotations": null})))),
        (rules(), longer(job())),
        (rules(), longer(expired("Expired"))),
        (rules(), longer(expired("Completed"))),
        (ceiling(24), create(job())),
        (rules(), update(job(), spec(json!({"snaplen": 64})))),
        (
            rules(),
            update(
                tap(),
                with(tap(), json!({"spec": {"mirrorInterface": {"interface": "eth9"}}})),
            ),
        ),
        (
            rules(),
            update(
                mirror(),
                with(mirror(), json!({"spec": {"deviceRef": {"name": "other"}}})),
            ),
        ),
        (rules(), create(noted(json!({"ownerReferences": [{"uid": "1"}]})))),
        (rules(), create(spec(json!({"filter": "host x"})))),
        (rules(), create(spec(json!({"filter": "tcp and udp"})))),
        (one, create(mirror())),
        (rules(), create(spec(json!({"targetNode": true})))),
        (rules(), missing),
    ] {
        messages.extend(told(&rules, &request));
    }
    let lint = crate::lint::document(
        &rules(),
        &with(sample("portmirror"), json!({"spec": {"sorces": []}})),
    );
    messages.extend(lint.problems.iter().map(ToString::to_string));
    assert!(messages.len() >= 18, "{messages:?}");
    all_explained("admission", &messages);
}

#[test]
fn every_refusal_of_a_template_is_explained() {
    let template = |text: &str| {
        create(with(
            stored("capturepolicy-suricata"),
            json!({"spec": {"capture": {"filterTemplate": text}}}),
        ))
    };
    let mut messages = Vec::new();
    for text in [
        &"x".repeat(1025),
        "tcp\n",
        "{",
        "{{source}}",
        "{{hubble.dropReason}}",
        "{{suricata.category}}",
        "net {{source.ip}}/8",
        "len > {{source.port}}",
        "host {{source.ip}} and x",
        "tcp and udp and host {{source.ip}}",
    ] {
        messages.extend(told(&rules(), &template(text)));
    }
    let field = "spec.capture.filterTemplate: ";
    let messages: Vec<String> = messages
        .iter()
        .map(|message| {
            message
                .strip_prefix(field)
                .unwrap_or_else(|| panic!("{message}"))
                .to_owned()
        })
        .collect();
    assert_eq!(messages.len(), 10);
    all_explained("templates", &messages);
}
