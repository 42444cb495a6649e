//! The order in which a request is judged.

use serde_json::Value;

use crate::{
    Kind, Operation, Request, Rules, Verdict, action, capture_job, capture_policy, findings::Findings,
    metadata, network_tap, port_mirror,
};

/// Judges a request.
pub fn verdict(rules: &Rules, request: &Request) -> Verdict {
    let mut findings = Findings::default();
    let action = action::of(rules, request);
    match (request.operation, &request.object, &request.old) {
        (Operation::Delete, _, old) => deletion(request.kind, old.as_ref(), &mut findings),
        (_, None, _) => findings.problem("object", "is missing from the admission request"),
        (Operation::Update, _, None) => {
            findings.problem("oldObject", "is missing from the admission request")
        }
        (Operation::Update, Some(object), Some(old)) if is_untouched(request.kind, object, old) => {}
        (Operation::Update, Some(object), Some(old))
            if request.kind == Kind::CapturePolicy && capture_policy::is_disarming(object, old) => {}
        (_, Some(object), old) => {
            metadata::namespace(rules, request, &mut findings);
            let old = old.as_ref().filter(|_| request.operation == Operation::Update);
            match request.kind {
                Kind::NetworkTap => network_tap::validate(object, old, &mut findings),
                Kind::CapturePolicy => capture_policy::validate(rules, request, object, &mut findings),
                Kind::CaptureJob => capture_job::validate(rules, request, object, old, &mut findings),
                Kind::PortMirror => port_mirror::validate(rules, object, old, &mut findings),
            }
        }
    }
    let (problems, warnings) = findings.into_parts();
    Verdict {
        problems,
        warnings,
        action,
    }
}

/// Whether [`verdict`] compiles a filter or a template, which may take long.
pub fn compiles(request: &Request) -> bool {
    match (request.kind, request.operation, &request.object, &request.old) {
        (Kind::CaptureJob | Kind::CapturePolicy, Operation::Create, ..) => true,
        (Kind::CapturePolicy, Operation::Update, Some(object), Some(old)) => {
            !is_untouched(request.kind, object, old) && !capture_policy::is_disarming(object, old)
        }
        _ => false,
    }
}

/// Whether an update leaves alone all that is judged here: controllers change the rest, and must never be held up.
pub fn is_untouched(kind: Kind, object: &Value, old: &Value) -> bool {
    let guarded = kind == Kind::CaptureJob
        && (metadata::requester(object) != metadata::requester(old) || metadata::adds_owner(object, old));
    object["spec"] == old["spec"] && !guarded
}

fn deletion(kind: Kind, old: Option<&Value>, findings: &mut Findings) {
    let stored = old.is_some_and(|old| !old["status"]["artifact"].is_null());
    if kind == Kind::CaptureJob && stored {
        findings.warn(
            "status.artifact",
            "the capture file and its manifest are deleted together with the CaptureJob, before its retention is over",
        );
    }
}
