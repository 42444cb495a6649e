//! What only the webhooks can refuse: field and limit are named, and no filter or template is repeated.

use serde_json::{Value, json};
use trawl_audit::Decision;

use crate::cases;
use crate::support::hooks::{Hooks, Refusal, named};

/// The sample with a patch laid over its spec.
fn spoiled(sample: &str, spec: Value) -> Value {
    let mut object = named(sample, "spoiled");
    cases::merge(&mut object, &json!({"spec": spec}));
    object
}

async fn refused(hooks: &Hooks, object: &Value) -> Refusal {
    let answer = hooks.analyst().create(object).await;
    let refusal = answer.expect_err("it should be refused");
    assert!(hooks.admin().get(object).await.is_err(), "nothing is created");
    refusal
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_or_template_that_cannot_work_is_refused_by_field_without_being_repeated() {
    let hooks = Hooks::new().await;
    let filter = "spec.filter";
    let template = "spec.capture.filterTemplate";
    let manual = |text: &str| spoiled("capturejob-manual", json!({"filter": text}));
    let policy = |text: &str| {
        spoiled(
            "capturepolicy-suricata",
            json!({"capture": {"filterTemplate": text}}),
        )
    };
    for (object, field, text) in [
        (manual("host 10.0.0.1 and and"), filter, "10.0.0.1"),
        (manual("host www.example.com"), filter, "www.example.com"),
        (manual("ip6 host ::1 and host 10.1.1.1"), filter, "10.1.1.1"),
        (policy("host {{source.ip}} and and"), template, "and and"),
        (policy("host {{suricata.category}}"), template, "host {{"),
        (
            policy("ip6 and ip proto 99 and host {{source.ip}}"),
            template,
            "proto 99",
        ),
    ] {
        let refusal = refused(&hooks, &object).await;
        assert_eq!(refusal.code, 422, "{refusal:?}");
        assert_eq!(refusal.causes.len(), 1, "{refusal:?}");
        assert_eq!(refusal.causes[0].0, field, "{refusal:?}");
        assert!(
            refusal.message.contains(&format!("{field}: ")),
            "{}",
            refusal.message
        );
        assert!(
            !refusal.message.contains(text),
            "it repeats the text: {}",
            refusal.message
        );
    }
    let records = hooks.records();
    assert_eq!(records.len(), 6);
    assert!(
        records
            .iter()
            .all(|r| r.entry.decision == Decision::Denied && r.entry.reason == "InvalidSpec")
    );
    let text = std::fs::read_to_string(&hooks.ledger).unwrap();
    assert!(!text.contains("www.example.com") && !text.contains("10.1.1.1"));
    hooks.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_outside_the_namespace_of_the_installation_is_refused_and_may_be_deleted() {
    let hooks = Hooks::new().await;
    for sample in cases::samples() {
        let object = named(&sample, "outside");
        let elsewhere = hooks.analyst().in_namespace(&hooks.outside);
        let refusal = elsewhere.create(&object).await.expect_err("outside");
        assert_eq!(refusal.code, 403, "{sample}: {refusal:?}");
        let wanted = format!("metadata.namespace: must be {}", hooks.namespace);
        assert!(refusal.message.contains(&wanted), "{}", refusal.message);
    }
    let records = hooks.records_of("outside");
    assert_eq!(records.len(), cases::samples().len());
    assert!(
        records
            .iter()
            .all(|r| r.entry.reason == "WrongNamespace" && r.entry.resource.namespace == hooks.outside)
    );
    hooks.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_problem_is_told_at_once_by_field() {
    let hooks = Hooks::new().await;
    let mut object = spoiled("capturejob-manual", json!({"filter": "host and"}));
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}]);
    let refusal = refused(&hooks, &object).await;
    let fields: Vec<_> = refusal.causes.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(fields, ["metadata.ownerReferences", "spec.filter"]);
    for (field, message) in &refusal.causes {
        assert!(
            refusal.message.contains(&format!("{field}: {message}")),
            "{}",
            refusal.message
        );
    }
    hooks.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn completing_makes_mirror_taps_promiscuous_and_stamps_who_asked() {
    let hooks = Hooks::new().await;
    let tap = spoiled(
        "networktap-mirror",
        json!({"mirrorInterface": {"promiscuous": false}}),
    );
    let stored = hooks.analyst().create(&tap).await.unwrap();
    assert_eq!(stored["spec"]["mirrorInterface"]["promiscuous"], true);
    let node = named("networktap-nodes", "nodes");
    let stored = hooks.analyst().create(&node).await.unwrap();
    assert_ne!(stored["spec"]["nodeInterface"]["promiscuous"], true);
    let mut job = named("capturejob-manual", "spoofed");
    job["metadata"]["annotations"] = json!({"trawl.cloud/requester": "mallory", "note": "kept"});
    let stored = hooks.analyst().create(&job).await.unwrap();
    let annotations = &stored["metadata"]["annotations"];
    assert_eq!(annotations["trawl.cloud/requester"], "alice");
    assert_eq!(annotations["note"], "kept");
    hooks.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_is_decided_and_not_recorded() {
    let hooks = Hooks::new().await;
    let before = hooks.records().len();
    let good = named("capturejob-manual", "dry");
    hooks.analyst().create_with(&good, "dryRun=All").await.unwrap();
    let bad = spoiled("capturejob-manual", json!({"filter": "host and"}));
    hooks
        .analyst()
        .create_with(&bad, "dryRun=All")
        .await
        .expect_err("refused");
    assert_eq!(hooks.records().len(), before);
    hooks.end().await;
}
