//! One structured line per decision. It names who, what and why; never a token, never a presigned URL.

use trawl_artifact::sanitize::sanitize;
use trawl_artifact::text::clean;

use crate::{judge::Identity, refusal::Refusal, request::Target, sequence::Grant};

const TARGET: &str = "trawl_gateway::decision";
/// Longest cause of an outage in the log, in bytes.
const MAX_CAUSE_BYTES: usize = 512;

/// The artifact was handed out. `how` is the way: redirect or stream.
pub fn allowed(request_id: &str, who: Option<&Identity>, target: &Target, grant: &Grant, how: &str) {
    tracing::info!(
        target: TARGET,
        request_id,
        decision = "allowed",
        action = "artifact.download",
        part = target.part().as_str(),
        namespace = target.namespace(),
        name = target.name(),
        job_uid = grant.artifact.job_uid,
        sha256 = grant.artifact.sha256,
        size = grant.size,
        ttl_seconds = grant.ttl.as_secs(),
        delivery = how,
        username = who.map(|w| w.username.as_str()),
        user_uid = who.and_then(|w| w.uid.as_deref()),
        "download decision"
    );
}

/// The caller was refused, or no decision could be made.
pub fn refused(request_id: &str, who: Option<&Identity>, target: Option<&Target>, refusal: &Refusal) {
    tracing::info!(
        target: TARGET,
        request_id,
        decision = refusal.code.decision(),
        action = "artifact.download",
        code = ?refusal.code,
        reason = refusal.message,
        cause = refusal.cause.as_deref().map(|cause| clean(&sanitize(cause), MAX_CAUSE_BYTES)),
        part = target.map(|t| t.part().as_str()),
        namespace = target.map(Target::namespace),
        name = target.map(Target::name),
        username = who.map(|w| w.username.as_str()),
        user_uid = who.and_then(|w| w.uid.as_deref()),
        "download decision"
    );
}
