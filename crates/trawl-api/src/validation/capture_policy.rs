//! CapturePolicy.

use std::time::Duration;

use super::{
    FieldProblem,
    checks::{self, Problems},
};
use crate::{
    CaptureBounds, CapturePolicySpec, HubbleDropTrigger, SuricataAlertTrigger, Trigger, TriggerType, limits,
};

impl CapturePolicySpec {
    /// Every rule that this spec breaks; empty when it is sound. Whether the filter that
    /// the template becomes compiles is not looked at.
    pub fn validate(&self) -> Vec<FieldProblem> {
        let mut problems = Problems::default();
        problems.name("spec.tapRef.name", &self.tap_ref.name);
        trigger(&mut problems, &self.trigger);
        bounds(&mut problems, &self.capture);
        template(&mut problems, self);
        problems.optional_duration("spec.retention", self.retention.as_ref(), limits::RETENTION);
        problems.range(
            "spec.rateLimit.maxCapturesPerHour",
            self.rate_limit.max_captures_per_hour,
            1,
            100,
        );
        problems.duration(
            "spec.rateLimit.cooldown",
            &self.rate_limit.cooldown,
            limits::COOLDOWN,
        );
        problems.into_vec()
    }

    /// How long artifacts are kept; the default where the spec says nothing.
    pub fn effective_retention(&self) -> Duration {
        self.retention.as_ref().map_or(limits::RETENTION.max, |r| r.get())
    }
}

impl CaptureBounds {
    /// How far before the event a capture begins; the default where the spec says nothing.
    pub fn effective_pre_trigger(&self) -> Duration {
        self.pre_trigger.as_ref().map_or(Duration::ZERO, |p| p.get())
    }
}

fn trigger(problems: &mut Problems, trigger: &Trigger) {
    for (type_, present, field) in [
        (
            TriggerType::SuricataAlert,
            trigger.suricata_alert.is_some(),
            "spec.trigger.suricataAlert",
        ),
        (
            TriggerType::HubbleDrop,
            trigger.hubble_drop.is_some(),
            "spec.trigger.hubbleDrop",
        ),
    ] {
        let tag = format!("spec.trigger.type is {type_:?}");
        problems.branch(present, trigger.type_ == type_, field, &tag);
    }
    if let Some(alert) = &trigger.suricata_alert {
        suricata(problems, alert);
    }
    if let Some(drop) = &trigger.hubble_drop {
        hubble(problems, drop);
    }
}

fn suricata(problems: &mut Problems, alert: &SuricataAlertTrigger) {
    let field = "spec.trigger.suricataAlert";
    problems.one_to(&format!("{field}.severities"), &alert.severities, 1, 4);
    for (index, severity) in alert.severities.iter().enumerate() {
        problems.range(&format!("{field}.severities[{index}]"), *severity, 1, 4);
    }
    problems.one_to(
        &format!("{field}.ruleIDs"),
        &alert.rule_ids,
        0,
        limits::MAX_RULE_IDS,
    );
    words(problems, &format!("{field}.categories"), &alert.categories, 0);
}

fn hubble(problems: &mut Problems, drop: &HubbleDropTrigger) {
    let field = "spec.trigger.hubbleDrop";
    words(problems, &format!("{field}.reasons"), &drop.reasons, 1);
    let namespaces = format!("{field}.sourceNamespaces");
    problems.one_to(&namespaces, &drop.source_namespaces, 0, limits::MAX_LIST);
    for (index, namespace) in drop.source_namespaces.iter().enumerate() {
        problems.require(
            checks::is_label(namespace),
            format!("{namespaces}[{index}]"),
            "must be the name of a namespace",
        );
    }
    if let Some(threshold) = &drop.threshold {
        problems.range(&format!("{field}.threshold.count"), threshold.count, 1, 10_000);
        problems.duration(
            &format!("{field}.threshold.window"),
            &threshold.window,
            limits::WINDOW,
        );
    }
}

fn words(problems: &mut Problems, field: &str, list: &[String], min: usize) {
    problems.one_to(field, list, min, limits::MAX_LIST);
    let max = limits::MAX_WORD;
    for (index, word) in list.iter().enumerate() {
        let holds = (1..=max).contains(&word.len()) && word.bytes().all(|b| (0x20..=0x7e).contains(&b));
        problems.require(
            holds,
            format!("{field}[{index}]"),
            format!("must be 1 to {max} bytes of printable ASCII"),
        );
    }
}

fn bounds(problems: &mut Problems, capture: &CaptureBounds) {
    problems.duration(
        "spec.capture.duration",
        &capture.duration,
        limits::CAPTURE_DURATION,
    );
    problems.filter("spec.capture.filterTemplate", capture.filter_template.as_deref());
    problems.snaplen("spec.capture.snaplen", capture.snaplen);
    problems.max_size("spec.capture.maxSize", &capture.max_size);
    problems.optional_duration(
        "spec.capture.preTrigger",
        capture.pre_trigger.as_ref(),
        limits::PRE_TRIGGER,
    );
}

/// Placeholders that have a value for every trigger.
const FLOW_PLACEHOLDERS: [&str; 5] = [
    "source.ip",
    "source.port",
    "destination.ip",
    "destination.port",
    "protocol",
];
const SURICATA_PLACEHOLDERS: [&str; 3] = ["suricata.ruleID", "suricata.severity", "suricata.category"];
const HUBBLE_PLACEHOLDERS: [&str; 3] = [
    "hubble.dropReason",
    "hubble.sourceNamespace",
    "hubble.destinationNamespace",
];

fn template(problems: &mut Problems, spec: &CapturePolicySpec) {
    let field = "spec.capture.filterTemplate";
    let special = match spec.trigger.type_ {
        TriggerType::SuricataAlert => SURICATA_PLACEHOLDERS,
        TriggerType::HubbleDrop => HUBBLE_PLACEHOLDERS,
    };
    let mut rest = spec.capture.filter_template.as_deref().unwrap_or_default();
    while let Some(start) = rest.find(['{', '}']) {
        let inner = rest[start..]
            .strip_prefix("{{")
            .and_then(|tail| tail.split_once("}}"));
        let Some((name, tail)) = inner else {
            return problems.add(field, "must have braces only around placeholders");
        };
        let name = name.trim_matches(' ');
        if !FLOW_PLACEHOLDERS.contains(&name) && !special.contains(&name) {
            return problems.add(
                field,
                "must use only placeholders that the trigger has a value for",
            );
        }
        rest = tail;
    }
}
