//! CaptureJob.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use trawl_api::{CaptureJobSpec, RequestType};

use crate::{Kind, Request, Rules, capturing, findings::Findings, metadata, spec};

const FILTER: &str = "spec.filter";
const RETENTION: &str = "spec.retention";

/// Judges a job that is created or changed.
pub fn validate(
    rules: &Rules,
    request: &Request,
    object: &Value,
    old: Option<&Value>,
    findings: &mut Findings,
) {
    match old {
        None => {
            metadata::requester_of_new(object, &request.caller.username, findings);
            metadata::no_new_owner(object, &Value::Null, findings);
        }
        Some(old) => {
            metadata::requester_of_old(object, old, findings);
            metadata::no_new_owner(object, old, findings);
            if object["spec"] == old["spec"] {
                return;
            }
        }
    }
    let Some(new) = spec::read::<CaptureJobSpec>(Kind::CaptureJob, object, findings) else {
        return;
    };
    match old {
        None => creation(rules, request, &new, findings),
        Some(old) => change(rules, request, &new, object, old, findings),
    }
}

fn creation(rules: &Rules, request: &Request, new: &CaptureJobSpec, findings: &mut Findings) {
    if new.request_type == RequestType::Policy && request.caller.username != rules.worker {
        findings.problem(
            "spec.requestType",
            "Policy is reserved for the event worker of Trawl; use Manual, or create a CapturePolicy that asks for \
             captures",
        );
    }
    new.validate()
        .into_iter()
        .for_each(|problem| findings.take(problem));
    filter(rules, new, findings);
    capturing::retention(rules, new.effective_retention(), findings);
    capturing::tap(request.tap, findings);
    capturing::snaplen("spec.snaplen", new.snaplen, findings);
    capturing::pre_trigger("spec.preTrigger", new.effective_pre_trigger(), findings);
}

fn filter(rules: &Rules, new: &CaptureJobSpec, findings: &mut Findings) {
    let text = new.filter.as_deref().unwrap_or_default();
    if text.trim().is_empty() {
        return capturing::everything(FILTER, findings);
    }
    if findings.has(FILTER) {
        return;
    }
    match trawl_filter::compile_with(text, &rules.filter) {
        Err(error) => findings.problem(FILTER, error.to_string()),
        Ok(compiled) => {
            for warning in compiled.warnings {
                findings.warn(FILTER, &warning.to_string());
            }
        }
    }
}

/// The contract lets nothing change but the retention, whatever else newer rules would say about the rest.
fn change(
    rules: &Rules,
    request: &Request,
    new: &CaptureJobSpec,
    object: &Value,
    old: &Value,
    findings: &mut Findings,
) {
    const MESSAGE: &str = "is immutable: another capture is another CaptureJob; create one";
    match spec::read_old::<CaptureJobSpec>(old) {
        Some(before) => {
            for field in changed(new, &before) {
                findings.problem(format!("spec.{field}"), MESSAGE);
            }
            if new.effective_retention() != before.effective_retention() {
                retention(rules, request, new.effective_retention(), old, findings);
            }
        }
        // What was stored cannot be read any more, so there is nothing to compare by value.
        None => {
            let rest = |object: &Value| {
                let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
                spec.remove("retention");
                spec
            };
            if rest(object) != rest(old) {
                findings.problem("spec", MESSAGE);
            }
            retention(rules, request, new.effective_retention(), old, findings);
        }
    }
}

/// The immutable fields that differ, in presence or in value.
fn changed(new: &CaptureJobSpec, old: &CaptureJobSpec) -> Vec<&'static str> {
    [
        ("requestType", new.request_type != old.request_type),
        ("tapRef", new.tap_ref != old.tap_ref),
        ("targetNode", new.target_node != old.target_node),
        ("filter", new.filter != old.filter),
        ("duration", new.duration != old.duration),
        ("snaplen", new.snaplen != old.snaplen),
        ("maxSize", new.max_size != old.max_size),
        (
            "preTrigger",
            new.effective_pre_trigger() != old.effective_pre_trigger(),
        ),
        ("policyRef", new.policy_ref != old.policy_ref),
        ("trigger", new.trigger != old.trigger),
        ("deduplicationKey", new.deduplication_key != old.deduplication_key),
    ]
    .into_iter()
    .filter_map(|(field, differs)| differs.then_some(field))
    .collect()
}

/// Who may change the retention, until when, and to what.
fn retention(rules: &Rules, request: &Request, new: Duration, old: &Value, findings: &mut Findings) {
    capturing::retention(rules, new, findings);
    let administrators = &rules.retention_administrators;
    if !request
        .caller
        .groups
        .iter()
        .any(|group| administrators.contains(group))
    {
        let message = if administrators.is_empty() {
            "cannot be changed: the configuration of this installation names no group of retention administrators; have \
             one named in retention.administrators"
                .to_owned()
        } else {
            let groups = administrators.join(", ");
            format!("may be changed only by members of the group {groups}; ask one of them")
        };
        findings.problem(RETENTION, message);
    }
    // The API server lets nobody write a status through the object itself, so the stored one is what counts.
    let status = Kept::of(&old["status"]);
    if status.expired {
        findings.problem(
            RETENTION,
            "cannot be changed any more: the capture has expired and its file is deleted",
        );
    } else if status.deadline.is_some_and(|deadline| request.now >= deadline) {
        findings.problem(
            RETENTION,
            "cannot be changed any more: the retention deadline has passed and the file is being deleted",
        );
    } else if status.ends_by(new, request.now) {
        findings.warn(
            RETENTION,
            "with this retention the deadline has passed already: the capture file is deleted at once",
        );
    }
}

/// What the status says about retention. Each field is read by itself, because a deadline must also hold when something
/// else in the status was written by another version and cannot be read.
struct Kept {
    expired: bool,
    deadline: Option<Timestamp>,
    completed: Option<Timestamp>,
}

impl Kept {
    fn of(status: &Value) -> Self {
        let time = |field: &str| status[field].as_str()?.parse().ok();
        Self {
            expired: status["phase"] == "Expired",
            deadline: time("retentionDeadline"),
            completed: time("completedAt"),
        }
    }

    fn ends_by(&self, retention: Duration, now: Timestamp) -> bool {
        self.completed
            .and_then(|completed| completed.checked_add(retention).ok())
            .is_some_and(|deadline| deadline <= now)
    }
}
