//! Every state and fact of a NetworkTap, and what follows from it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use trawl_api::conditions::{ConditionType, Reason};
use trawl_api::{
    AnalyzerName, AnalyzerStatus, Duplication, NetworkTapSpec, NetworkTapStatus, TapPhase, TargetStatus,
};

use super::*;
use crate::claim::Claim;
use crate::limits::Limits;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap() + SignedDuration::from_secs(seconds)
}

/// A tap with one node, its workload and sensor in order, whose facts a test changes one by one.
struct Bench {
    spec: NetworkTapSpec,
    status: NetworkTapStatus,
    namespace_ok: bool,
    deleting: bool,
    nodes: Vec<NodeMatch>,
    rivals: Vec<Rival>,
    workload: WorkloadFact,
    pods: std::collections::BTreeMap<String, PodFact>,
    notes: std::collections::BTreeMap<String, SensorNote>,
}

fn spec(type_: &str) -> NetworkTapSpec {
    let branch = if type_ == "MirrorInterface" {
        "mirrorInterface"
    } else {
        "nodeInterface"
    };
    let mut spec = format!(
        r#"{{"mode": "Passive", "type": "{type_}", "{branch}": {{"interface": "mirror0", "promiscuous": true,
            "nodeSelector": {{"matchLabels": {{"a": "b"}}}}}}"#
    );
    spec += r#", "analyzers": {"suricata": {"enabled": true, "resources": {
        "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}}}}"#;
    serde_json::from_str(&spec).unwrap()
}

fn node(name: &str) -> NodeMatch {
    NodeMatch {
        name: name.into(),
        sensor: true,
    }
}

fn target(node: &str, age: i64, healthy: bool) -> TargetStatus {
    TargetStatus {
        node_name: node.into(),
        interface: "mirror0".into(),
        pod_ref: None,
        reporter_instance: "p/1".into(),
        heartbeat_time: Time(at(-age)),
        last_packet_time: Some(Time(at(-age))),
        packets_observed: 3,
        kernel_drops: None,
        bytes_observed: None,
        duplication: Duplication::Unknown,
        rejected_records: 0,
        analyzers: vec![AnalyzerStatus {
            name: AnalyzerName::Suricata,
            healthy,
            version: None,
            last_record_time: None,
            upstream_fetched_at: None,
            custom_content_digest: None,
            reason: (!healthy).then(|| "does not run".into()),
        }],
    }
}

fn pod(name: &str, ready: bool) -> PodFact {
    PodFact {
        name: name.into(),
        ready,
        trouble: None,
    }
}

impl Bench {
    fn new() -> Self {
        let status = NetworkTapStatus {
            targets: vec![target("n1", 5, true)],
            ..NetworkTapStatus::default()
        };
        let mode = Some("zero-copy".into());
        let note = SensorNote {
            pod: "pod".into(),
            mode,
            refusals: vec![],
            nic: vec![],
            problem: None,
        };
        Self {
            spec: spec("MirrorInterface"),
            status,
            namespace_ok: true,
            deleting: false,
            nodes: vec![node("n1")],
            rivals: vec![],
            workload: WorkloadFact::Exists { desired: 1, ready: 1 },
            pods: [("n1".to_owned(), pod("pod", true))].into(),
            notes: [("n1".to_owned(), note)].into(),
        }
    }

    fn two_nodes() -> Self {
        let mut bench = Self::new();
        bench.spec = spec("NodeInterface");
        bench.nodes = vec![node("n2"), node("n1")];
        bench.status.targets.push(target("n2", 5, true));
        bench.pods.insert("n2".into(), pod("pod2", true));
        bench
    }

    fn decide(&self) -> TapDecision {
        decide(&TapFacts {
            generation: 4,
            claim: Claim {
                name: "me".into(),
                uid: "m".into(),
                created_at: at(-100),
            },
            namespace_ok: self.namespace_ok,
            deleting: self.deleting,
            spec: &self.spec,
            status: &self.status,
            nodes: self.nodes.clone(),
            rivals: self.rivals.clone(),
            workload: self.workload.clone(),
            pods: self.pods.clone(),
            notes: self.notes.clone(),
            now: at(0),
            limits: Limits::default(),
        })
    }

