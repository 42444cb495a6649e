//! How a refusal is worded, and which code of the API it has.

use trawl_admission::{Kind, Operation, Request, Rules};
use trawl_api::validation::summary;
use trawl_api::{FieldProblem, Reason};
use trawl_audit::LedgerError;

use super::review::Refusal;

/// Fields that are refused for who asks, and not for what they hold.
const IDENTITY: [&str; 3] = [
    "metadata.annotations[trawl.cloud/requester]",
    "metadata.namespace",
    "spec.requestType",
];

/// Code of what is our fault. It is not 503, which clients try again for minutes before they say anything.
const INTERNAL: u16 = 500;

/// Whether a request is refused for who asks or where, so that no other value would help.
pub fn is_forbidden(rules: &Rules, request: &Request, problems: &[FieldProblem]) -> bool {
    let administrators = &rules.retention_administrators;
    let outsider = request.operation == Operation::Update
        && !request.caller.groups.iter().any(|g| administrators.contains(g));
    problems
        .iter()
        .any(|p| IDENTITY.contains(&p.field.as_str()) || (outsider && is_retention(request, p)))
}

fn is_retention(request: &Request, problem: &FieldProblem) -> bool {
    request.kind == Kind::CaptureJob && problem.field == "spec.retention"
}

/// The word of the audit record.
pub fn reason(problems: &[FieldProblem], forbidden: bool) -> &'static str {
    if problems.iter().any(|p| p.field == "metadata.namespace") {
        "WrongNamespace"
    } else if forbidden {
        "Forbidden"
    } else {
        "InvalidSpec"
    }
}

/// A verdict with problems. All of them are in the message and, field by field, in `details.causes`.
pub fn of_verdict(problems: Vec<FieldProblem>, warnings: Vec<String>, forbidden: bool) -> Refusal {
    let (code, reason) = if forbidden {
        (403, "Forbidden")
    } else {
        (422, "Invalid")
    };
    Refusal {
        code,
        reason,
        message: summary(&problems),
        causes: problems,
        warnings,
    }
}

/// An admission whose record is not kept.
pub fn unrecorded(error: &LedgerError) -> Refusal {
    let why = trawl_api::clean(
        &trawl_api::sanitize(&error.to_string()),
        trawl_api::MAX_MESSAGE_BYTES,
    );
    let word = Reason::AuditUnavailable;
    plain(
        INTERNAL,
        "InternalError",
        format!(
            "{word:?}: {why}. Nothing is changed without an audit record. Free or repair the volume of \
             trawl-operator's ledger (docs/audit.md), then try again"
        ),
    )
}

/// A request that was not decided in time.
pub fn undecided(why: &str) -> Refusal {
    plain(
        INTERNAL,
        "InternalError",
        format!("the request was not decided: {why}; try again"),
    )
}

/// A request that does not belong where it came in.
pub fn misplaced(why: String) -> Refusal {
    plain(400, "BadRequest", why)
}

fn plain(code: u16, reason: &'static str, message: String) -> Refusal {
    Refusal {
        code,
        reason,
        message,
        causes: Vec::new(),
        warnings: Vec::new(),
    }
}
