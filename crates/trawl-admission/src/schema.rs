//! The generated schema, where there is no API server to enforce it: types, required and unknown fields, forms and
//! bounds, and defaults. CEL is left to the validators of the specs, which say the same.

mod check;
mod defaults;

use std::{collections::HashMap, sync::OnceLock};

use serde_json::Value;
use trawl_api::FieldProblem;

use crate::Kind;

/// The schema of the spec of a kind.
fn spec(kind: Kind) -> &'static Value {
    static SPECS: OnceLock<HashMap<String, Value>> = OnceLock::new();
    let specs = SPECS.get_or_init(|| {
        let definitions = trawl_api::crds::all().unwrap_or_default();
        let specs = definitions.into_iter().map(|definition| {
            let schema = &definition.value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let name = definition.value["spec"]["names"]["kind"]
                .as_str()
                .unwrap_or_default();
            (name.to_owned(), schema["properties"]["spec"].clone())
        });
        specs.collect()
    });
    specs.get(kind.as_str()).unwrap_or(&Value::Null)
}

/// What the schema refuses in a spec, by field and without its values.
pub fn problems(kind: Kind, value: &Value) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    check::check(spec(kind), value, "spec", &mut problems);
    problems
}

/// The message of the first rule on the field at `path` of a spec, such as `capture.maxSize`.
pub fn rule_at(kind: Kind, path: &str) -> Option<&'static str> {
    let field = path.split('.').fold(spec(kind), |schema, name| {
        let (name, index) = name
            .split_once('[')
            .map_or((name, false), |(name, _)| (name, true));
        let field = &schema["properties"][name];
        if index { &field["items"] } else { field }
    });
    field["x-kubernetes-validations"][0]["message"].as_str()
}

/// Completes a spec as the API server would: a `null` is as good as nothing, and defaults fill what is absent.
pub fn complete(kind: Kind, value: &mut Value) {
    defaults::apply(spec(kind), value);
}

#[cfg(test)]
mod tests;