    fn rival(&mut self, uid: &str, created: i64, interface: &str, node: &str) {
        self.rivals.push(Rival {
            claim: Claim {
                name: "rival".into(),
                uid: uid.into(),
                created_at: at(created),
            },
            interface: interface.into(),
            nodes: vec![node.into()],
        });
    }
}

fn phase(d: &TapDecision) -> TapPhase {
    d.status.as_ref().unwrap().phase.unwrap()
}

#[track_caller]
fn says(d: &TapDecision, type_: ConditionType, status: &str, reason: Reason, words: &str) {
    let conditions = &d.status.as_ref().unwrap().conditions;
    let c = conditions
        .iter()
        .find(|c| c.type_ == type_.as_str())
        .expect("the condition");
    assert_eq!(
        (c.status.as_str(), c.reason.as_str()),
        (status, reason.as_str()),
        "{}",
        c.message
    );
    assert!(c.message.contains(words), "{:?} lacks {words:?}", c.message);
    assert_eq!(c.observed_generation, Some(4));
}

#[test]
fn a_tap_with_everything_in_order_is_active() {
    let d = Bench::new().decide();
    assert_eq!((phase(&d), d.workload), (TapPhase::Active, WorkloadAction::Apply));
    says(&d, ConditionType::Accepted, "True", Reason::Accepted, "");
    says(
        &d,
        ConditionType::TargetsResolved,
        "True",
        Reason::TargetsResolved,
        "n1",
    );
    says(
        &d,
        ConditionType::WorkloadReady,
        "True",
        Reason::WorkloadReady,
        "n1/mirror0: zero-copy",
    );
    says(
        &d,
        ConditionType::AnalyzersHealthy,
        "True",
        Reason::AnalyzersHealthy,
        "",
    );
    says(
        &d,
        ConditionType::PacketsObserved,
        "True",
        Reason::PacketsObserved,
        "n1",
    );
    let status = d.status.unwrap();
    assert_eq!((status.matched_targets, status.ready_targets), (Some(1), Some(1)));
    assert_eq!(status.last_packet_time, Some(Time(at(-5))));
    assert!(status.targets.is_empty(), "the sensors' entries are theirs");
    assert_eq!(
        d.requeue,
        Some(Limits::default().tap_requeue),
        "so that silence is noticed"
    );
}

#[test]
fn a_tap_that_cannot_be_placed_is_in_error_without_a_workload() {
    use ConditionType::{Accepted, TargetsResolved};
    type Change = fn(&mut Bench);
    let cases: [(Change, ConditionType, Reason, &str, WorkloadAction); 6] = [
        (
            |b| b.namespace_ok = false,
            Accepted,
            Reason::WrongNamespace,
            "namespace",
            WorkloadAction::Leave,
        ),
        (
            |b| b.spec.mirror_interface = None,
            Accepted,
            Reason::InvalidSpec,
            "mirrorInterface",
            WorkloadAction::Remove,
        ),
        (
            |b| b.nodes.clear(),
            TargetsResolved,
            Reason::NoEligibleTargets,
            "no node",
            WorkloadAction::Remove,
        ),
        (
            |b| b.nodes[0].sensor = false,
            TargetsResolved,
            Reason::NoEligibleTargets,
            "n1",
            WorkloadAction::Remove,
        ),
        (
            |b| b.nodes.push(node("n2")),
            TargetsResolved,
            Reason::AmbiguousTargets,
            "n1, n2",
            WorkloadAction::Remove,
        ),
        (
            |b| b.rival("r", -101, "mirror0", "n1"),
            Accepted,
            Reason::InterfaceConflict,
            "rival",
            WorkloadAction::Remove,
        ),
    ];
    for (change, type_, reason, words, workload) in cases {
        let mut bench = Bench::new();
        change(&mut bench);
        let d = bench.decide();
        says(&d, type_, "False", reason, words);
        assert_eq!((phase(&d), d.workload), (TapPhase::Error, workload), "{reason}");
        let types: Vec<_> = d
            .status
            .unwrap()
            .conditions
            .into_iter()
            .map(|c| c.type_)
            .collect();
        for required in [
            "Accepted",
            "TargetsResolved",
            "WorkloadReady",
            "AnalyzersHealthy",
            "PacketsObserved",
        ] {
            assert!(
                types.iter().any(|t| t == required),
                "{reason}: {required} is required"
            );
        }
    }
}

