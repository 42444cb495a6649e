//! Pure judgements over what the cluster and the store answered. Time is an argument.

use std::time::Duration;

use k8s_openapi::api::{authentication::v1::TokenReviewStatus, authorization::v1::SubjectAccessReviewStatus};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use trawl_api::{CaptureJob, ConditionType, JobPhase, Reason, conditions, names::GATEWAY_AUDIENCE};
use trawl_artifact::{keys, text::is_sha256};

use crate::{
    refusal::{Code, Refusal},
    request::Part,
};

/// A presigned URL is never valid for longer than this.
pub const MAX_TTL: Duration = Duration::from_secs(300);

/// Somebody whom the API server knows, by a token that was made for this gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub username: String,
    pub uid: Option<String>,
    pub groups: Vec<String>,
    pub extra: std::collections::BTreeMap<String, Vec<String>>,
}

/// Judges a TokenReview. A token that the API server accepts for another audience is not ours to accept.
pub fn identity(status: TokenReviewStatus) -> Result<Identity, Refusal> {
    let no = || {
        let message = format!(
            "the token was not accepted; it must be valid and made for the audience {GATEWAY_AUDIENCE}"
        );
        Refusal::new(Code::Unauthenticated, message)
    };
    let audience = status.audiences.iter().flatten().any(|a| a == GATEWAY_AUDIENCE);
    if status.authenticated != Some(true) || !audience {
        return Err(Refusal {
            cause: status.error,
            ..no()
        });
    }
    let user = status.user.ok_or_else(no)?;
    let username = user.username.filter(|name| !name.is_empty()).ok_or_else(no)?;
    Ok(Identity {
        username,
        uid: user.uid,
        groups: user.groups.unwrap_or_default(),
        extra: user.extra.unwrap_or_default(),
    })
}

/// Judges a SubjectAccessReview.
pub fn access(status: &SubjectAccessReviewStatus) -> Result<(), Refusal> {
    if status.allowed && status.denied != Some(true) {
        return Ok(());
    }
    let message = "not allowed; ask for the verb get on capturejobs/download in this namespace";
    Err(Refusal::new(Code::Forbidden, message))
}

/// An artifact that may be handed out until `deadline`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    pub job_uid: String,
    pub key: String,
    /// Lower-case hex of the capture file; the manifest carries no hash in the status.
    pub sha256: Option<String>,
    pub deadline: Timestamp,
}

/// Judges a job: only a verified, downloadable, unexpired artifact of exactly this job passes.
pub fn artifact(job: &CaptureJob, profile: &str, part: Part, now: Timestamp) -> Result<Artifact, Refusal> {
    let generation = job.metadata.generation.unwrap_or_default();
    let status = job.status.clone().unwrap_or_default();
    let deadline = status.retention_deadline.as_ref().map(|time| time.0);
    let said_expired = status
        .conditions
        .iter()
        .any(|c| c.type_ == ConditionType::Downloadable.as_str() && c.reason == Reason::Expired.as_str());
    if status.phase == Some(JobPhase::Expired) || said_expired || deadline.is_some_and(|d| d <= now) {
        return Err(Refusal::new(
            Code::Expired,
            "the retention of this capture is over",
        ));
    }
    if status.phase != Some(JobPhase::Completed) {
        let phase = status
            .phase
            .map_or("not reported yet".into(), |phase| format!("{phase:?}"));
        return Err(not_downloadable(format!(
            "the capture is not Completed: its phase is {phase}"
        )));
    }
    if !conditions::is_true(&status.conditions, ConditionType::Downloadable, generation) {
        return Err(not_downloadable(
            "the capture is not marked Downloadable at its current generation",
        ));
    }
    let (Some(reference), Some(sha256), Some(deadline)) = (status.artifact, status.sha256, deadline) else {
        return Err(not_downloadable(
            "the status names no artifact with its hash and retention deadline",
        ));
    };
    let job_uid = job.uid().unwrap_or_default();
    let namespace = job.namespace().unwrap_or_default();
    let key = keys::capture_key(&namespace, &job_uid);
    // The key is derived again: whoever can write one job's status must not be able to point it at another's evidence.
    if job_uid.is_empty() || reference.key != key || reference.profile != profile {
        return Err(not_downloadable(
            "the artifact named in the status is not this job's in this installation's store",
        ));
    }
    if !is_sha256(&sha256) {
        return Err(not_downloadable("the status holds no SHA-256 in lower-case hex"));
    }
    Ok(match part {
        Part::Capture => Artifact {
            job_uid,
            key,
            sha256: Some(sha256),
            deadline,
        },
        Part::Manifest => Artifact {
            key: keys::manifest_key(&namespace, &job_uid),
            job_uid,
            sha256: None,
            deadline,
        },
    })
}

fn not_downloadable(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::NotDownloadable, message)
}

/// How long a grant given at `now` may last: whole seconds, never past the deadline.
pub fn ttl(deadline: Timestamp, now: Timestamp) -> Result<Duration, Refusal> {
    let left = u64::try_from(deadline.as_second().saturating_sub(now.as_second())).unwrap_or_default();
    // Sub-second rounding must shorten, not lengthen.
    let left = if deadline.subsec_nanosecond() < now.subsec_nanosecond() {
        left.saturating_sub(1)
    } else {
        left
    };
    if left == 0 {
        return Err(Refusal::new(
            Code::Expired,
            "the retention of this capture is over",
        ));
    }
    Ok(Duration::from_secs(left).min(MAX_TTL))
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
