//! Carrying a decision out, one action at a time.

use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::{Resource, ResourceExt};
use trawl_api::names::{CAPTURE_JOB_FINALIZER, OPERATOR_FIELD_MANAGER};
use trawl_api::{CaptureJob, CaptureJobStatus, JobPhase};
use trawl_config::pods::ObjectIdentity;
use trawl_kube::apply::{apply_status, is_conflict, is_not_found};
use trawl_kube::status::is_unchanged;

use super::gather::Seen;
use super::job::Plan;
use crate::context::Context;
use crate::error::{Error, Step};
use crate::owned::{create_identity, identity};

/// Top-level status fields that the operator owns.
const OWNED_FIELDS: [&str; 13] = [
    "observedGeneration",
    "phase",
    "resolvedTapUID",
    "runnerJobRef",
    "requestedAt",
    "completedAt",
    "packetCount",
    "sizeBytes",
    "sha256",
    "artifact",
    "retentionDeadline",
    "failure",
    "conditions",
];

/// What the Job is made from; `None` without a tap or a node.
fn plan<'a>(ctx: &'a Context, seen: &'a Seen) -> Option<Plan<'a>> {
    let (tap, node) = (seen.tap.as_ref()?, seen.node.as_ref()?);
    let (owner, node_name) = (
        seen.job.controller_owner_ref(&())?,
        node.metadata.name.as_deref()?,
    );
    Some(Plan {
        config: &ctx.config,
        job: &seen.job,
        owner,
        uid: &seen.uid,
        name: &seen.name,
        tap: ObjectIdentity {
            namespace: ctx.config.namespace.clone(),
            name: tap.name_any(),
            uid: tap.uid().unwrap_or_default(),
        },
        node: node_name,
        hostname: node
            .labels()
            .get("kubernetes.io/hostname")
            .map_or(node_name, String::as_str),
    })
}

/// Makes what a Job rests on, all at once for time counts here, and only then the Job: without the finalizer nobody
/// would clean up after it, without its identity the pod could not tell of the capture. An identity whose finalizer
/// was refused has its owner, and goes with it.
pub(super) async fn begin(ctx: &Context, seen: &Seen, finalizer: bool, job: bool) -> Result<(), Error> {
    let plan = if job { plan(ctx, seen) } else { None };
    let keep = async {
        if finalizer {
            set_finalizer(ctx, seen, true).await?;
        }
        Ok(())
    };
    let know = async {
        if let Some(plan) = &plan {
            let reporter = identity(&plan.metadata(), plan.reporter_rules());
            create_identity(ctx, &seen.uid, &reporter).await?;
        }
        Ok(())
    };
    futures::try_join!(keep, know)?;
    match &plan {
        Some(plan) => create_job(ctx, seen, plan).await,
        None => Ok(()),
    }
}

/// A Job that is there already is looked at in the next round.
async fn create_job(ctx: &Context, seen: &Seen, plan: &Plan<'_>) -> Result<(), Error> {
    let job = plan.build().map_err(|source| Error::Encode {
        what: "the runner's instructions",
        source,
    })?;
    let params = PostParams {
        field_manager: Some(OPERATOR_FIELD_MANAGER.into()),
        ..PostParams::default()
    };
    match ctx.api::<Job>().create(&params, &job).await {
        Ok(_) => {
            tracing::info!(
                capturejob = seen.name,
                node = plan.node,
                "made the Job of a capture"
            );
            Ok(())
        }
        Err(error) if is_conflict(&error) => Ok(()),
        Err(error) => Err(error).step("create the Job"),
    }
}

/// Deletes the Kubernetes Job; the garbage collector takes its pods.
pub(super) async fn delete_job(ctx: &Context, seen: &Seen) -> Result<(), Error> {
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    };
    match ctx.api::<Job>().delete(&seen.job_name, &params).await {
        Ok(_) => Ok(()),
        Err(error) if is_not_found(&error) => Ok(()),
        Err(error) => Err(error).step("delete the Job"),
    }
}

/// Puts our finalizer on, or takes it off; refused by the API server when the object has changed meanwhile.
pub(super) async fn set_finalizer(ctx: &Context, seen: &Seen, wanted: bool) -> Result<(), Error> {
    let mut finalizers = seen.job.finalizers().to_vec();
    finalizers.retain(|f| f != CAPTURE_JOB_FINALIZER);
    if wanted {
        finalizers.push(CAPTURE_JOB_FINALIZER.into());
    }
    let patch = serde_json::json!({"metadata": {
        "uid": seen.uid,
        "resourceVersion": seen.job.resource_version(),
        "finalizers": finalizers,
    }});
    let params = PatchParams {
        field_manager: Some(OPERATOR_FIELD_MANAGER.into()),
        ..PatchParams::default()
    };
    match ctx
        .api::<CaptureJob>()
        .patch(&seen.name, &params, &Patch::Merge(patch))
        .await
    {
        Ok(_) => Ok(()),
        Err(error) if is_not_found(&error) && !wanted => Ok(()),
        Err(error) => Err(error).step("change the finalizer"),
    }
}

/// Writes the operator's part of the status, when it says anything new; `true` when the phase is another now.
pub(super) async fn write_status(
    ctx: &Context,
    seen: &Seen,
    status: &CaptureJobStatus,
) -> Result<bool, Error> {
    if is_unchanged(&seen.status, status, &OWNED_FIELDS) {
        return Ok(false);
    }
    let api = ctx.api::<CaptureJob>();
    apply_status(&api, OPERATOR_FIELD_MANAGER, &seen.name, Some(&seen.uid), status)
        .await
        .step("write the status")?;
    Ok(status.phase != seen.status.phase)
}

/// Tells of a new phase, in the log and as an Event.
pub(super) async fn announce(ctx: &Context, seen: &Seen, status: &CaptureJobStatus) {
    let Some(phase) = status.phase else { return };
    let words = match &status.failure {
        Some(failure) => format!("{:?}: {}", failure.reason, failure.message),
        None => String::new(),
    };
    let reason = format!("{phase:?}");
    tracing::info!(
        capturejob = seen.name,
        uid = seen.uid,
        phase = reason,
        detail = words,
        "a capture has a new phase"
    );
    ctx.events
        .publish(&seen.job, phase == JobPhase::Failed, &reason, "Capture", &words)
        .await;
}
