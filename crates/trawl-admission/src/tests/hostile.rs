//! Requests that make no sense are refused, never admitted, and never bring anything down.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::common::*;
use crate::*;

#[test]
fn a_request_without_its_objects_is_refused() {
    for kind in Kind::ALL {
        for operation in [Operation::Create, Operation::Update] {
            let request = Request {
                kind,
                operation,
                object: None,
                ..create(stored("portmirror"))
            };
            must_refuse(&rules(), &request, "object", "missing");
        }
    }
    let request = Request {
        operation: Operation::Update,
        ..create(stored("portmirror"))
    };
    must_refuse(&rules(), &request, "oldObject", "missing");
    let gone = Request {
        object: None,
        old: None,
        ..delete(stored("portmirror"))
    };
    must_admit(&rules(), &gone);
}

#[test]
fn a_spec_that_cannot_be_read_is_refused_by_field_and_without_its_values() {
    for (sample, patch, fields_of) in [
        (
            "capturejob-manual",
            json!({"spec": {"duration": "secretword"}}),
            vec!["spec.duration"],
        ),
        (
            "capturejob-manual",
            json!({"spec": {"duration": 5, "snaplen": "secretword"}}),
            vec!["spec.duration", "spec.snaplen"],
        ),
        (
            "capturejob-manual",
            json!({"spec": {"maxSize": "secretword"}}),
            vec!["spec.maxSize"],
        ),
        (
            "by-worker/capturejob-policy",
            json!({"spec": {"trigger": {"eventTime": "secretword"}}}),
            vec!["spec.trigger.eventTime"],
        ),
        (
            "capturepolicy-suricata",
            json!({"spec": {"trigger": {"type": "secretword"}}}),
            vec!["spec.trigger.type"],
        ),
        (
            "capturepolicy-suricata",
            json!({"spec": {"trigger": {"suricataAlert": {"ruleIDs": [-1]}}}}),
            vec!["spec.trigger.suricataAlert.ruleIDs[0]"],
        ),
        (
            "networktap-mirror",
            json!({"spec": {"analyzers": "secretword"}}),
            vec!["spec.analyzers"],
        ),
        (
            "networktap-mirror",
            json!({"spec": {"mirrorInterface": {"nodeSelector": ["secretword"]}}}),
            vec!["spec.mirrorInterface.nodeSelector"],
        ),
        (
            "portmirror",
            json!({"spec": {"provider": "secretword"}}),
            vec!["spec.provider"],
        ),
        (
            "portmirror",
            json!({"spec": {"target": null}}),
            vec!["spec.target"],
        ),
        ("portmirror", json!({"spec": 5}), vec!["spec"]),
    ] {
        let verdict = judged(&rules(), &create(with(stored(sample), patch)));
        assert_eq!(fields(&verdict), fields_of);
        assert!(verdict.action.is_some());
        assert!(!format!("{verdict:?}").contains("secretword"), "{verdict:?}");
    }
}

/// The mutating webhook and `trawlctl lint` see objects that no schema has bounded.
#[test]
fn of_very_many_problems_and_warnings_some_are_told() {
    let many = 10_000;
    let words: Vec<String> = (0..many).map(|n| format!("category-{n}")).collect();
    let trigger = json!({"ruleIDs": vec![1; many], "categories": words});
    let patch = json!({"spec": {"trigger": {"suricataAlert": trigger}}});
    let verdict = judged(&rules(), &create(with(stored("capturepolicy-suricata"), patch)));
    assert!(
        (2..=300).contains(&verdict.problems.len()),
        "{}",
        verdict.problems.len()
    );
    assert!(
        (1..=64).contains(&verdict.warnings.len()),
        "{}",
        verdict.warnings.len()
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "1h",
            "30d",
            "Policy",
            "Manual",
            "MirrorInterface",
            "1Mi",
            "tcp",
            "{{source.ip}}"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Every place in a value, as a JSON pointer.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(name, member)| places(member, &format!("{at}/{}", name.replace('/', "~1")), out)),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| places(item, &format!("{at}/{index}"), out));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Anything in the place of any field of a sample is judged, on create and on update.
    #[test]
    fn anything_anywhere_is_judged(
        sample in prop::sample::select(vec!["capturejob-manual", "by-worker/capturejob-policy", "capturepolicy-suricata",
            "capturepolicy-hubble", "networktap-mirror", "networktap-nodes", "portmirror"]),
        place in any::<prop::sample::Index>(),
        anything in any_json(),
    ) {
        let old = stored(sample);
        let mut all = Vec::new();
        places(&old, "", &mut all);
        let place = &all[place.index(all.len())];
        let mut object = old.clone();
        *object.pointer_mut(place).expect("a place") = anything;
        let base = update(old.clone(), old.clone());
        for (new, old) in [(object.clone(), old.clone()), (old, object)] {
            for operation in [Operation::Create, Operation::Update, Operation::Delete] {
                let request = Request { operation, object: Some(new.clone()), old: Some(old.clone()), ..base.clone() };
                let _ = mutate(&ceiling(240), &request);
                let verdict = judged(&ceiling(240), &request);
                prop_assert!(operation != Operation::Delete || verdict.problems.is_empty());
            }
        }
        let _ = crate::lint::document(&rules(), &new_document(&all, place));
    }
}

/// A document made of what the property test left over.
fn new_document(places: &[String], place: &str) -> Value {
    json!({"apiVersion": "trawl.cloud/v1alpha1", "kind": "CaptureJob", "metadata": {"name": place}, "spec": places})
}
