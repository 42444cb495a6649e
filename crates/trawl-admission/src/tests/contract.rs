//! What `lint` says without a cluster is what the API server says: the table that the API server is tested with.

#[path = "../../../trawl-api/tests/cases/mod.rs"]
#[allow(dead_code, reason = "the table has more than is used here")]
mod cases;

use super::common::*;
use crate::{lint::document, schema};

#[test]
fn what_the_api_server_refuses_on_create_has_a_problem_of_the_same_field() {
    let mut checked = 0;
    for case in cases::refused_on_create() {
        let report = document(&rules(), &cases::spoiled(&case));
        checked += 1;
        assert!(
            report.problems.iter().any(|p| p.field.starts_with(case.field)),
            "{} {}: expected {}, got {:?}",
            case.sample,
            case.patch,
            case.field,
            report.problems
        );
        for problem in &report.problems {
            assert!(
                !problem.message.is_empty() && problem.message.len() < 700,
                "{problem}"
            );
        }
    }
    assert!(checked >= 150, "only {checked} cases");
}

#[test]
fn what_the_api_server_allows_is_sound_but_for_templates_that_it_cannot_compile() {
    for case in cases::allowed_on_update() {
        let report = document(&rules(), &cases::spoiled(&case));
        let others = report
            .problems
            .iter()
            .filter(|p| p.field != "spec.capture.filterTemplate");
        assert_eq!(
            others.count(),
            0,
            "{} {}: {:?}",
            case.sample,
            case.patch,
            report.problems
        );
    }
}

#[test]
fn what_the_api_server_refuses_on_update_is_refused_here_too() {
    for case in cases::refused_on_update() {
        let old = stored(case.sample);
        let mut object = with(old.clone(), case.patch.clone());
        schema::complete(kind_of(&object), &mut object["spec"]);
        let verdict = judged(&rules(), &as_administrator(update(old, object)));
        assert!(
            verdict.problems.iter().any(|p| p.field.starts_with(case.field)),
            "{} {}: expected {}, got {:?}",
            case.sample,
            case.patch,
            case.field,
            verdict.problems
        );
    }
}

#[test]
fn what_the_api_server_allows_on_update_is_admitted_but_for_templates_that_it_cannot_compile() {
    for case in cases::allowed_on_update() {
        let old = stored(case.sample);
        let mut object = with(old.clone(), case.patch.clone());
        schema::complete(kind_of(&object), &mut object["spec"]);
        let verdict = judged(&rules(), &as_administrator(update(old, object)));
        let others = verdict
            .problems
            .iter()
            .filter(|p| p.field != "spec.capture.filterTemplate");
        assert_eq!(
            others.count(),
            0,
            "{} {}: {:?}",
            case.sample,
            case.patch,
            verdict.problems
        );
    }
}
