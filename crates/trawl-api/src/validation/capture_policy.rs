//! CapturePolicy.

use std::time::Duration;

use super::{FieldProblem, checks::Problems};
use crate::{
    CaptureBounds, CapturePolicySpec, HubbleDropTrigger, SuricataAlertTrigger, Trigger, TriggerType, limits,
    words,
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
        let wanted = trigger.type_ == type_;
        problems.branch(present, wanted, field, "type", &format!("{type_:?}"));
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
    problems.set(&format!("{field}.severities"), &alert.severities, 1, 4);
    for (index, severity) in alert.severities.iter().enumerate() {
        problems.range(&format!("{field}.severities[{index}]"), *severity, 1, 4);
    }
    problems.set(
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
    problems.set(&namespaces, &drop.source_namespaces, 0, limits::MAX_LIST);
    for (index, namespace) in drop.source_namespaces.iter().enumerate() {
        problems.namespace(format!("{namespaces}[{index}]"), namespace);
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
    problems.set(field, list, min, limits::MAX_LIST);
    for (index, word) in list.iter().enumerate() {
        problems.word(format!("{field}[{index}]"), word);
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
    let event = format!("{:?}", spec.trigger.type_);
    let foreign = match spec.trigger.type_ {
        TriggerType::SuricataAlert => "hubble",
        TriggerType::HubbleDrop => "suricata",
    };
    let mut has_value = true;
    let mut rest = spec.capture.filter_template.as_deref().unwrap_or_default();
    while let Some(start) = rest.find(['{', '}']) {
        let inner = rest[start..]
            .strip_prefix("{{")
            .and_then(|tail| tail.split_once("}}"));
        let known = inner.map(|(name, _)| name.trim_matches(' ')).filter(|name| {
            [
                &FLOW_PLACEHOLDERS[..],
                &SURICATA_PLACEHOLDERS,
                &HUBBLE_PLACEHOLDERS,
            ]
            .iter()
            .any(|list| list.contains(name))
        });
        let (Some(name), Some((_, tail))) = (known, inner) else {
            problems.add(field, words::TEMPLATE);
            break;
        };
        has_value &= !name.starts_with(foreign);
        rest = tail;
    }
    problems.require(has_value, field, words::no_value(foreign, &event));
}
