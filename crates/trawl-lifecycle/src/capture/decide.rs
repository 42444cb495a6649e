//! The decision itself. Order matters: deletion, namespace, terminal, spec, artifact, Job.

use std::time::Duration;

use trawl_api::conditions::{ConditionType, Reason, Truth};
use trawl_api::validation::summary;
use trawl_api::{FailureReason, JobPhase, Outcome};

use super::facts::{Action, ArtifactFact, CaptureFacts, Decision, JobFact, VerifiedArtifact};
use super::ready::{NotReady, readiness};
use super::status::{Draft, OWNED, deadline, ever_created};
use super::{cleanup, failure};

/// What to write and do about a CaptureJob, given all that is known about it.
pub fn decide(f: &CaptureFacts<'_>) -> Decision {
    if f.deleting {
        return cleanup::decide(f);
    }
    if matches!(f.status.phase, Some(JobPhase::Completed | JobPhase::Failed | JobPhase::Expired)) {
        return terminal(f);
    }
    if !f.namespace_ok {
        let mut draft = Draft::new(f);
        let message = "outside the installation's namespace; create it there";
        draft.say(ConditionType::Accepted, Truth::False, Reason::WrongNamespace, message);
        draft.say(ConditionType::TargetReady, Truth::False, Reason::TargetUnavailable, message);
        draft.fail(FailureReason::TargetUnavailable, message);
        return ended(draft, vec![]);
    }
    let mut decision = live(f);
    if !f.finalizer {
        decision.actions.insert(0, Action::AddFinalizer);
    }
    decision
}

/// A job that has ended stays as it is; only a changed retention moves its deadline.
fn terminal(f: &CaptureFacts<'_>) -> Decision {
    // A failed capture without an artifact leaves no object behind. Deleting is repeated at each look, because the
    // operator may have stopped between status and deletion, and a runner's last upload may come late.
    let ran = f.status.failure.as_ref().is_some_and(|x| x.attempts > 0);
    let leftover = f.status.phase == Some(JobPhase::Failed) && f.status.artifact.is_none() && ran;
    let actions = if leftover { vec![Action::DeleteArtifact] } else { vec![] };
    let wanted = if f.status.artifact.is_some() && f.status.phase != Some(JobPhase::Expired) {
        deadline(f, f.status.completed_at.as_ref().map(|t| t.0))
    } else {
        f.status.retention_deadline.clone()
    };
    if f.status.observed_generation == Some(f.generation) && f.status.retention_deadline == wanted {
        return Decision { actions, ..Decision::default() };
    }
    let mut status = Draft::new(f).status;
    status.phase = f.status.phase;
    status.retention_deadline = wanted;
    status.conditions = f
        .status
        .conditions
        .iter()
        .filter(|c| OWNED.iter().any(|t| t.as_str() == c.type_))
        .cloned()
        .map(|mut c| {
            c.observed_generation = Some(f.generation);
            c
        })
        .collect();
    Decision { status: Some(status), actions, requeue: None }
}

fn live(f: &CaptureFacts<'_>) -> Decision {
    let problems = f.spec.validate();
    if let Some(first) = problems.first().filter(|_| !ever_created(f.status) && f.job == JobFact::Absent) {
        let mut draft = Draft::new(f);
        let message = summary(&problems);
        let reason =
            if first.field == "spec.filter" { FailureReason::InvalidFilter } else { FailureReason::InvalidBounds };
        draft.say(ConditionType::Accepted, Truth::False, Reason::InvalidSpec, message.clone());
        draft.fail(reason, &message);
        return ended(draft, vec![]);
    }
    match &f.artifact {
        ArtifactFact::Verified(artifact) => verified(f, artifact),
        ArtifactFact::Mismatch(message) => {
            let mut draft = draft(f);
            draft.say(ConditionType::ArtifactVerified, Truth::False, Reason::ChecksumMismatch, message.clone());
            draft.fail(FailureReason::ArtifactMismatch, message);
            ended(draft, vec![Action::DeleteArtifact])
        }
        ArtifactFact::Unreachable(message) => {
            let mut draft = draft(f);
            draft.say(ConditionType::ArtifactVerified, Truth::Unknown, Reason::StorageFailure, message.clone());
            waiting(f, draft, vec![])
        }
        ArtifactFact::NotLooked | ArtifactFact::Absent | ArtifactFact::Incomplete(_) => by_job(f),
    }
}

fn verified(f: &CaptureFacts<'_>, artifact: &VerifiedArtifact) -> Decision {
    let mut draft = draft(f);
    draft.artifact(artifact);
    draft.say(
        ConditionType::ArtifactVerified,
        Truth::True,
        Reason::ArtifactVerified,
        format!("{} packets, {} bytes, read back and re-hashed", artifact.packet_count, artifact.size_bytes),
    );
    if artifact.outcome == Outcome::Succeeded {
        draft.say(ConditionType::Downloadable, Truth::True, Reason::Downloadable, "");
        draft.complete();
    } else {
        let (reason, message) = match failure::cause(f) {
            (FailureReason::ArtifactMissing, _) => {
                (FailureReason::CaptureFailed, "the capture ended early; what it had is stored".to_owned())
            }
            cause => cause,
        };
        draft.say(
            ConditionType::Downloadable,
            Truth::False,
            Reason::NotDownloadable,
            "the stored artifact is partial",
        );
        draft.fail(reason, &message);
    }
    draft.set_deadline();
    ended(draft, vec![])
}

