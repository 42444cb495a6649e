//! What an object is completed with.

use serde_json::{Value, json};
use trawl_api::{GoDuration, limits, names::REQUESTER_ANNOTATION};

use crate::{
    Kind, Mutation, Operation, Request, Rules,
    action::changes_retention,
    capture_policy,
    capturing::duration_text,
    decide::is_untouched,
    edit::Edit,
    findings::Findings,
    metadata::{self, REQUESTER},
};

/// The mutation as it goes to the API server.
pub fn mutation(rules: &Rules, request: &Request) -> Mutation {
    let (edits, warnings) = edits(rules, request);
    Mutation {
        patch: edits.iter().map(Edit::to_patch).collect(),
        warnings,
    }
}

/// The mutation as changes of fields, and its warnings.
pub fn edits(rules: &Rules, request: &Request) -> (Vec<Edit>, Vec<String>) {
    let mut findings = Findings::default();
    let edits = match (&request.object, request.operation) {
        (Some(object), Operation::Create | Operation::Update) => {
            completed(rules, request, object, &mut findings)
        }
        _ => Vec::new(),
    };
    (edits, findings.into_parts().1)
}

fn completed(rules: &Rules, request: &Request, object: &Value, findings: &mut Findings) -> Vec<Edit> {
    let old = request
        .old
        .as_ref()
        .filter(|_| request.operation == Operation::Update);
    if old.is_some_and(|old| is_untouched(request.kind, object, old)) {
        return Vec::new();
    }
    match request.kind {
        Kind::NetworkTap => tap(object),
        Kind::CapturePolicy if old.is_some_and(|old| capture_policy::is_disarming(object, old)) => Vec::new(),
        Kind::CapturePolicy => retention(rules, object, findings).into_iter().collect(),
        Kind::CaptureJob => {
            let mut edits = Vec::new();
            if old.is_none() {
                edits.extend(requester(object, &request.caller.username, findings));
            }
            // A stored retention above a ceiling that was lowered since is for its administrators to change.
            if old.is_none_or(|old| changes_retention(object, old)) {
                edits.extend(retention(rules, object, findings));
            }
            edits
        }
        Kind::PortMirror => Vec::new(),
    }
}

/// Mode is Passive where nothing is said, and a mirror port is always promiscuous.
fn tap(object: &Value) -> Vec<Edit> {
    let spec = &object["spec"];
    let mut edits = Vec::new();
    if spec.is_object() && spec["mode"].is_null() {
        edits.push(Edit::set(&["spec", "mode"], "Passive"));
    }
    let source = &spec["mirrorInterface"];
    let unsaid = matches!(source["promiscuous"], Value::Null | Value::Bool(false));
    if spec["type"] == "MirrorInterface" && source.is_object() && unsaid {
        edits.push(Edit::set(&["spec", "mirrorInterface", "promiscuous"], true));
    }
    edits
}

/// Who asked is what the API server knows, whatever the object says.
fn requester(object: &Value, username: &str, findings: &mut Findings) -> Option<Edit> {
    let metadata = object["metadata"].as_object()?;
    let given = metadata::requester(object);
    if given.is_some_and(|given| given == username) {
        return None;
    }
    if given.is_some() {
        findings.warn(
            REQUESTER,
            "is always the authenticated user who asks; what was given is not used",
        );
    }
    let annotated = metadata.get("annotations").is_some_and(Value::is_object);
    Some(if annotated {
        Edit::set(&["metadata", "annotations", REQUESTER_ANNOTATION], username)
    } else {
        Edit::set(
            &["metadata", "annotations"],
            json!({REQUESTER_ANNOTATION: username}),
        )
    })
}

/// A retention that was not given arrives here as the default of the schema, which cannot be told from the same value
/// written out: either becomes the ceiling where that is lower (ADR 8).
fn retention(rules: &Rules, object: &Value, findings: &mut Findings) -> Option<Edit> {
    let ceiling = rules.retention_ceiling;
    let spec = object["spec"].as_object()?;
    let asked = match spec.get("retention") {
        None | Some(Value::Null) => limits::RETENTION.max,
        Some(value) => GoDuration::parse(value.as_str()?).ok()?.get(),
    };
    if asked != limits::RETENTION.max || ceiling >= asked {
        return None;
    }
    let text = duration_text(ceiling);
    findings.warn(
        "spec.retention",
        &format!(
            "the default of 30d is lowered to {text}, the longest that this installation keeps captures"
        ),
    );
    Some(Edit::set(&["spec", "retention"], text))
}
