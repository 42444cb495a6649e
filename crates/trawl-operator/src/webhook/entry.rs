//! What is recorded of a decision.

use trawl_admission::{Request, Verdict};
use trawl_api::names::GROUP;
use trawl_api::validation::summary;
use trawl_api::webhooks::Hooked;
use trawl_audit::{Action, Actor, Decision, Entry, Resource};

use super::refusal;
use super::review::Asked;

/// The record of a verdict that calls for one.
pub fn entry(
    hooked: &Hooked,
    asked: &Asked,
    request: &Request,
    verdict: &Verdict,
    action: Action,
    forbidden: bool,
) -> Entry {
    let (decision, reason, message) = if verdict.problems.is_empty() {
        (
            Decision::Allowed,
            "Accepted",
            admitted(hooked, asked, request, action),
        )
    } else {
        let reason = refusal::reason(&verdict.problems, forbidden);
        (Decision::Denied, reason, summary(&verdict.problems))
    };
    let known = request.object.as_ref().or(request.old.as_ref());
    let meta = |field: &str| {
        let value = known.and_then(|o| o["metadata"][field].as_str());
        value.unwrap_or_default().to_owned()
    };
    Entry {
        recorded_at: request.now,
        action,
        decision,
        reason: reason.into(),
        message,
        actor: Actor {
            username: asked.user_info.username.clone(),
            uid: asked.user_info.uid.clone(),
            groups: request.caller.groups.clone(),
        },
        resource: Resource {
            group: GROUP.into(),
            kind: hooked.kind.as_str().into(),
            namespace: request.namespace.clone(),
            name: if asked.name.is_empty() {
                meta("name")
            } else {
                asked.name.clone()
            },
            uid: meta("uid"),
        },
        request_id: asked.uid.clone(),
        stable_key: format!("admission/{}", asked.uid),
        initiated_by: trawl_api::names::OPERATOR_FIELD_MANAGER.into(),
    }
}

/// One sentence about what may happen. Of a specification only the two retentions are repeated, which are durations
/// that passed validation.
fn admitted(hooked: &Hooked, asked: &Asked, request: &Request, action: Action) -> String {
    let kind = hooked.kind;
    if action == Action::RetentionChange {
        let retention = |object: &Option<serde_json::Value>| {
            let text = object.as_ref().and_then(|o| o["spec"]["retention"].as_str());
            text.unwrap_or("none").to_owned()
        };
        let (old, new) = (retention(&request.old), retention(&request.object));
        return format!("the retention of this {kind} may change from {old} to {new}");
    }
    let what = match (action, asked.operation.as_str()) {
        (Action::CapturePolicyArm, "CREATE") => "created armed",
        (Action::CapturePolicyArm, _) => "armed",
        (Action::CapturePolicyDisarm, _) => "disarmed",
        (_, "CREATE") => "created",
        (_, "DELETE") => "deleted",
        _ => "changed",
    };
    format!("this {kind} may be {what}")
}
