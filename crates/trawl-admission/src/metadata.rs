//! What is guarded in the metadata: namespace, requester, owners.

use serde_json::Value;
use trawl_api::names::REQUESTER_ANNOTATION;

use crate::{Request, Rules, findings::Findings};

/// Path of the annotation in messages.
pub const REQUESTER: &str = "metadata.annotations[trawl.cloud/requester]";
const OWNERS: &str = "metadata.ownerReferences";

/// Objects of Trawl live in one namespace.
pub fn namespace(rules: &Rules, request: &Request, findings: &mut Findings) {
    if request.namespace != rules.namespace {
        let wanted = &rules.namespace;
        findings.problem(
            "metadata.namespace",
            format!("must be {wanted}, the only namespace that this installation of Trawl acts in: create it there"),
        );
    }
}

/// The value of the requester annotation.
pub fn requester(object: &Value) -> Option<&Value> {
    object["metadata"]["annotations"].get(REQUESTER_ANNOTATION)
}

/// A new CaptureJob says who asked for it.
pub fn requester_of_new(object: &Value, username: &str, findings: &mut Findings) {
    if requester(object).and_then(Value::as_str) != Some(username) {
        findings.problem(
            REQUESTER,
            "must be the authenticated user who asks; the mutating webhook of Trawl sets it: check that its \
             configuration is installed and that no other webhook changes the annotation",
        );
    }
}

/// It says so for ever.
pub fn requester_of_old(object: &Value, old: &Value, findings: &mut Findings) {
    if requester(object) != requester(old) {
        findings.problem(
            REQUESTER,
            "is immutable: it records who asked for the capture; leave it as it is",
        );
    }
}

/// Whether an owner is named that was not there before.
pub fn adds_owner(object: &Value, old: &Value) -> bool {
    let before: Vec<&Value> = owners(old).map(|owner| &owner["uid"]).collect();
    owners(object).any(|owner| !before.contains(&&owner["uid"]))
}

/// Evidence is not deleted together with something else.
pub fn no_new_owner(object: &Value, old: &Value, findings: &mut Findings) {
    if adds_owner(object, old) {
        findings.problem(
            OWNERS,
            "must not be set on a CaptureJob: evidence would be deleted together with its owner; remove it, and use \
             spec.retention to say how long the capture is kept",
        );
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
}
