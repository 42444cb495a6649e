//! How a refusal is worded, and which code of the API it has.

use trawl_api::validation::summary;
use trawl_api::{FieldProblem, Reason};
use trawl_audit::LedgerError;

use super::review::Refusal;

/// Fields that are refused for who asks, and not for what they hold.
const IDENTITY: [&str; 4] = [
    "metadata.annotations[trawl.cloud/requester]",
    "metadata.namespace",
    "metadata.ownerReferences",
    "spec.requestType",
];

/// Whether a problem is about who asks or where, and no other value would help.
fn is_about_identity(problem: &FieldProblem) -> bool {
    IDENTITY.contains(&problem.field.as_str())
}

/// The word of the audit record.
pub fn reason(problems: &[FieldProblem]) -> &'static str {
    if problems.iter().any(|p| p.field == "metadata.namespace") {
        "WrongNamespace"
    } else if problems.iter().any(is_about_identity) {
        "Forbidden"
    } else {
        "InvalidSpec"
    }
}

/// A verdict with problems. All of them are in the message and, field by field, in `details.causes`.
pub fn of_verdict(problems: Vec<FieldProblem>, warnings: Vec<String>) -> Refusal {
    let (code, reason) = if problems.iter().any(is_about_identity) {
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
        503,
        "ServiceUnavailable",
        format!(
            "{word:?}: {why}. Nothing is changed without an audit record. Free or repair the volume of \
             trawl-operator's ledger (docs/audit.md), then try again"
        ),
    )
}

/// A request that was not decided in time.
pub fn undecided(why: &str) -> Refusal {
    plain(
        503,
        "ServiceUnavailable",
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
