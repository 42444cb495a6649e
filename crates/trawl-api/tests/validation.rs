//! The validation of stored objects says what the API server says.
#![forbid(unsafe_code)]

#[path = "cases/mod.rs"]
#[allow(dead_code, reason = "each test binary uses its part of the tables")]
mod cases;

use serde_json::Value;
use trawl_api::{CaptureJob, CapturePolicy, FieldProblem, NetworkTap, PortMirror};

/// What validation says, or `None` when the object does not even parse, which a reconciler never gets to see.
fn validate(object: &Value) -> Option<Vec<FieldProblem>> {
    fn parse<T: serde::de::DeserializeOwned>(object: &Value) -> Option<T> {
        serde_json::from_value(object.clone()).ok()
    }
    match object["kind"].as_str().expect("kind") {
        "NetworkTap" => parse::<NetworkTap>(object).map(|o| o.spec.validate()),
        "CapturePolicy" => parse::<CapturePolicy>(object).map(|o| o.spec.validate()),
        "CaptureJob" => parse::<CaptureJob>(object).map(|o| o.spec.validate()),
        "PortMirror" => parse::<PortMirror>(object).map(|o| o.spec.validate()),
        other => panic!("unknown kind {other}"),
    }
}

#[test]
fn every_sample_is_sound() {
    for name in cases::samples() {
        let object = cases::sample(&name);
        assert_eq!(validate(&object), Some(vec![]), "{name}");
    }
}

#[test]
fn what_the_api_server_refuses_at_the_door_is_also_a_problem_of_a_stored_object() {
    let mut checked = 0;
    for case in cases::refused_on_create() {
        let Some(problems) = validate(&cases::spoiled(&case)) else {
            continue;
        };
        checked += 1;
        assert!(
            problems.iter().any(|p| p.field.starts_with(case.field)),
            "{} {}: expected a problem of {}, got {problems:?}",
            case.sample,
            case.patch,
            case.field
        );
    }
    assert!(checked >= 60, "only {checked} cases reached validation");
}

#[test]
fn what_the_api_server_allows_is_no_problem() {
    for case in cases::allowed_on_update() {
        assert_eq!(
            validate(&cases::spoiled(&case)),
            Some(vec![]),
            "{} {}",
            case.sample,
            case.patch
        );
    }
}

#[test]
fn a_problem_names_field_and_limit_but_never_the_value() {
    let mut object = cases::sample("capturejob-manual");
    object["spec"]["filter"] = Value::from(format!("secretword{}", "x".repeat(1024)));
    object["spec"]["maxSize"] = Value::from("2Gi");
    let problems = validate(&object).expect("parses");
    assert_eq!(
        trawl_api::validation::summary(&problems),
        "spec.filter: must be at most 1024 bytes; spec.maxSize: must be from 1Mi to 1Gi"
    );
}
