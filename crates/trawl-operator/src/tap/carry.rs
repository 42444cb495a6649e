//! Carrying a decision about a tap out.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use kube::Resource;
use kube::api::DeleteParams;
use trawl_api::conditions::ConditionType;
use trawl_api::names::OPERATOR_FIELD_MANAGER;
use trawl_api::{NetworkTap, NetworkTapStatus, TapPhase, TapType};
use trawl_config::pods::tap_objects_name;
use trawl_kube::apply::{apply_status, is_not_found};
use trawl_kube::status::is_unchanged;
use trawl_lifecycle::tap::WorkloadFact;

use super::gather::Seen;
use super::reconcile::Applied;
use super::workload::{Plan, Workload};
use crate::context::Context;
use crate::error::{Error, Step};
use crate::owned::{ensure, identity};

/// Top-level status fields that the operator owns.
const OWNED_FIELDS: [&str; 6] =
    ["observedGeneration", "phase", "matchedTargets", "readyTargets", "lastPacketTime", "conditions"];

/// Applies the parts of the tap; only what this operator has not applied already, or finds missing.
pub(super) async fn apply(ctx: &Context, seen: &Seen, applied: &Applied) -> Result<(), Error> {
    let (Some(source), Some(owner)) = (seen.tap.spec.source(), seen.tap.controller_owner_ref(&())) else {
        return Ok(());
    };
    let generation = seen.tap.metadata.generation.unwrap_or(0);
    if matches!(seen.workload, WorkloadFact::Exists { .. }) && applied.is(&seen.uid, generation) {
        return Ok(());
    }
    let plan =
        Plan { config: &ctx.config, name: &seen.name, uid: &seen.uid, owner, spec: &seen.tap.spec, source };
    let (account, role, binding) = identity(&plan.metadata(), plan.sensor_rules());
    let notes = plan.notes();
    let uid = &seen.uid;
    futures::try_join!(
        ensure(ctx, uid, &account),
        ensure(ctx, uid, &role),
        ensure(ctx, uid, &binding),
        ensure(ctx, uid, &notes),
    )?;
    match plan.workload().map_err(|source| Error::Encode { what: "the sensor's instructions", source })? {
        Workload::Deployment(deployment) => ensure(ctx, uid, &*deployment).await?,
        Workload::DaemonSet(daemon_set) => ensure(ctx, uid, &*daemon_set).await?,
    }
    applied.set(uid, generation);
    tracing::info!(tap = seen.name, uid, generation, "applied the workload of a tap");
    Ok(())
}

/// Removes the workload of a tap that must not watch.
pub(super) async fn remove(ctx: &Context, seen: &Seen, applied: &Applied) -> Result<(), Error> {
    applied.forget(&seen.uid);
    if !matches!(seen.workload, WorkloadFact::Exists { .. }) {
        return Ok(());
    }
    let (name, params) = (tap_objects_name(&seen.uid), DeleteParams::default());
    let removed = match seen.tap.spec.type_ {
        TapType::MirrorInterface => ctx.api::<Deployment>().delete(&name, &params).await.map(drop),
        TapType::NodeInterface => ctx.api::<DaemonSet>().delete(&name, &params).await.map(drop),
    };
    match removed {
        Err(error) if !is_not_found(&error) => Err(error).step("remove the workload"),
        _ => Ok(()),
    }
}

/// Writes the operator's part of the status, when it says anything new, and tells of what changed.
pub(super) async fn write_status(ctx: &Context, seen: &Seen, status: &NetworkTapStatus) -> Result<(), Error> {
    if is_unchanged(&seen.status, status, &OWNED_FIELDS) {
        return Ok(());
    }
    let api = ctx.api::<NetworkTap>();
    apply_status(&api, OPERATOR_FIELD_MANAGER, &seen.name, Some(&seen.uid), status).await.step("write the status")?;
    announce(ctx, seen, status).await;
    Ok(())
}

/// One Event for a new phase, one for a new state of the workload (which names the capture mode).
async fn announce(ctx: &Context, seen: &Seen, status: &NetworkTapStatus) {
    let find = |s: &NetworkTapStatus, type_: ConditionType| {
        s.conditions.iter().find(|c| c.type_ == type_.as_str()).map(|c| (c.reason.clone(), c.message.clone()))
    };
    if let Some(phase) = status.phase.filter(|p| Some(*p) != seen.status.phase) {
        let reason = format!("{phase:?}");
        let words = [ConditionType::Accepted, ConditionType::TargetsResolved, ConditionType::WorkloadReady]
            .into_iter()
            .filter_map(|t| find(status, t))
            .find(|(_, message)| !message.is_empty())
            .map(|(reason, message)| format!("{reason}: {message}"))
            .unwrap_or_default();
        tracing::info!(tap = seen.name, uid = seen.uid, phase = reason, detail = words, "a tap has a new phase");
        ctx.events.publish(&seen.tap, phase == TapPhase::Error, &reason, "Tap", &words).await;
    }
    let now = find(status, ConditionType::WorkloadReady);
    if now != find(&seen.status, ConditionType::WorkloadReady)
        && let Some((reason, message)) = now
    {
        let warning = matches!(reason.as_str(), "InterfaceMissing" | "WorkloadUnavailable" | "CaptureModeDegraded");
        ctx.events.publish(&seen.tap, warning, &reason, "Workload", &message).await;
    }
}
