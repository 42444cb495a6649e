//! What a request is called in the audit ledger, whether it is admitted or refused.

use serde_json::Value;
use trawl_api::GoDuration;
use trawl_audit::Action;

use crate::{Kind, Operation, Request, Rules, capture_policy::is_armed, decide::is_untouched};

/// The action of a request, or `None` when nothing that Trawl acts on would change, or when the closed list of
/// actions has no word for it (deleting a CaptureJob, changing what is immutable in it). Objects are read as they
/// came, because the audit also names requests that make no sense.
pub fn of(rules: &Rules, request: &Request) -> Option<Action> {
    let nothing = Value::Null;
    let object = request.object.as_ref().unwrap_or(&nothing);
    let old = request.old.as_ref().unwrap_or(&nothing);
    match request.operation {
        Operation::Create => Some(creation(request.kind, object)),
        Operation::Update if is_untouched(request.kind, object, old) => None,
        Operation::Update => change(request.kind, object, old),
        // What lies elsewhere never had an effect.
        Operation::Delete if request.namespace != rules.namespace => None,
        Operation::Delete => deletion(request.kind),
    }
}

fn creation(kind: Kind, object: &Value) -> Action {
    match kind {
        Kind::NetworkTap => Action::NetworkTapCreate,
        Kind::CapturePolicy if is_armed(object) => Action::CapturePolicyArm,
        Kind::CapturePolicy => Action::CapturePolicyCreate,
        Kind::CaptureJob if object["spec"]["requestType"] == "Policy" => Action::CaptureJobPolicyCreate,
        Kind::CaptureJob => Action::CaptureJobManualCreate,
        Kind::PortMirror => Action::PortMirrorCreate,
    }
}

fn change(kind: Kind, object: &Value, old: &Value) -> Option<Action> {
    Some(match kind {
        Kind::NetworkTap => Action::NetworkTapUpdate,
        Kind::CapturePolicy => match (is_armed(old), is_armed(object)) {
            (false, true) => Action::CapturePolicyArm,
            (true, false) => Action::CapturePolicyDisarm,
            _ => Action::CapturePolicyUpdate,
        },
        Kind::CaptureJob => return changes_retention(object, old).then_some(Action::RetentionChange),
        Kind::PortMirror => Action::PortMirrorUpdate,
    })
}

fn deletion(kind: Kind) -> Option<Action> {
    match kind {
        Kind::NetworkTap => Some(Action::NetworkTapDelete),
        Kind::CapturePolicy => Some(Action::CapturePolicyDelete),
        Kind::CaptureJob => None,
        Kind::PortMirror => Some(Action::PortMirrorDelete),
    }
}

/// Whether the retention differs, by value where both are readable.
pub fn changes_retention(object: &Value, old: &Value) -> bool {
    let (new, old) = (&object["spec"]["retention"], &old["spec"]["retention"]);
    let read = |value: &Value| value.as_str().and_then(|text| GoDuration::parse(text).ok());
    match (read(new), read(old)) {
        (Some(new), Some(old)) => new != old,
        _ => new != old,
    }
}