#[test]
fn only_an_older_tap_on_the_same_interface_and_node_is_yielded_to() {
    for (uid, created, interface, node, yields) in [
        ("r", -101, "mirror0", "n1", true),
        ("a", -100, "mirror0", "n1", true),
        ("z", -100, "mirror0", "n1", false),
        ("r", -99, "mirror0", "n1", false),
        ("r", -101, "mirror1", "n1", false),
        ("r", -101, "mirror0", "n2", false),
    ] {
        let mut bench = Bench::new();
        bench.rival(uid, created, interface, node);
        let error = phase(&bench.decide()) == TapPhase::Error;
        assert_eq!(error, yields, "{uid} {created} {interface} {node}");
    }
    let mut bench = Bench::two_nodes();
    bench.rival("r", -101, "mirror0", "n1");
    assert_eq!(
        phase(&bench.decide()),
        TapPhase::Active,
        "several taps of a node's own interface are fine"
    );
}

#[test]
fn a_tap_is_pending_until_every_target_has_reported() {
    let mut bench = Bench::new();
    bench.status.targets.clear();
    bench.workload = WorkloadFact::Absent;
    bench.pods.clear();
    let d = bench.decide();
    assert_eq!(
        (phase(&d), d.workload),
        (TapPhase::Pending, WorkloadAction::Apply)
    );
    says(
        &d,
        ConditionType::WorkloadReady,
        "False",
        Reason::WorkloadProgressing,
        "",
    );
    says(
        &d,
        ConditionType::AnalyzersHealthy,
        "Unknown",
        Reason::ProbeUnavailable,
        "",
    );
    says(&d, ConditionType::PacketsObserved, "Unknown", Reason::Pending, "");

    let mut bench = Bench::two_nodes();
    bench.status.targets.pop();
    assert_eq!(phase(&bench.decide()), TapPhase::Pending);
}

#[test]
fn a_target_that_reported_and_is_silent_or_unhealthy_degrades() {
    type Change = fn(&mut Bench);
    let cases: [(&str, Change); 5] = [
        ("stale", |b| b.status.targets[0] = target("n1", 90, true)),
        ("analyzer", |b| b.status.targets[0] = target("n1", 5, false)),
        ("pod not ready", |b| b.pods.get_mut("n1").unwrap().ready = false),
        ("pod gone", |b| b.pods.clear()),
        ("one of two stale", |b| {
            *b = Bench::two_nodes();
            b.status.targets[1] = target("n2", 500, true);
        }),
    ];
    for (name, change) in cases {
        let mut bench = Bench::new();
        change(&mut bench);
        assert_eq!(phase(&bench.decide()), TapPhase::Degraded, "{name}");
    }
    let mut bench = Bench::new();
    bench.status.targets[0] = target("n1", 89, true);
    assert_eq!(phase(&bench.decide()), TapPhase::Active, "89 s is fresh");
    bench.status.targets[0] = target("n1", -30, true);
    assert_eq!(
        phase(&bench.decide()),
        TapPhase::Active,
        "a clock that is ahead is not silence"
    );
}