fn by_job(f: &CaptureFacts<'_>) -> Decision {
    let created = ever_created(f.status);
    match &f.job {
        JobFact::Absent if !created => start(f),
        JobFact::Foreign if !created => {
            let mut draft = Draft::new(f);
            let message = format!("a Job named {} exists that this CaptureJob does not own; it is not touched", f.job_name);
            draft.fail(FailureReason::InternalError, &message);
            ended(draft, vec![])
        }
        JobFact::Active if f.status.runner_result.is_none() => waiting(f, draft(f), vec![]),
        // The Job is gone but a runner is still ending: it may yet store what it has.
        JobFact::Absent | JobFact::Foreign if f.cleanup.pods => waiting(f, draft(f), vec![]),
        _ if f.artifact == ArtifactFact::NotLooked => {
            let mut draft = draft(f);
            if draft.status.phase > Some(JobPhase::Pending) {
                draft.status.phase = Some(JobPhase::Storing);
            }
            waiting(f, draft, vec![Action::VerifyArtifact])
        }
        JobFact::Absent | JobFact::Foreign => {
            let message = "the Job of this capture vanished; it is not run a second time";
            without_artifact(f, FailureReason::InternalError, message)
        }
        JobFact::Active | JobFact::Succeeded | JobFact::Failed { .. } => {
            let (reason, message) = failure::cause(f);
            without_artifact(f, reason, &message)
        }
    }
}

/// The capture is over and has no artifact; half of one is removed.
fn without_artifact(f: &CaptureFacts<'_>, reason: FailureReason, message: &str) -> Decision {
    let mut draft = draft(f);
    let (words, actions) = match &f.artifact {
        ArtifactFact::Incomplete(what) => (what.as_str(), vec![Action::DeleteArtifact]),
        _ => ("the store holds no artifact of this capture", vec![]),
    };
    draft.say(ConditionType::ArtifactVerified, Truth::False, Reason::ArtifactMissing, words);
    draft.fail(reason, message);
    ended(draft, actions)
}

/// No Job was ever made: make it when the target is ready, else wait, else give up.
fn start(f: &CaptureFacts<'_>) -> Decision {
    let mut draft = Draft::new(f);
    let Some(node) = f.spec.target_node.as_deref() else {
        let message = "no node could be resolved for this capture";
        draft.say(ConditionType::TargetReady, Truth::False, Reason::TargetUnavailable, message);
        draft.fail(FailureReason::TargetUnavailable, message);
        return ended(draft, vec![]);
    };
    let not_ready = match readiness(f, node) {
        Ok(tap) => {
            draft.status.resolved_tap_uid = Some(tap.uid.to_owned());
            draft.say(ConditionType::TargetReady, Truth::True, Reason::TargetReady, "");
            return waiting(f, draft, vec![Action::CreateJob]);
        }
        Err(not_ready) => not_ready,
    };
    say_not_ready(&mut draft, &not_ready);
    let waited = elapsed(f);
    if waited >= f.limits.target_wait {
        let message = format!("not ready after {} s: {}", f.limits.target_wait.as_secs(), not_ready.message);
        draft.fail(not_ready.failure, &message);
        return ended(draft, vec![]);
    }
    let mut decision = waiting(f, draft, vec![]);
    decision.requeue = Some(f.limits.job_requeue.min(f.limits.target_wait - waited));
    decision
}

fn elapsed(f: &CaptureFacts<'_>) -> Duration {
    let since = f.status.requested_at.as_ref().map_or(f.created_at, |t| t.0);
    Duration::try_from(f.now.duration_since(since)).unwrap_or_default()
}

fn say_not_ready(draft: &mut Draft<'_, '_>, why: &NotReady) {
    draft.say(ConditionType::TargetReady, Truth::False, why.reason, why.message.clone());
}

/// A draft for a capture whose Job was made: which Job, and how the target looks now.
fn draft<'f, 'a>(f: &'f CaptureFacts<'a>) -> Draft<'f, 'a> {
    let mut draft = Draft::new(f);
    if matches!(f.job, JobFact::Active | JobFact::Succeeded | JobFact::Failed { .. }) {
        draft.job_created();
    }
    match f.spec.target_node.as_deref().map(|node| readiness(f, node)) {
        Some(Ok(tap)) => {
            draft.status.resolved_tap_uid = Some(tap.uid.to_owned());
            draft.say(ConditionType::TargetReady, Truth::True, Reason::TargetReady, "");
        }
        Some(Err(why)) => say_not_ready(&mut draft, &why),
        None => {}
    }
    draft
}

fn waiting(f: &CaptureFacts<'_>, draft: Draft<'_, '_>, actions: Vec<Action>) -> Decision {
    Decision { status: Some(draft.finish()), actions, requeue: Some(f.limits.job_requeue) }
}

fn ended(draft: Draft<'_, '_>, actions: Vec<Action>) -> Decision {
    Decision { status: Some(draft.finish()), actions, requeue: None }
}
