//! Why a Job that ended without an artifact failed: reporter, then exit code, then Job, then the missing object.

use trawl_api::{FailedPhase, FailureReason, JobPhase, Outcome};

use super::facts::{CaptureFacts, JobFact, RunnerFact};
use super::status::progress;

/// The reason and its words.
pub(super) fn cause(f: &CaptureFacts<'_>) -> (FailureReason, String) {
    from_reporter(f)
        .or_else(|| from_exit_code(f))
        .or_else(|| from_job(f))
        .unwrap_or_else(|| (FailureReason::ArtifactMissing, "the capture ended but the store holds no artifact".into()))
}

fn from_reporter(f: &CaptureFacts<'_>) -> Option<(FailureReason, String)> {
    let result = f.status.runner_result.as_ref()?;
    if result.outcome == Outcome::Succeeded {
        return None;
    }
    let reason = result.reason.or_else(|| FailureReason::from_exit_code(result.exit_code))?;
    let message =
        result.message.clone().unwrap_or_else(|| format!("the runner ended with exit code {}", result.exit_code));
    Some((reason, message))
}

fn from_exit_code(f: &CaptureFacts<'_>) -> Option<(FailureReason, String)> {
    let RunnerFact::Exited { code, .. } = &f.runner else { return None };
    let reason = FailureReason::from_exit_code(*code)?;
    Some((reason, format!("the runner ended with exit code {code}")))
}

fn from_job(f: &CaptureFacts<'_>) -> Option<(FailureReason, String)> {
    let JobFact::Failed { reason, message } = &f.job else { return None };
    let failure = match (progress(f.status), reason.as_str()) {
        (JobPhase::Pending, "DeadlineExceeded") => FailureReason::TargetUnavailable,
        (JobPhase::Pending, _) => FailureReason::InternalError,
        (JobPhase::Capturing, _) => FailureReason::CaptureFailed,
        _ => FailureReason::UploadFailed,
    };
    let mut text = format!("the Job failed: {reason}: {message}");
    match &f.runner {
        RunnerFact::Exited { code, reason } => {
            text = format!("the runner was ended (exit code {code}, {})", reason.as_deref().unwrap_or("no reason"));
        }
        RunnerFact::Waiting(Some(words)) => text = format!("{text}; the runner never started: {words}"),
        _ => {}
    }
    Some((failure, text))
}

/// The phase in which a job that fails now has failed.
pub(super) fn failed_phase(phase: JobPhase) -> FailedPhase {
    match phase {
        JobPhase::Pending => FailedPhase::Pending,
        JobPhase::Capturing => FailedPhase::Capturing,
        _ => FailedPhase::Storing,
    }
}
