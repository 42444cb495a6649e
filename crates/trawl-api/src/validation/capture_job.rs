//! CaptureJob.

use std::{net::IpAddr, time::Duration};

use super::{FieldProblem, checks::Problems};
use crate::{
    CaptureJobSpec, FlowSnapshot, HubbleSnapshot, MAX_MESSAGE_BYTES, RequestType, SuricataSnapshot,
    TriggerSnapshot, TriggerSource, limits, words,
};

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
            words::required_when("requestType", "Manual"),
        );
        for (present, field) in [
            (self.policy_ref.is_some(), "spec.policyRef"),
            (self.trigger.is_some(), "spec.trigger"),
            (self.deduplication_key.is_some(), "spec.deduplicationKey"),
        ] {
            problems.branch(present, policy, field, "requestType", "Policy");
        }
        if let Some(policy) = &self.policy_ref {
            problems.name("spec.policyRef.name", &policy.name);
            problems.length("spec.policyRef.uid", &policy.uid, 1, limits::MAX_UID);
            problems.require_found(
                policy.generation >= 1,
                "spec.policyRef.generation",
                policy.generation,
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
        let wanted = trigger.source == source;
        problems.branch(present, wanted, field, "source", &format!("{source:?}"));
    }
    problems.sha256_form("spec.trigger.fingerprint", &trigger.fingerprint);
    for (time, field) in [
        (&trigger.event_time, "spec.trigger.eventTime"),
        (&trigger.observed_at, "spec.trigger.observedAt"),
    ] {
        let holds = (0..FIRST_SECOND_OF_9999).contains(&time.0.as_second());
        problems.require(holds, field, words::TIME);
    }
    if let Some(alert) = &trigger.suricata {
        suricata(problems, alert);
    }
    if let Some(drop) = &trigger.hubble {
        hubble(problems, drop);
    }
    if let Some(flow) = &trigger.flow {
        self::flow(problems, flow);
    }
}

fn suricata(problems: &mut Problems, alert: &SuricataSnapshot) {
    problems.range("spec.trigger.suricata.severity", alert.severity, 1, 4);
    if let Some(category) = &alert.category {
        problems.word("spec.trigger.suricata.category", category);
    }
    if let Some(message) = &alert.message {
        problems.length("spec.trigger.suricata.message", message, 0, MAX_MESSAGE_BYTES);
    }
}

fn hubble(problems: &mut Problems, drop: &HubbleSnapshot) {
    problems.word("spec.trigger.hubble.dropReason", &drop.drop_reason);
    for (field, namespace) in [
        ("sourceNamespace", &drop.source_namespace),
        ("destinationNamespace", &drop.destination_namespace),
    ] {
        if let Some(namespace) = namespace {
            problems.namespace(format!("spec.trigger.hubble.{field}"), namespace);
        }
    }
}

fn flow(problems: &mut Problems, flow: &FlowSnapshot) {
    for (field, address) in [
        ("sourceIP", &flow.source_ip),
        ("destinationIP", &flow.destination_ip),
    ] {
        problems.require(
            address.as_deref().is_none_or(is_address),
            format!("spec.trigger.flow.{field}"),
            words::ADDRESS,
        );
    }
    for (field, port) in [
        ("sourcePort", flow.source_port),
        ("destinationPort", flow.destination_port),
    ] {
        let field = format!("spec.trigger.flow.{field}");
        problems.range(&field, port.unwrap_or_default(), 0, 65_535);
    }
    let protocol = flow.protocol.as_deref().is_none_or(|p| {
        (1..=16).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    });
    problems.require(protocol, "spec.trigger.flow.protocol", words::PROTOCOL);
    problems.require(
        flow.community_id.as_deref().is_none_or(is_community_id),
        "spec.trigger.flow.communityID",
        words::COMMUNITY_ID,
    );
}

/// What the API server calls an address: one that is embedded in IPv6 (`::ffff:10.0.0.1`) is none.
fn is_address(text: &str) -> bool {
    match text.parse() {
        Ok(IpAddr::V6(address)) => address.to_ipv4_mapped().is_none(),
        Ok(IpAddr::V4(_)) => true,
        Err(_) => false,
    }
}

fn is_community_id(text: &str) -> bool {
    text.len() <= 64
        && text.split_once(':').is_some_and(|(version, hash)| {
            let base64 = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
            !version.is_empty()
                && version.bytes().all(|b| b.is_ascii_digit())
                && !hash.is_empty()
                && hash.bytes().all(base64)
        })
}
