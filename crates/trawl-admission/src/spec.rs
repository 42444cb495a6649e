//! Specs from JSON, with problems by field when they are none.

use serde::de::DeserializeOwned;
use serde_json::Value;
use trawl_api::FieldProblem;

use crate::{Kind, findings::Findings, schema};

/// The spec of an object. What is wrong is worded by the schema and never by the JSON library, which would repeat
/// values.
pub fn read<T: DeserializeOwned>(kind: Kind, object: &Value, findings: &mut Findings) -> Option<T> {
    let spec = &object["spec"];
    let place = match serde_path_to_error::deserialize(spec) {
        Ok(spec) => return Some(spec),
        Err(error) => error.path().to_string(),
    };
    let mut problems = schema::problems(kind, spec);
    if problems.is_empty() {
        problems.push(said_by_schema(kind, &place));
    }
    problems.into_iter().for_each(|problem| findings.take(problem));
    None
}

/// The problem of a field that has the right form and still no meaning, such as a size that is no whole number.
fn said_by_schema(kind: Kind, place: &str) -> FieldProblem {
    match schema::rule_at(kind, place) {
        Some(message) => FieldProblem {
            field: format!("spec.{place}"),
            message: message.into(),
        },
        None => FieldProblem {
            field: "spec".into(),
            message: format!("is not the spec of a {kind}; compare it with kubectl explain {kind}.spec"),
        },
    }
}

/// The spec of an object that is stored already, if it can still be read.
pub fn read_old<T: DeserializeOwned>(old: &Value) -> Option<T> {
    T::deserialize(&old["spec"]).ok()
}
