//! The order of a decision. Each step needs what the step before it returned, so the order cannot be changed by accident.

use std::{
    future::Future,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use k8s_openapi::api::{authentication::v1::TokenReviewStatus, authorization::v1::SubjectAccessReviewStatus};
use k8s_openapi::jiff::Timestamp;
use trawl_api::CaptureJob;

use crate::{
    judge::{self, Artifact, Identity},
    limits::Limits,
    refusal::{Code, Refusal},
    request::{BearerToken, Target},
};

/// What a decision may ask of the world. An `Err` is an outage in words for the log, never an answer.
pub trait World: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
    fn review_token(
        &self,
        token: &BearerToken,
    ) -> impl Future<Output = Result<TokenReviewStatus, String>> + Send;
    fn review_access(
        &self,
        who: &Identity,
        target: &Target,
    ) -> impl Future<Output = Result<SubjectAccessReviewStatus, String>> + Send;
    /// `None` when there is no such job.
    fn read_job(&self, target: &Target) -> impl Future<Output = Result<Option<CaptureJob>, String>> + Send;
    /// Size in bytes; `None` when there is no such object.
    fn head(&self, key: &str) -> impl Future<Output = Result<Option<u64>, String>> + Send;
}

/// A caller may have this artifact, for this long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub artifact: Artifact,
    pub size: u64,
    pub ttl: Duration,
}

/// A decision with whoever was recognised on the way to it.
#[derive(Debug)]
pub struct Decision {
    pub who: Option<Identity>,
    pub verdict: Result<Grant, Refusal>,
}

/// Decides over an attempt whose path was checked. `token` is read from the request only after the first limiter.
pub async fn decide<W: World>(
    world: &W,
    limits: &Mutex<Limits>,
    profile: &str,
    target: &Target,
    token: impl FnOnce() -> Result<BearerToken, Refusal> + Send,
) -> Decision {
    let who = match recognise(world, limits, token).await {
        Ok(who) => who,
        Err(refusal) => {
            return Decision {
                who: None,
                verdict: Err(refusal),
            };
        }
    };
    let verdict = grant(world, limits, profile, target, &who).await;
    Decision {
        who: Some(who),
        verdict,
    }
}

async fn recognise<W: World>(
    world: &W,
    limits: &Mutex<Limits>,
    token: impl FnOnce() -> Result<BearerToken, Refusal> + Send,
) -> Result<Identity, Refusal> {
    lock(limits)
        .attempt(Instant::now())
        .map_err(|wait| Refusal::rate_limited("too many attempts at this gateway", wait))?;
    let token = token()?;
    let review = world.review_token(&token).await;
    let verdict = review
        .map_err(|cause| Refusal::unavailable("the cluster API", cause))
        .and_then(judge::identity);
    // An authenticator may quote what it did not like.
    verdict.map_err(|refusal| Refusal {
        cause: refusal
            .cause
            .map(|cause| cause.replace(token.expose(), "[token]")),
        ..refusal
    })
}

async fn grant<W: World>(
    world: &W,
    limits: &Mutex<Limits>,
    profile: &str,
    target: &Target,
    who: &Identity,
) -> Result<Grant, Refusal> {
    lock(limits)
        .attempt_by(&who.username, Instant::now())
        .map_err(|wait| {
            Refusal::rate_limited(
                "too many attempts by this identity: 30 a minute, 10 at once",
                wait,
            )
        })?;
    let access = world.review_access(who, target).await;
    judge::access(&access.map_err(|cause| Refusal::unavailable("the cluster API", cause))?)?;

    let job = world
        .read_job(target)
        .await
        .map_err(|cause| Refusal::unavailable("the cluster API", cause))?;
    let job = job.ok_or_else(|| Refusal::new(Code::NotFound, "there is no such capture job"))?;
    let artifact = judge::artifact(&job, profile, target.part(), world.now())?;

    let size = world
        .head(&artifact.key)
        .await
        .map_err(|cause| Refusal::unavailable("the artifact store", cause))?;
    let size = size.ok_or_else(|| {
        Refusal::new(
            Code::NotFound,
            "the store holds no such object for this capture job",
        )
    })?;
    // Recomputed: the store may have taken its time to answer.
    let ttl = judge::ttl(artifact.deadline, world.now())?;
    Ok(Grant { artifact, size, ttl })
}

fn lock(limits: &Mutex<Limits>) -> std::sync::MutexGuard<'_, Limits> {
    limits.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