#[test]
fn analyzers_are_named_by_node_and_packet_history_survives_silence() {
    let mut bench = Bench::new();
    bench.status.targets[0] = target("n1", 5, false);
    says(
        &bench.decide(),
        ConditionType::AnalyzersHealthy,
        "False",
        Reason::AnalyzerFailed,
        "n1/Suricata: does not run",
    );

    bench.status.targets[0] = target("n1", 300, true);
    let d = bench.decide();
    says(
        &d,
        ConditionType::AnalyzersHealthy,
        "Unknown",
        Reason::ProbeUnavailable,
        "",
    );
    says(
        &d,
        ConditionType::PacketsObserved,
        "Unknown",
        Reason::ProbeUnavailable,
        "",
    );
    let status = d.status.unwrap();
    assert_eq!(
        (status.last_packet_time, status.ready_targets),
        (Some(Time(at(-300))), Some(0))
    );

    bench.status.last_packet_time = Some(Time(at(-10)));
    assert_eq!(
        bench.decide().status.unwrap().last_packet_time,
        Some(Time(at(-10))),
        "never behind what was shown"
    );

    let mut bench = Bench::new();
    bench.status.targets[0].packets_observed = 0;
    says(
        &bench.decide(),
        ConditionType::PacketsObserved,
        "False",
        Reason::NoPacketsObserved,
        "",
    );
}

#[test]
fn a_mirror_below_zero_copy_is_told_with_its_reason_and_a_node_interface_is_not() {
    let mut bench = Bench::new();
    let note = bench.notes.get_mut("n1").unwrap();
    (note.mode, note.refusals) = (Some("copy".into()), vec!["zero-copy: EOPNOTSUPP".into()]);
    let d = bench.decide();
    says(
        &d,
        ConditionType::WorkloadReady,
        "True",
        Reason::CaptureModeDegraded,
        "copy (zero-copy: EOPNOTSUPP)",
    );
    assert_eq!(phase(&d), TapPhase::Active, "the packets do arrive");

    let mut bench = Bench::new();
    bench.notes.get_mut("n1").unwrap().nic = vec!["gro on (right: off)".into()];
    says(
        &bench.decide(),
        ConditionType::WorkloadReady,
        "True",
        Reason::WorkloadReady,
        "n1/mirror0: zero-copy, NIC: gro on (right: off)",
    );

    let mut bench = Bench::two_nodes();
    bench.notes.get_mut("n1").unwrap().mode = Some("af-packet".into());
    says(
        &bench.decide(),
        ConditionType::WorkloadReady,
        "True",
        Reason::WorkloadReady,
        "n1/mirror0: af-packet",
    );
}

#[test]
fn what_the_sensor_and_the_kubelet_say_is_shown_and_an_old_pods_note_is_not() {
    let problem = |kind| {
        Some(Problem {
            kind,
            message: "mirror0 does not exist".into(),
        })
    };
    let mut bench = Bench::new();
    bench.notes.get_mut("n1").unwrap().problem = problem(ProblemKind::InterfaceMissing);
    let d = bench.decide();
    says(
        &d,
        ConditionType::WorkloadReady,
        "False",
        Reason::InterfaceMissing,
        "n1/mirror0: mirror0 does not exist",
    );
    assert_eq!(phase(&d), TapPhase::Degraded);
    bench.notes.get_mut("n1").unwrap().problem = problem(ProblemKind::Unreachable);
    says(
        &bench.decide(),
        ConditionType::WorkloadReady,
        "False",
        Reason::WorkloadUnavailable,
        "n1/mirror0",
    );

    bench.pods.insert("n1".into(), pod("newer", true));
    says(
        &bench.decide(),
        ConditionType::WorkloadReady,
        "True",
        Reason::WorkloadReady,
        "not known",
    );

    bench.pods.get_mut("n1").unwrap().trouble = Some("sensor: ImagePullBackOff".into());
    says(
        &bench.decide(),
        ConditionType::WorkloadReady,
        "False",
        Reason::WorkloadUnavailable,
        "ImagePullBackOff",
    );
}

#[test]
fn a_strangers_workload_is_left_alone_and_a_deleted_tap_too() {
    let mut bench = Bench::new();
    bench.workload = WorkloadFact::Foreign;
    let d = bench.decide();
    assert_eq!((phase(&d), d.workload), (TapPhase::Error, WorkloadAction::Leave));
    bench.deleting = true;
    let d = bench.decide();
    assert_eq!(
        (d.status, d.workload, d.requeue),
        (None, WorkloadAction::Leave, None)
    );
}
