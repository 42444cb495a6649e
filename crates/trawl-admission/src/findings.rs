//! Problems and warnings as they are found.

use trawl_api::FieldProblem;

/// Longest warning, in bytes: the API server cuts what is longer.
pub const MAX_WARNING_BYTES: usize = 256;

/// Warnings of one request that are told.
const MOST_WARNINGS: usize = 64;

/// What was found about one request.
#[derive(Debug, Default)]
pub struct Findings {
    problems: Vec<FieldProblem>,
    warnings: Vec<String>,
}

impl Findings {
    /// Adds a problem, once.
    pub fn problem(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.take(FieldProblem {
            field: field.into(),
            message: message.into(),
        });
    }

    /// Adds a problem unless it is there already.
    pub fn take(&mut self, problem: FieldProblem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Puts one problem in the place of all that were found about its field.
    pub fn replace(&mut self, field: &str, message: impl Into<String>) {
        self.problems.retain(|problem| problem.field != field);
        self.problem(field, message);
    }

    /// Whether a problem of exactly this field was found.
    pub fn has(&self, field: &str) -> bool {
        self.problems.iter().any(|problem| problem.field == field)
    }

    /// Adds a warning about a field, once.
    pub fn warn(&mut self, field: &str, message: &str) {
        let mut text = format!("{field}: {message}");
        if text.len() > MAX_WARNING_BYTES {
            let end = text.floor_char_boundary(MAX_WARNING_BYTES - 3);
            text.truncate(end);
            text.push_str("...");
        }
        if self.warnings.len() < MOST_WARNINGS && !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    /// Problems and warnings, in the order in which they were found.
    pub fn into_parts(self) -> (Vec<FieldProblem>, Vec<String>) {
        (self.problems, self.warnings)
    }
}
