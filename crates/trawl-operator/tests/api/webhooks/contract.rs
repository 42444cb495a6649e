//! The contract's samples and its table of refusals, as the API server sees them with every webhook installed.

use serde_json::{Value, json};

use crate::cases::{self, Case};
use crate::support::hooks::{Hooks, Refusal, User};

/// Whoever may create this sample.
fn creator(hooks: &Hooks, object: &Value) -> User {
    if object["spec"]["requestType"] == "Policy" {
        hooks.worker()
    } else {
        hooks.analyst()
    }
}

fn not_refused(case: &Case, answer: Result<Value, Refusal>) -> Option<String> {
    let complaint = match answer {
        Ok(_) => "was accepted".to_owned(),
        Err(refusal) if ![400, 403, 422].contains(&refusal.code) => format!("got {refusal:?}"),
        Err(refusal) if !refusal.message.contains(case.field) => {
            format!("does not name {}: {}", case.field, refusal.message)
        }
        Err(_) => return None,
    };
    Some(format!("{} {}: {complaint}", case.sample, case.patch))
}

fn none(complaints: &[String], of: usize) {
    let text = complaints.join("\n");
    assert!(complaints.is_empty(), "{} of {of}:\n{text}", complaints.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_sample_of_the_contract_is_admitted_and_recorded_once() {
    let hooks = Hooks::new().await;
    let names = cases::samples();
    assert!(names.len() >= 7, "{names:?}");
    for name in &names {
        let object = cases::sample(name);
        let stored = creator(&hooks, &object).create(&object).await;
        let stored = stored.unwrap_or_else(|e| panic!("{name}: {}", e.message));
        let records = hooks.records_of(object["metadata"]["name"].as_str().unwrap());
        assert_eq!(records.len(), 1, "{name}: {records:?}");
        assert_eq!(
            records[0].entry.resource.uid,
            stored["metadata"]["uid"].as_str().unwrap()
        );
        assert_eq!(records[0].entry.resource.namespace, hooks.namespace);
    }
    hooks.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_contract_refuses_stays_refused_on_create_with_the_name_of_the_field() {
    let hooks = Hooks::new().await;
    let (analyst, worker) = (hooks.analyst(), hooks.worker());
    let cases = cases::refused_on_create();
    assert!(cases.len() >= 60, "only {} cases", cases.len());
    let mut complaints = Vec::new();
    for case in &cases {
        let who = if case.sample.contains("by-worker/capturejob-policy") {
            &worker
        } else {
            &analyst
        };
        let answer = who.create(&cases::spoiled(case)).await;
        complaints.extend(not_refused(case, answer));
    }
    none(&complaints, cases.len());
    hooks.end().await;
}

/// Creates the sample of `case` under a name of its own and replaces it by the patched one.
async fn update(hooks: &Hooks, name: &str, case: &Case) -> Result<Value, Refusal> {
    let mut object = cases::sample(case.sample);
    object["metadata"]["name"] = name.into();
    let stored = creator(hooks, &object).create(&object).await;
    let mut stored = stored.unwrap_or_else(|e| panic!("{}: {}", case.sample, e.message));
    cases::merge(&mut stored, &case.patch);
    hooks.administrator().replace(&stored).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_contract_refuses_stays_refused_on_update_with_the_name_of_the_field() {
    let hooks = Hooks::new().await;
    let cases = cases::refused_on_update();
    let mut complaints = Vec::new();
    for (n, case) in cases.iter().enumerate() {
        complaints.extend(not_refused(
            case,
            update(&hooks, &format!("refused-{n}"), case).await,
        ));
    }
    none(&complaints, cases.len());
    hooks.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_keeps_every_immutable_value_is_admitted_in_other_words() {
    let hooks = Hooks::new().await;
    for (n, case) in cases::allowed_on_update().iter().enumerate() {
        let answer = update(&hooks, &format!("allowed-{n}"), case).await;
        let template = case.patch["spec"]["capture"]["filterTemplate"].as_str();
        // The schema knows no more than that the placeholder exists.
        if template.is_some_and(|t| t.contains("{{suricata.category}}")) {
            let refusal = answer.expect_err("free text is no part of a filter");
            assert_eq!(refusal.causes[0].0, "spec.capture.filterTemplate");
            continue;
        }
        answer.unwrap_or_else(|e| panic!("{} {}: {}", case.sample, case.patch, e.message));
    }
    hooks.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_field_is_refused_when_the_caller_asks_for_strictness() {
    let hooks = Hooks::new().await;
    for (name, path) in [
        ("networktap-mirror", "/spec/mirrorInterface"),
        ("capturepolicy-suricata", "/spec/capture"),
        ("capturejob-manual", "/spec"),
        ("portmirror", "/spec/deviceRef"),
    ] {
        let mut object = cases::sample(name);
        object.pointer_mut(path).expect("a path")["bogus"] = json!(1);
        let refusal = hooks.analyst().create(&object).await.expect_err("unknown");
        assert!(refusal.message.contains("bogus"), "{}", refusal.message);
    }
    assert!(
        hooks.records().is_empty(),
        "what the API server refuses itself is never asked about"
    );
    hooks.end().await;
}
