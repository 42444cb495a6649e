//! Validation of a stored spec, for objects that were stored before or around admission.

use std::time::Duration;

use trawl_api::{CaptureJobSpec, FailureReason, RequestType};

/// One broken rule: the field, the limit, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecProblem {
    pub field: &'static str,
    pub rule: &'static str,
}

impl SpecProblem {
    /// The failure that a capture with this problem ends in.
    pub fn failure(&self) -> FailureReason {
        if self.field == "spec.filter" { FailureReason::InvalidFilter } else { FailureReason::InvalidBounds }
    }
}

const MIB: u64 = 1 << 20;
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// Every rule of the contract that is broken.
pub fn check_spec(spec: &CaptureJobSpec) -> Vec<SpecProblem> {
    let mut found = Vec::new();
    let mut rule = |ok: bool, field, rule| {
        if !ok {
            found.push(SpecProblem { field, rule });
        }
    };
    let duration = spec.duration.get();
    rule(!spec.tap_ref.name.is_empty(), "spec.tapRef.name", "must name a NetworkTap");
    rule((Duration::from_secs(1)..=HOUR).contains(&duration), "spec.duration", "must be 1s to 1h");
    rule(
        spec.snaplen == 0 || (64..=262_144).contains(&spec.snaplen),
        "spec.snaplen",
        "must be 0 or 64 to 262144",
    );
    rule((MIB..=1024 * MIB).contains(&spec.max_size.bytes()), "spec.maxSize", "must be 1Mi to 1Gi");
    if let Some(retention) = &spec.retention {
        rule((HOUR..=30 * DAY).contains(&retention.get()), "spec.retention", "must be 1h to 30d");
    }
    if let Some(pre) = &spec.pre_trigger {
        rule(pre.get() <= Duration::from_secs(300), "spec.preTrigger", "must be 0s to 5m");
    }
    if let Some(filter) = &spec.filter {
        rule(filter.len() <= 1024, "spec.filter", "must be at most 1024 bytes");
        rule(
            filter.bytes().all(|b| (0x20..0x7f).contains(&b)),
            "spec.filter",
            "must be printable ASCII without line breaks",
        );
    }
    match spec.request_type {
        RequestType::Manual => {
            rule(spec.target_node.is_some(), "spec.targetNode", "is required for a Manual request");
            rule(spec.policy_ref.is_none(), "spec.policyRef", "is for Policy requests only");
            rule(spec.trigger.is_none(), "spec.trigger", "is for Policy requests only");
            rule(spec.deduplication_key.is_none(), "spec.deduplicationKey", "is for Policy requests only");
        }
        RequestType::Policy => {
            rule(spec.policy_ref.is_some(), "spec.policyRef", "is required for a Policy request");
            rule(spec.trigger.is_some(), "spec.trigger", "is required for a Policy request");
            rule(spec.deduplication_key.is_some(), "spec.deduplicationKey", "is required for a Policy request");
        }
    }
    found
}

/// All problems in one sentence.
pub(super) fn describe(problems: &[SpecProblem]) -> String {
    problems.iter().map(|p| format!("{} {}", p.field, p.rule)).collect::<Vec<_>>().join("; ")
}
