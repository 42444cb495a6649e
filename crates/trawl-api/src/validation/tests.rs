//! The validation of stored objects says what the API server says.

#[path = "../../tests/cases/mod.rs"]
#[allow(dead_code, reason = "each test binary uses its part of the tables")]
mod cases;

use std::{collections::BTreeMap, time::Duration};

use crate::CaptureJob;
use serde_json::Value;

#[test]
fn every_sample_is_sound() {
    for name in cases::samples() {
        let object = cases::sample(&name);
        assert_eq!(cases::validate(&object), Some(vec![]), "{name}");
    }
}

#[test]
fn what_the_api_server_refuses_at_the_door_is_also_a_problem_of_a_stored_object() {
    let mut checked = 0;
    for case in cases::refused_on_create() {
        let Some(problems) = cases::validate(&cases::spoiled(&case)) else {
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
    assert!(checked >= 150, "only {checked} cases reached validation");
}

#[test]
fn what_the_api_server_allows_is_no_problem() {
    for case in cases::allowed_on_update()
        .into_iter()
        .chain(cases::accepted_on_create())
    {
        assert_eq!(
            cases::validate(&cases::spoiled(&case)),
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
    let problems = cases::validate(&object).expect("parses");
    assert_eq!(
        crate::validation::summary(&problems),
        "spec.filter: has 1034 bytes, but must be at most 1024 bytes: name networks instead of many hosts, or use \
         several captures; spec.maxSize: is 2Gi, but must be a whole number of bytes from 1Mi to 1Gi, such as 50Mi, \
         1Gi or 52428800"
    );
}

#[test]
fn an_object_stored_before_an_optional_field_existed_round_trips_and_means_the_default() {
    let stored = cases::sample("capturejob-manual");
    assert!(
        stored["spec"].get("preTrigger").is_none(),
        "the sample is as old objects are"
    );
    let job: CaptureJob = serde_json::from_value(stored.clone()).expect("parses");
    assert_eq!(job.spec.effective_pre_trigger(), Duration::ZERO);
    let again = serde_json::to_value(&job.spec).expect("json");
    assert_eq!(again, stored["spec"]);

    let mut bare = stored;
    bare["spec"].as_object_mut().expect("spec").remove("retention");
    let job: CaptureJob = serde_json::from_value(bare).expect("parses");
    assert_eq!(job.spec.effective_retention(), Duration::from_secs(30 * 86_400));
}

/// The rules of each kind, compiled.
fn rules() -> BTreeMap<String, kube_cel::CompiledSchema> {
    let definitions = crate::crds::all().expect("definitions");
    definitions
        .iter()
        .map(|definition| {
            let kind = definition.value["spec"]["names"]["kind"].as_str().expect("kind");
            let schema = &definition.value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            (kind.to_owned(), kube_cel::compile_schema(schema))
        })
        .collect()
}

/// The rules that `object` breaks, as `kube-cel` sees them without a server.
fn broken(
    rules: &BTreeMap<String, kube_cel::CompiledSchema>,
    object: &Value,
    old: Option<&Value>,
) -> Vec<String> {
    let rules = &rules[object["kind"].as_str().expect("kind")];
    let errors = kube_cel::validate_compiled(rules, object, old).err();
    errors
        .into_iter()
        .flatten()
        .map(|e| format!("{}: {}", e.field_path, e.message))
        .collect()
}

#[test]
fn what_the_validation_finds_sound_breaks_no_rule_of_the_schema() {
    let rules = rules();
    for case in cases::allowed_on_update()
        .into_iter()
        .chain(cases::accepted_on_create())
    {
        // The evaluator reads no micro sign, though the API server does.
        if case.patch.to_string().contains('\u{b5}') {
            continue;
        }
        let broken = broken(&rules, &cases::spoiled(&case), None);
        assert!(broken.is_empty(), "{} {}: {broken:?}", case.sample, case.patch);
    }
}

#[test]
fn what_an_update_may_not_change_breaks_a_rule_that_names_the_field() {
    let rules = rules();
    for case in cases::refused_on_update() {
        let broken = broken(&rules, &cases::spoiled(&case), Some(&cases::sample(case.sample)));
        assert!(
            broken.iter().any(|b| b.starts_with(case.field)),
            "{} {}: expected a rule about {}, got {broken:?}",
            case.sample,
            case.patch,
            case.field
        );
    }
}
