//! What the derived schemas do not say: limits, list types and rules, laid over them by path.
//!
//! The types carry shape and documentation; the modules here carry the refusals of the contract, one per kind.

mod capture_job;
mod capture_policy;
pub mod cel;
mod network_tap;
mod node;
mod normalize;
mod port_mirror;
mod shared;

use serde_json::Value;

pub use node::{Node, Rule};

use crate::Kind;

/// Turns the schema that the derive made into the one that the API server enforces.
///
/// # Panics
/// When a path of the overlay does not exist in the derived schema, which means that a field was renamed without
/// its limits. Only the generator and its tests call this, and the drift test runs it for every kind.
pub fn harden(kind: Kind, schema: &mut Value) {
    normalize::normalize(schema);
    let mut root = Node::new(schema);
    match kind {
        Kind::NetworkTap => network_tap::overlay(&mut root),
        Kind::CapturePolicy => capture_policy::overlay(&mut root),
        Kind::CaptureJob => capture_job::overlay(&mut root),
        Kind::PortMirror => port_mirror::overlay(&mut root),
    }
    shared::conditions(&mut root.at("status.conditions"));
}

/// The regular expression that the text of a field must match, wherever `schema` says so: in its pattern, or in a rule
/// on the field itself. For checks without a server that cannot evaluate rules.
pub fn form(schema: &Value) -> Option<&str> {
    let in_a_rule = || {
        let rules = schema["x-kubernetes-validations"].as_array()?.iter();
        rules
            .filter_map(|rule| rule["rule"].as_str())
            .find_map(|rule| rule.strip_prefix("self.matches(r'")?.split("')").next())
    };
    schema["pattern"].as_str().or_else(in_a_rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_field_is_found_in_its_pattern_and_in_its_rule() {
        let all = crate::crds::all().expect("definitions");
        let forms = |definition: usize, fields: &[&str]| {
            let mut schema = &all[definition].value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            for field in fields {
                schema = &schema["properties"][field];
            }
            form(schema).map(str::to_owned)
        };
        let job = 2;
        assert_eq!(
            forms(job, &["spec", "duration"]).as_deref(),
            Some(cel::DURATION_PATTERN)
        );
        assert_eq!(
            forms(job, &["spec", "deduplicationKey"]).as_deref(),
            Some("^sha256:[a-f0-9]{64}$")
        );
        assert!(forms(job, &["spec", "maxSize"]).is_some_and(|form| form.contains("KMGTPE")));
        assert_eq!(forms(job, &["spec", "snaplen"]), None);
        assert_eq!(forms(job, &["spec", "filter"]), None);
    }
}
