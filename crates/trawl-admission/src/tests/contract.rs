//! What `lint` says without a cluster is what the API server says: the table that the API server is tested with.

#[path = "../../../trawl-api/tests/cases/mod.rs"]
#[allow(dead_code, reason = "the table has more than is used here")]
mod cases;

use cases::Case;
use trawl_api::FieldProblem;

use super::common::*;
use crate::{Verdict, lint::document, schema};

/// A problem of the field that the case is about.
fn names_the_field(case: &Case, problems: &[FieldProblem]) {
    assert!(
        problems.iter().any(|p| p.field.starts_with(case.field)),
        "{} {}: expected {}, got {problems:?}",
        case.sample,
        case.patch,
        case.field
    );
}

/// No problem but for templates, which the API server cannot compile.
fn is_sound(case: &Case, problems: &[FieldProblem]) {
    let others = problems
        .iter()
        .filter(|p| p.field != "spec.capture.filterTemplate");
    assert_eq!(others.count(), 0, "{} {}: {problems:?}", case.sample, case.patch);
}

/// The verdict about the update of a case.
fn updated(case: &Case) -> Verdict {
    let old = stored(case.sample);
    let mut object = with(old.clone(), case.patch.clone());
    schema::complete(kind_of(&object), &mut object["spec"]);
    judged(&rules(), &as_administrator(update(old, object)))
}

#[test]
fn what_the_api_server_refuses_on_create_has_a_problem_of_the_same_field() {
    let mut checked = 0;
    for case in cases::refused_on_create() {
        let report = document(&rules(), &cases::spoiled(&case));
        checked += 1;
        names_the_field(&case, &report.problems);
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
        is_sound(&case, &document(&rules(), &cases::spoiled(&case)).problems);
    }
}

#[test]
fn what_the_api_server_refuses_on_update_is_refused_here_too() {
    for case in cases::refused_on_update() {
        names_the_field(&case, &updated(&case).problems);
    }
}

#[test]
fn what_the_api_server_allows_on_update_is_admitted_but_for_templates_that_it_cannot_compile() {
    for case in cases::allowed_on_update() {
        is_sound(&case, &updated(&case).problems);
    }
}
