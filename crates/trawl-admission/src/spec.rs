//! Specs from JSON, with problems by field when they are none.

use serde::de::DeserializeOwned;
use serde_json::Value;
use trawl_api::FieldProblem;

use crate::{Kind, findings::Findings, schema};

/// The spec of an object. What is wrong is named by the schema and never by the JSON library, which would repeat
/// values.
pub fn read<T: DeserializeOwned>(kind: Kind, object: &Value, findings: &mut Findings) -> Option<T> {
    let spec = &object["spec"];
    if let Ok(spec) = T::deserialize(spec) {
        return Some(spec);
    }
    let mut problems = schema::problems(kind, spec);
    if problems.is_empty() {
        problems.push(FieldProblem {
            field: "spec".into(),
            message: format!("is not the spec of a {kind}; compare it with kubectl explain {kind}.spec"),
        });
    }
    problems.into_iter().for_each(|problem| findings.take(problem));
    None
}

/// The spec of an object that is stored already, if it can still be read.
pub fn read_old<T: DeserializeOwned>(old: &Value) -> Option<T> {
    T::deserialize(&old["spec"]).ok()
}
