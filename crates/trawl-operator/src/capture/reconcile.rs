//! One look at one CaptureJob. Every round reads everything anew, so that a stop at any instant loses nothing.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::controller::Action;
use trawl_api::CaptureJob;
use trawl_lifecycle::capture::{Action as Do, ArtifactFact, Decision, ObjectsFact, decide};

use super::artifact::{Claimed, delete, delete_fact, look};
use super::carry::{announce, begin, delete_job, set_finalizer, write_status};
use super::gather::{Seen, gather};
use crate::context::Context;
use crate::error::{Error, Step};

/// More rounds than any path through the states needs in one go.
const MAX_ROUNDS: usize = 8;

/// What the store showed in this look.
struct Store {
    artifact: ArtifactFact,
    objects: ObjectsFact,
}

/// Brings one CaptureJob as far as it can go now.
///
/// # Errors
/// The step that failed; the next look continues there.
pub async fn reconcile(job: Arc<CaptureJob>, ctx: Arc<Context>) -> Result<Action, Error> {
    let (name, uid) = (job.name_any(), job.uid().unwrap_or_default());
    let mut store = Store {
        artifact: ArtifactFact::NotLooked,
        objects: ObjectsFact::NotLooked,
    };
    for _ in 0..MAX_ROUNDS {
        let Some(seen) = gather(&ctx, &name, &uid).await? else {
            return Ok(Action::await_change());
        };
        let decision = decide(&seen.facts(&ctx, &store.artifact, store.objects, (ctx.now)()));
        if !carry_out(&ctx, &seen, &decision, &mut store).await? {
            return Ok(decision
                .requeue
                .map_or_else(Action::await_change, Action::requeue));
        }
    }
    Ok(Action::requeue(Duration::from_secs(1)))
}

/// Carries a decision out; `true` when there is something new to decide on.
async fn carry_out(
    ctx: &Context,
    seen: &Seen,
    decision: &Decision,
    store: &mut Store,
) -> Result<bool, Error> {
    // What must exist before the status may speak of it comes first; the next round writes the status.
    let wants = |wanted: Do| decision.actions.contains(&wanted);
    let (finalizer, job) = (wants(Do::AddFinalizer), wants(Do::CreateJob));
    if finalizer || job {
        if let Err(error) = begin(ctx, seen, finalizer, job).await {
            if let Some(status) = &decision.status
                && write_status(ctx, seen, status).await?
            {
                announce(ctx, seen, status).await;
            }
            return Err(error);
        }
        return Ok(true);
    }
    let mut news = None;
    if let Some(status) = &decision.status
        && write_status(ctx, seen, status).await?
    {
        news = Some(status);
    }
    let actions = async {
        let mut again = false;
        for action in &decision.actions {
            again |= act(ctx, seen, *action, store).await?;
        }
        Ok(again)
    };
    // Nothing waits for the Event.
    let telling = async {
        if let Some(status) = news {
            announce(ctx, seen, status).await;
        }
    };
    futures::join!(actions, telling).0
}

async fn act(ctx: &Context, seen: &Seen, action: Do, store: &mut Store) -> Result<bool, Error> {
    let namespace = &ctx.config.namespace;
    match action {
        // Carried out before all others.
        Do::AddFinalizer | Do::CreateJob => {}
        Do::VerifyArtifact => {
            // Closing the semaphore is nobody's business, so waiting for it cannot fail.
            let _turn = ctx.verifying.acquire().await;
            let claimed = Claimed {
                namespace,
                uid: &seen.uid,
                job: &seen.job,
                status: &seen.status,
            };
            store.artifact = look(&ctx.store, &ctx.config.store.profile, &claimed).await;
            return Ok(true);
        }
        Do::DeleteArtifact => delete(&ctx.store, namespace, &seen.uid)
            .await
            .step("delete a wrong artifact")?,
        Do::DeleteJob => delete_job(ctx, seen).await?,
        Do::DeleteObjects => {
            store.objects = delete_fact(&ctx.store, namespace, &seen.uid).await;
            return Ok(true);
        }
        Do::RemoveFinalizer => set_finalizer(ctx, seen, false).await?,
    }
    Ok(false)
}
