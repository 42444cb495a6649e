//! A CaptureJob with a ready tap, whose facts a test changes one by one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use trawl_api::{
    ByteSize, CaptureJobSpec, CaptureJobStatus, Duplication, FailureReason, GoDuration, JobPhase, LocalRef,
    NetworkTapStatus, Outcome, RequestType, RunnerResult, TapPhase, TapType, TargetStatus,
};

use super::*;
use crate::limits::Limits;

pub(super) struct Bench {
    pub generation: i64,
    pub created_at: Timestamp,
    pub namespace_ok: bool,
    pub deleting: bool,
    pub finalizer: bool,
    pub spec: CaptureJobSpec,
    pub status: CaptureJobStatus,
    pub tap: Option<Tap>,
    pub node: NodeFact,
    pub job: JobFact,
    pub runner: RunnerFact,
    pub artifact: ArtifactFact,
    pub cleanup: CleanupFact,
    pub now: Timestamp,
}

pub(super) struct Tap {
    pub generation: i64,
    pub deleting: bool,
    pub type_: TapType,
    pub status: NetworkTapStatus,
}

/// Seconds from the moment of every test.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap() + SignedDuration::from_secs(seconds)
}

pub(super) fn failed_job(reason: &str) -> JobFact {
    JobFact::Failed { reason: reason.into(), message: "words".into() }
}

pub(super) fn verified(outcome: Outcome) -> VerifiedArtifact {
    VerifiedArtifact {
        profile: "local".into(),
        key: "captures/ns/uid/capture.pcapng".into(),
        etag: None,
        version_id: None,
        packet_count: 7,
        size_bytes: 900,
        sha256: "ab".repeat(32),
        outcome,
    }
}

impl Bench {
    /// Nothing was done yet, and the target is ready.
    pub fn new() -> Self {
        let spec = CaptureJobSpec {
            request_type: RequestType::Manual,
            tap_ref: LocalRef::new("mirror"),
            target_node: Some("node".into()),
            filter: None,
            duration: GoDuration::parse("10s").unwrap(),
            snaplen: 0,
            max_size: ByteSize::parse("1Mi").unwrap(),
            pre_trigger: None,
            retention: Some(GoDuration::parse("1h").unwrap()),
            policy_ref: None,
            trigger: None,
            deduplication_key: None,
        };
        let mut bench = Self {
            generation: 1,
            created_at: at(-1),
            namespace_ok: true,
            deleting: false,
            finalizer: true,
            spec,
            status: CaptureJobStatus::default(),
            tap: Some(Tap {
                generation: 1,
                deleting: false,
                type_: TapType::MirrorInterface,
                status: NetworkTapStatus { phase: Some(TapPhase::Degraded), ..NetworkTapStatus::default() },
            }),
            node: NodeFact::Eligible,
            job: JobFact::Absent,
            runner: RunnerFact::Unknown,
            artifact: ArtifactFact::NotLooked,
            cleanup: CleanupFact::UNKNOWN,
            now: at(0),
        };
        for type_ in ["Accepted", "TargetsResolved", "WorkloadReady"] {
            bench.tap_condition(type_, "True", 1);
        }
        bench.heartbeat(-10);
        bench
    }

    /// A Job that captures.
    pub fn running() -> Self {
        let mut bench = Self::new();
        bench.job = JobFact::Active;
        bench.status.phase = Some(JobPhase::Capturing);
        bench.status.started_at = Some(at(-5).into());
        bench.status.runner_job_ref = Some(LocalRef::new("trawl-capture-uid"));
        bench
    }

    /// A request of a policy.
    pub fn policy() -> Self {
        let digest = format!("sha256:{}", "0".repeat(64));
        let mut bench = Self::new();
        bench.spec.request_type = RequestType::Policy;
        bench.spec.deduplication_key = Some(digest.clone());
        bench.spec.policy_ref =
            Some(trawl_api::ImmutablePolicyReference { name: "p".into(), uid: "u".into(), generation: 1 });
        bench.spec.trigger = Some(trawl_api::TriggerSnapshot {
            source: trawl_api::TriggerSource::HubbleDrop,
            fingerprint: digest,
            event_time: Time(at(-3)),
            observed_at: Time(at(-2)),
            flow: None,
            suricata: None,
            hubble: Some(trawl_api::HubbleSnapshot {
                drop_reason: "POLICY_DENIED".into(),
                source_namespace: None,
                destination_namespace: None,
            }),
        });
        bench
    }

    pub fn tap_mut(&mut self) -> &mut Tap {
        self.tap.as_mut().expect("a tap")
    }

    pub fn tap_condition(&mut self, type_: &str, status: &str, generation: i64) {
        let conditions = &mut self.tap_mut().status.conditions;
        conditions.retain(|c| c.type_ != type_);
        conditions.push(Condition {
            type_: type_.into(),
            status: status.into(),
            reason: "Accepted".into(),
            message: String::new(),
            observed_generation: Some(generation),
            last_transition_time: Time(at(-100)),
        });
    }

    /// The sensor reported this many seconds from now.
    pub fn heartbeat(&mut self, seconds: i64) {
        self.tap_mut().status.targets = vec![TargetStatus {
            node_name: "node".into(),
            interface: "mirror0".into(),
            pod_ref: None,
            reporter_instance: "p/1".into(),
            heartbeat_time: Time(at(seconds)),
            last_packet_time: None,
            packets_observed: 0,
            kernel_drops: None,
            bytes_observed: None,
            duplication: Duplication::Unknown,
            rejected_records: 0,
            analyzers: vec![],
        }];
    }

    pub fn result(&mut self, outcome: Outcome, reason: Option<FailureReason>, exit_code: i32) {
        self.status.runner_result = Some(RunnerResult {
            outcome,
            reason,
            stop_reason: None,
            packet_count: None,
            size_bytes: None,
            sha256: None,
            exit_code,
            message: None,
        });
    }

    pub fn decide(&self) -> Decision {
        let tap = match &self.tap {
            None => TapFact::Missing,
            Some(tap) => TapFact::Found(TapView {
                uid: "tap-uid",
                generation: tap.generation,
                deleting: tap.deleting,
                type_: tap.type_,
                status: &tap.status,
            }),
        };
        decide(&CaptureFacts {
            generation: self.generation,
            created_at: self.created_at,
            namespace_ok: self.namespace_ok,
            deleting: self.deleting,
            finalizer: self.finalizer,
            spec: &self.spec,
            status: &self.status,
            job_name: "trawl-capture-uid",
            tap,
            node: self.node,
            job: self.job.clone(),
            runner: self.runner.clone(),
            artifact: self.artifact.clone(),
            cleanup: self.cleanup,
            now: self.now,
            limits: Limits::default(),
        })
    }
}
