//! The rules of the contract as pure functions, for objects that are already stored.
//!
//! The API server refuses the same things at the door. An object that was stored under older rules, or restored from
//! a backup, still reaches a reconciler; it checks again and reports every problem by field.

mod capture_job;
mod capture_policy;
mod checks;
mod network_tap;
mod port_mirror;

use std::fmt;

pub use checks::is_subdomain;

/// One problem of a spec.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldProblem {
    /// Path of the field, for example `spec.maxSize`.
    pub field: String,
    /// What is wrong, with the limit; never the value.
    pub message: String,
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// All problems in one line, as it goes into a condition message.
pub fn summary(problems: &[FieldProblem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests;
