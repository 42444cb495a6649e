//! How a command ends when it does not end well: what happened, and what to do next.

use std::process::ExitCode;

/// A failure to show to a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    message: String,
    hint: Option<String>,
    /// The command was called wrongly: nothing was tried.
    usage: bool,
}

impl Failure {
    /// Something was tried and did not work.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            usage: false,
        }
    }

    /// The command cannot be carried out as it was given.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            usage: true,
            ..Self::new(message)
        }
    }

    /// Adds what to do next.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Writes the failure to standard error and returns its exit code.
    pub fn report(&self) -> ExitCode {
        eprintln!("error: {}", self.message);
        if let Some(hint) = &self.hint {
            eprintln!("  {}", hint.replace('\n', "\n  "));
        }
        ExitCode::from(if self.usage { 2 } else { 1 })
    }
}
