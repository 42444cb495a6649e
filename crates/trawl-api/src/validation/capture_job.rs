//! CaptureJob.

use std::time::Duration;

use super::{FieldProblem, checks::Problems};
use crate::{CaptureJobSpec, RequestType, TriggerSnapshot, TriggerSource, limits};

impl CaptureJobSpec {
    /// Every rule that this spec breaks; empty when it is sound. Whether the filter compiles is not looked at.
    pub fn validate(&self) -> Vec<FieldProblem> {
        let mut problems = Problems::default();
        problems.name("spec.tapRef.name", &self.tap_ref.name);
        if let Some(node) = &self.target_node {
            problems.name("spec.targetNode", node);
        }
        problems.filter("spec.filter", self.filter.as_deref());
        problems.duration("spec.duration", &self.duration, limits::CAPTURE_DURATION);
        problems.snaplen("spec.snaplen", self.snaplen);
        problems.max_size("spec.maxSize", &self.max_size);
        problems.optional_duration("spec.preTrigger", self.pre_trigger.as_ref(), limits::PRE_TRIGGER);
        problems.optional_duration("spec.retention", self.retention.as_ref(), limits::RETENTION);
        self.validate_request(&mut problems);
        problems.into_vec()
    }

    fn validate_request(&self, problems: &mut Problems) {
        let policy = self.request_type == RequestType::Policy;
        problems.require(
            policy || self.target_node.is_some(),
            "spec.targetNode",
            "is required when spec.requestType is Manual",
        );
        for (present, field) in [
            (self.policy_ref.is_some(), "spec.policyRef"),
            (self.trigger.is_some(), "spec.trigger"),
            (self.deduplication_key.is_some(), "spec.deduplicationKey"),
        ] {
            problems.branch(present, policy, field, "spec.requestType is Policy");
        }
        if let Some(policy) = &self.policy_ref {
            problems.name("spec.policyRef.name", &policy.name);
            problems.require(!policy.uid.is_empty(), "spec.policyRef.uid", "must not be empty");
            problems.require(
                policy.generation >= 1,
                "spec.policyRef.generation",
                "must be at least 1",
            );
        }
        if let Some(key) = &self.deduplication_key {
            problems.sha256_form("spec.deduplicationKey", key);
        }
        if let Some(trigger) = &self.trigger {
            snapshot(problems, trigger);
        }
    }

    /// How long the artifact is kept; the default where the spec says nothing.
    pub fn effective_retention(&self) -> Duration {
        self.retention.as_ref().map_or(limits::RETENTION.max, |r| r.get())
    }

    /// How far before the event the capture begins; the default where the spec says nothing.
    pub fn effective_pre_trigger(&self) -> Duration {
        self.pre_trigger.as_ref().map_or(Duration::ZERO, |p| p.get())
    }
}

/// 9999-01-01T00:00:00Z, in seconds since 1970.
const FIRST_SECOND_OF_9999: i64 = 253_370_764_800;

fn snapshot(problems: &mut Problems, trigger: &TriggerSnapshot) {
    for (source, present, field) in [
        (
            TriggerSource::SuricataAlert,
            trigger.suricata.is_some(),
            "spec.trigger.suricata",
        ),
        (
            TriggerSource::HubbleDrop,
            trigger.hubble.is_some(),
            "spec.trigger.hubble",
        ),
    ] {
        let tag = format!("spec.trigger.source is {source:?}");
        problems.branch(present, trigger.source == source, field, &tag);
    }
    problems.sha256_form("spec.trigger.fingerprint", &trigger.fingerprint);
    for (time, field) in [
        (&trigger.event_time, "spec.trigger.eventTime"),
        (&trigger.observed_at, "spec.trigger.observedAt"),
    ] {
        let holds = (0..FIRST_SECOND_OF_9999).contains(&time.0.as_second());
        problems.require(holds, field, "must be between 1970 and 9999");
    }
    if let Some(alert) = &trigger.suricata {
        problems.range("spec.trigger.suricata.severity", alert.severity, 1, 4);
    }
    let Some(flow) = &trigger.flow else { return };
    for (field, address) in [
        ("sourceIP", &flow.source_ip),
        ("destinationIP", &flow.destination_ip),
    ] {
        let holds = address
            .as_ref()
            .is_none_or(|a| a.parse::<std::net::IpAddr>().is_ok());
        problems.require(
            holds,
            format!("spec.trigger.flow.{field}"),
            "must be an IP address",
        );
    }
    for (field, port) in [
        ("sourcePort", flow.source_port),
        ("destinationPort", flow.destination_port),
    ] {
        problems.range(
            &format!("spec.trigger.flow.{field}"),
            port.unwrap_or_default(),
            0,
            65_535,
        );
    }
}
