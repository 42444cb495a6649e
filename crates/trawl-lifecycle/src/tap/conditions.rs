//! What the sensors' pods and reports come to, as conditions.

use trawl_api::conditions::{ConditionType, Observed, Reason, Truth};
use trawl_api::{AnalyzerName, TapType, TargetStatus};

use super::facts::{ProblemKind, SensorNote, TapFacts, WorkloadFact};

pub(super) type Said = Observed;

pub(super) fn say(type_: ConditionType, truth: Truth, reason: Reason, message: impl Into<String>) -> Said {
    Observed::new(type_, truth, reason, message)
}

/// Whether every sensor runs and has its interface, and in which mode it captures.
pub(super) fn workload(f: &TapFacts<'_>, targets: &[String]) -> Said {
    let type_ = ConditionType::WorkloadReady;
    match f.workload {
        WorkloadFact::Absent => {
            return say(
                type_,
                Truth::False,
                Reason::WorkloadProgressing,
                "the workload is being made",
            );
        }
        WorkloadFact::Foreign => {
            let message = "an object of the workload's name exists that this tap does not own; delete it";
            return say(type_, Truth::False, Reason::WorkloadUnavailable, message);
        }
        WorkloadFact::Exists { .. } => {}
    }
    let interface = f.spec.source().map_or("", |s| s.interface.as_str());
    if let Some((node, problem)) = targets
        .iter()
        .find_map(|n| note(f, n)?.problem.as_ref().map(|problem| (n, problem)))
    {
        let reason = match problem.kind {
            ProblemKind::InterfaceMissing => Reason::InterfaceMissing,
            ProblemKind::Unreachable | ProblemKind::Other => Reason::WorkloadUnavailable,
        };
        return say(
            type_,
            Truth::False,
            reason,
            format!("{node}/{interface}: {}", problem.message),
        );
    }
    if let Some((node, trouble)) = targets
        .iter()
        .find_map(|n| f.pods.get(n).and_then(|p| p.trouble.as_ref()).map(|t| (n, t)))
    {
        return say(
            type_,
            Truth::False,
            Reason::WorkloadUnavailable,
            format!("{node}: {trouble}"),
        );
    }
    let waiting: Vec<&str> = targets
        .iter()
        .filter(|n| !f.pods.get(*n).is_some_and(|p| p.ready))
        .map(String::as_str)
        .collect();
    if !waiting.is_empty() {
        let message = format!("waiting for the sensor on {}", waiting.join(", "));
        return say(type_, Truth::False, Reason::WorkloadProgressing, message);
    }
    modes(f, targets, interface)
}

/// The sensors are ready; says by which means they capture.
fn modes(f: &TapFacts<'_>, targets: &[String], interface: &str) -> Said {
    let mut words = Vec::new();
    let mut degraded = false;
    for node in targets {
        let Some((note, mode)) = note(f, node).and_then(|n| Some((n, n.mode.as_ref()?))) else {
            continue;
        };
        let below = f.spec.type_ == TapType::MirrorInterface && mode != "zero-copy";
        degraded |= below;
        let why = if below && !note.refusals.is_empty() {
            format!(" ({})", note.refusals.join("; "))
        } else {
            String::new()
        };
        let nic = match &note.nic[..] {
            [] => String::new(),
            wrong => format!(", NIC: {}", wrong.join(", ")),
        };
        words.push(format!("{node}/{interface}: {mode}{why}{nic}"));
    }
    let reason = if degraded {
        Reason::CaptureModeDegraded
    } else {
        Reason::WorkloadReady
    };
    let message = if words.is_empty() {
        "the capture mode is not known yet".into()
    } else {
        words.join("; ")
    };
    say(ConditionType::WorkloadReady, Truth::True, reason, message)
}

/// A node's note, when the pod that wrote it is the pod that is there.
fn note<'f>(f: &'f TapFacts<'_>, node: &str) -> Option<&'f SensorNote> {
    let note = f.notes.get(node)?;
    (f.pods.get(node)?.name == note.pod).then_some(note)
}

/// Whether every analyzer that reported is healthy.
pub(super) fn analyzers(fresh: &[&TargetStatus]) -> Said {
    let type_ = ConditionType::AnalyzersHealthy;
    if fresh.iter().all(|t| t.analyzers.is_empty()) {
        return say(
            type_,
            Truth::Unknown,
            Reason::ProbeUnavailable,
            "no sensor has reported on an analyzer",
        );
    }
    let sick: Vec<String> = fresh
        .iter()
        .flat_map(|t| t.analyzers.iter().filter(|a| !a.healthy).map(move |a| (t, a)))
        .map(|(t, a)| {
            let name = match a.name {
                AnalyzerName::Suricata => "Suricata",
                AnalyzerName::Zeek => "Zeek",
            };
            format!(
                "{}/{name}: {}",
                t.node_name,
                a.reason.as_deref().unwrap_or("unhealthy")
            )
        })
        .collect();
    if sick.is_empty() {
        say(type_, Truth::True, Reason::AnalyzersHealthy, "")
    } else {
        say(type_, Truth::False, Reason::AnalyzerFailed, sick.join("; "))
    }
}

/// Whether packets arrive. Silence of the sensors is "could not look".
pub(super) fn packets(reports: &[&TargetStatus], fresh: &[&TargetStatus]) -> Said {
    let type_ = ConditionType::PacketsObserved;
    if reports.is_empty() {
        return say(
            type_,
            Truth::Unknown,
            Reason::Pending,
            "no sensor has reported yet",
        );
    }
    if fresh.is_empty() {
        return say(
            type_,
            Truth::Unknown,
            Reason::ProbeUnavailable,
            "no sensor has reported lately",
        );
    }
    let seen: Vec<&str> = fresh
        .iter()
        .filter(|t| t.packets_observed > 0)
        .map(|t| t.node_name.as_str())
        .collect();
    if seen.is_empty() {
        return say(
            type_,
            Truth::False,
            Reason::NoPacketsObserved,
            "no packet has arrived since the sensor attached",
        );
    }
    say(
        type_,
        Truth::True,
        Reason::PacketsObserved,
        format!("packets arrive on {}", seen.join(", ")),
    )
}
