//! Building the operator's part of a CaptureJob's status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use trawl_api::conditions::{ConditionType, Observed, Reason, Truth, merge};
use trawl_api::{
    ArtifactReference, CaptureFailure, CaptureJobStatus, FailureReason, JobPhase, LocalRef,
    MAX_MESSAGE_BYTES, clean, sanitize,
};

use super::facts::{CaptureFacts, VerifiedArtifact};
use super::failure::failed_phase;

/// The condition types that the operator writes. The reporter writes the other two.
pub(super) const OWNED: [ConditionType; 5] = [
    ConditionType::Accepted,
    ConditionType::TargetReady,
    ConditionType::ArtifactVerified,
    ConditionType::Downloadable,
    ConditionType::RetentionEnforced,
];

/// How far the reporter's facts say that the capture has come.
pub(super) fn progress(status: &CaptureJobStatus) -> JobPhase {
    if status.runner_result.is_some() && status.started_at.is_some() {
        JobPhase::Storing
    } else {
        reached(status)
    }
}

/// How far the capture itself came, whatever the runner did after it broke.
fn reached(status: &CaptureJobStatus) -> JobPhase {
    if status.capture_ended_at.is_some() {
        JobPhase::Storing
    } else if status.started_at.is_some() {
        JobPhase::Capturing
    } else {
        JobPhase::Pending
    }
}

/// The phase now: what was observed, but never behind what was already shown.
pub(super) fn live_phase(status: &CaptureJobStatus) -> JobPhase {
    progress(status).max(status.phase.unwrap_or(JobPhase::Pending))
}

/// Whether a Job was ever made for this CaptureJob. Any trace of one counts, so that no second one is made.
pub(super) fn ever_created(status: &CaptureJobStatus) -> bool {
    status.runner_job_ref.is_some()
        || status.phase.is_some_and(|p| p > JobPhase::Pending)
        || status.started_at.is_some()
        || status.capture_ended_at.is_some()
        || status.runner_result.is_some()
        || status.resolved_interface.is_some()
        || status.conditions.iter().any(|c| {
            c.type_ == ConditionType::FilterValid.as_str()
                || c.type_ == ConditionType::CaptureStarted.as_str()
        })
}

/// Collects what a decision says and turns it into a status.
pub(super) struct Draft<'f, 'a> {
    facts: &'f CaptureFacts<'a>,
    pub status: CaptureJobStatus,
    observed: Vec<Observed>,
}

impl<'f, 'a> Draft<'f, 'a> {
    /// Starts from the operator's own fields as stored.
    pub fn new(facts: &'f CaptureFacts<'a>) -> Self {
        let old = facts.status;
        let status = CaptureJobStatus {
            observed_generation: Some(facts.generation),
            phase: Some(live_phase(old)),
            resolved_tap_uid: old.resolved_tap_uid.clone(),
            runner_job_ref: old.runner_job_ref.clone(),
            requested_at: Some(old.requested_at.clone().unwrap_or(Time(facts.created_at))),
            completed_at: old.completed_at.clone(),
            packet_count: old.packet_count,
            size_bytes: old.size_bytes,
            sha256: old.sha256.clone(),
            artifact: old.artifact.clone(),
            retention_deadline: old.retention_deadline.clone(),
            failure: old.failure.clone(),
            ..CaptureJobStatus::default()
        };
        let mut draft = Self {
            facts,
            status,
            observed: Vec::new(),
        };
        draft.say(ConditionType::Accepted, Truth::True, Reason::Accepted, "");
        draft.say(
            ConditionType::TargetReady,
            Truth::Unknown,
            Reason::Pending,
            "not looked at",
        );
        draft.say(
            ConditionType::ArtifactVerified,
            Truth::Unknown,
            Reason::Pending,
            "nothing is stored yet",
        );
        draft.say(
            ConditionType::Downloadable,
            Truth::False,
            Reason::NotDownloadable,
            "only a Completed capture can be downloaded",
        );
        draft.say(
            ConditionType::RetentionEnforced,
            Truth::Unknown,
            Reason::Pending,
            "no retention controller has acted on this capture yet",
        );
        draft
    }

    /// Sets a condition; the last word on a type counts.
    pub fn say(&mut self, type_: ConditionType, truth: Truth, reason: Reason, message: impl Into<String>) {
        self.observed.retain(|o| o.type_ != type_);
        self.observed.push(Observed::new(type_, truth, reason, message));
    }

    pub fn job_created(&mut self) {
        self.status.runner_job_ref = Some(LocalRef::new(self.facts.job_name));
    }

    /// Ends in `Failed`.
    pub fn fail(&mut self, reason: FailureReason, message: &str) {
        // By evidence: the shown phase may be Storing because the Job has ended, not because the capture had.
        let reached = reached(self.facts.status);
        self.status.failure = Some(CaptureFailure {
            reason,
            message: clean(&sanitize(message), MAX_MESSAGE_BYTES),
            failed_phase: failed_phase(reached),
            attempts: i32::from(ever_created(self.facts.status) || self.status.runner_job_ref.is_some()),
        });
        self.status.phase = Some(JobPhase::Failed);
        self.status.completed_at = Some(Time(self.facts.now));
    }

    /// Ends in `Completed`.
    pub fn complete(&mut self) {
        self.status.phase = Some(JobPhase::Completed);
        self.status.completed_at = Some(Time(self.facts.now));
        self.status.failure = None;
    }

    /// Records what was found in the store, by the operator's own count.
    pub fn artifact(&mut self, v: &VerifiedArtifact) {
        self.status.packet_count = i64::try_from(v.packet_count).ok();
        self.status.size_bytes = i64::try_from(v.size_bytes).ok();
        self.status.sha256 = Some(v.sha256.clone());
        self.status.artifact = Some(ArtifactReference {
            profile: v.profile.clone(),
            key: v.key.clone(),
            etag: v.etag.clone(),
            version_id: v.version_id.clone(),
            verified_at: Time(self.facts.now),
        });
    }

    /// Sets the retention deadline from the time of completion.
    pub fn set_deadline(&mut self) {
        self.status.retention_deadline = deadline(self.facts, self.status.completed_at.as_ref().map(|t| t.0));
    }

    /// The finished status.
    pub fn finish(mut self) -> CaptureJobStatus {
        let order = |type_| OWNED.iter().position(|t| *t == type_);
        self.observed.sort_by_key(|o| order(o.type_));
        self.status.conditions = self
            .observed
            .iter()
            .map(|o| {
                merge(
                    &self.facts.status.conditions,
                    o,
                    self.facts.generation,
                    self.facts.now,
                )
            })
            .collect();
        self.status
    }
}

/// `completedAt + retention`; the contract's default is 30 days.
pub(super) fn deadline(f: &CaptureFacts<'_>, completed_at: Option<Timestamp>) -> Option<Time> {
    completed_at
        .and_then(|t| t.checked_add(f.spec.effective_retention()).ok())
        .map(Time)
}
