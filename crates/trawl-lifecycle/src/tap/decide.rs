//! The decision: is the tap valid, where does it go, who else wants the interface, and what do the sensors report.

use trawl_api::conditions::{ConditionType, Reason, Truth, merge};
use trawl_api::validation::summary;
use trawl_api::{NetworkTapStatus, TapPhase, TapType, TargetStatus};

use super::conditions::{Said, analyzers, packets, say, workload};
use super::facts::{TapDecision, TapFacts, WorkloadAction, WorkloadFact, is_fresh};

/// What to write and do about a NetworkTap, given all that is known about it.
pub fn decide(f: &TapFacts<'_>) -> TapDecision {
    if f.deleting {
        return TapDecision { status: None, workload: WorkloadAction::Leave, requeue: None };
    }
    if let Some(refused) = refusal(f) {
        return refused;
    }
    let targets = targets(f);
    let resolved = say(
        ConditionType::TargetsResolved,
        Truth::True,
        Reason::TargetsResolved,
        targets.join(", "),
    );
    let accepted = say(ConditionType::Accepted, Truth::True, Reason::Accepted, "");
    let reports: Vec<&TargetStatus> =
        targets.iter().filter_map(|n| f.status.targets.iter().find(|t| t.node_name == *n)).collect();
    let fresh: Vec<&TargetStatus> =
        reports.iter().copied().filter(|t| is_fresh(t, f.now, f.limits.heartbeat_stale)).collect();
    let workload = workload(f, &targets);
    let analyzers = analyzers(&fresh);
    let packets = packets(&reports, &fresh);

    let phase = if f.workload == WorkloadFact::Foreign {
        TapPhase::Error
    } else if reports.len() < targets.len() {
        TapPhase::Pending
    } else if fresh.len() < targets.len() || workload.truth != Truth::True || analyzers.truth != Truth::True {
        TapPhase::Degraded
    } else {
        TapPhase::Active
    };
    let ready = fresh.iter().filter(|t| f.pods.get(&t.node_name).is_some_and(|p| p.ready)).count();
    let action =
        if f.workload == WorkloadFact::Foreign { WorkloadAction::Leave } else { WorkloadAction::Apply };
    let mut status = status(f, phase, vec![accepted, resolved, workload, analyzers, packets]);
    status.matched_targets = Some(count(targets.len()));
    status.ready_targets = Some(count(ready));
    TapDecision { status: Some(status), workload: action, requeue: Some(f.limits.tap_requeue) }
}

/// Everything that ends in Error before any workload is made.
fn refusal(f: &TapFacts<'_>) -> Option<TapDecision> {
    use ConditionType::{Accepted, TargetsResolved};
    let accepted = say(Accepted, Truth::True, Reason::Accepted, "");
    if !f.namespace_ok {
        let message = "outside the installation's namespace; create it there";
        return Some(error(f, vec![say(Accepted, Truth::False, Reason::WrongNamespace, message)], WorkloadAction::Leave));
    }
    let problems = f.spec.validate();
    if !problems.is_empty() {
        let refused = say(Accepted, Truth::False, Reason::InvalidSpec, summary(&problems));
        return Some(error(f, vec![refused], WorkloadAction::Remove));
    }
    let targets = targets(f);
    if targets.is_empty() {
        let message = if f.nodes.is_empty() {
            "the node selector matches no node".to_owned()
        } else {
            let names: Vec<_> = f.nodes.iter().map(|n| n.name.as_str()).collect();
            format!("matched nodes lack the label trawl.cloud/sensor=true: {}", names.join(", "))
        };
        let unresolved = say(TargetsResolved, Truth::False, Reason::NoEligibleTargets, message);
        return Some(error(f, vec![accepted, unresolved], WorkloadAction::Remove));
    }
    if f.spec.type_ != TapType::MirrorInterface {
        return None;
    }
    if targets.len() > 1 {
        let message = format!("a mirror tap needs exactly one node, the selector matches {}: {}", targets.len(), targets.join(", "));
        let mut refused = error(
            f,
            vec![accepted, say(TargetsResolved, Truth::False, Reason::AmbiguousTargets, message)],
            WorkloadAction::Remove,
        );
        if let Some(status) = &mut refused.status {
            status.matched_targets = Some(count(targets.len()));
        }
        return Some(refused);
    }
    let interface = &f.spec.source()?.interface;
    let rival = f.rivals.iter().find(|r| {
        r.interface == *interface && r.nodes == targets && f.claim.yields_to(&r.claim)
    })?;
    let message = format!("NetworkTap {} is older and holds {interface} on {}", rival.claim.name, targets[0]);
    let conflict = say(Accepted, Truth::False, Reason::InterfaceConflict, message);
    let resolved = say(TargetsResolved, Truth::True, Reason::TargetsResolved, targets.join(", "));
    Some(error(f, vec![conflict, resolved], WorkloadAction::Remove))
}

fn error(f: &TapFacts<'_>, said: Vec<Said>, workload: WorkloadAction) -> TapDecision {
    let mut said = said;
    for (type_, message) in [
        (ConditionType::TargetsResolved, "not looked at"),
        (ConditionType::WorkloadReady, "no workload is wanted"),
        (ConditionType::AnalyzersHealthy, "no workload is wanted"),
        (ConditionType::PacketsObserved, "no workload is wanted"),
    ] {
        if !said.iter().any(|s| s.type_ == type_) {
            said.push(say(type_, Truth::Unknown, Reason::Pending, message));
        }
    }
    let mut status = status(f, TapPhase::Error, said);
    status.matched_targets = Some(count(targets(f).len()));
    status.ready_targets = Some(0);
    TapDecision { status: Some(status), workload, requeue: Some(f.limits.tap_requeue) }
}

fn status(f: &TapFacts<'_>, phase: TapPhase, said: Vec<Said>) -> NetworkTapStatus {
    let latest = f.status.targets.iter().filter_map(|t| t.last_packet_time.clone()).max();
    NetworkTapStatus {
        observed_generation: Some(f.generation),
        phase: Some(phase),
        // Never behind what was shown: history survives a sensor that is gone.
        last_packet_time: latest.max(f.status.last_packet_time.clone()),
        conditions: said.iter().map(|s| merge(&f.status.conditions, s, f.generation, f.now)).collect(),
        ..NetworkTapStatus::default()
    }
}

fn targets(f: &TapFacts<'_>) -> Vec<String> {
    let mut names: Vec<String> = f.nodes.iter().filter(|n| n.sensor).map(|n| n.name.clone()).collect();
    names.sort();
    names
}

fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}
