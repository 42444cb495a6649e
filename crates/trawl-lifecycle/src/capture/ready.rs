//! Whether a capture can start: the tap is live and its sensor on the wanted node reports.

use trawl_api::conditions::{ConditionType, Reason, is_true};
use trawl_api::{FailureReason, TapPhase, TapType};

use super::facts::{CaptureFacts, NodeFact, TapFact, TapView};
use crate::tap::is_fresh;

/// Why a capture cannot start yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotReady {
    pub reason: Reason,
    /// What the job fails with when this lasts too long.
    pub failure: FailureReason,
    pub message: String,
}

impl NotReady {
    fn tap(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, failure: FailureReason::TapInactive, message: message.into() }
    }

    fn target(message: impl Into<String>) -> Self {
        Self {
            reason: Reason::TargetUnavailable,
            failure: FailureReason::TargetUnavailable,
            message: message.into(),
        }
    }
}

/// The tap when a capture can start on `node`.
pub(super) fn readiness<'f>(f: &'f CaptureFacts<'_>, node: &str) -> Result<&'f TapView<'f>, NotReady> {
    let name = &f.spec.tap_ref.name;
    let TapFact::Found(tap) = &f.tap else {
        return Err(NotReady::tap(Reason::TapNotFound, format!("NetworkTap {name} does not exist")));
    };
    if f.status.resolved_tap_uid.as_deref().is_some_and(|uid| uid != tap.uid) {
        let message = format!("NetworkTap {name} was replaced by another of the same name");
        return Err(NotReady::tap(Reason::TapNotFound, message));
    }
    if tap.deleting {
        return Err(NotReady::tap(Reason::TapNotActive, format!("NetworkTap {name} is being deleted")));
    }
    for type_ in [ConditionType::Accepted, ConditionType::TargetsResolved] {
        if !is_true(&tap.status.conditions, type_, tap.generation) {
            let message = format!("NetworkTap {name}: {type_} is not True at generation {}", tap.generation);
            return Err(NotReady::tap(Reason::TapNotActive, message));
        }
    }
    target(f, tap, node)?;
    if !matches!(tap.status.phase, Some(TapPhase::Active | TapPhase::Degraded)) {
        let message = format!("NetworkTap {name} is neither Active nor Degraded");
        return Err(NotReady::tap(Reason::TapNotActive, message));
    }
    Ok(tap)
}

fn target(f: &CaptureFacts<'_>, tap: &TapView<'_>, node: &str) -> Result<(), NotReady> {
    let name = &f.spec.tap_ref.name;
    match f.node {
        NodeFact::Absent => return Err(NotReady::target(format!("node {node} does not exist"))),
        NodeFact::NotReady => return Err(NotReady::target(format!("node {node} is not Ready"))),
        NodeFact::NotSelected => {
            return Err(NotReady::target(format!("NetworkTap {name} does not watch node {node}")));
        }
        NodeFact::Eligible => {}
    }
    let Some(report) = tap.status.targets.iter().find(|t| t.node_name == node) else {
        return Err(NotReady::tap(Reason::TapNotActive, format!("the sensor on node {node} has not reported yet")));
    };
    if !is_fresh(report, f.now, f.limits.heartbeat_stale) {
        let message = format!("the last report of the sensor on node {node} is older than 90 s");
        return Err(NotReady::target(message));
    }
    // On several nodes the condition speaks of all of them, and one node's trouble must not stop the others.
    if tap.type_ == TapType::MirrorInterface
        && !is_true(&tap.status.conditions, ConditionType::WorkloadReady, tap.generation)
    {
        return Err(NotReady::target(format!("the sensor of NetworkTap {name} is not ready")));
    }
    Ok(())
}
