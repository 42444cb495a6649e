//! CapturePolicy.

use super::{
    node::{Node, Rule},
    shared,
};
use crate::{limits, words};

/// Text in which every brace belongs to one of the closed list of placeholders.
const TEMPLATE: &str = r"^([^{}]|\{\{ *((source|destination)\.(ip|port)|protocol|suricata\.(ruleID|severity|category)|hubble\.(dropReason|sourceNamespace|destinationNamespace)) *\}\})*$";

/// Lays the limits of CapturePolicy over its derived schema.
pub fn overlay(root: &mut Node<'_>) {
    let mut spec = root.at("spec");
    shared::local_ref(&mut spec.at("tapRef"));
    spec.at("retention").default("30d");
    shared::duration(&mut spec.at("retention"), limits::RETENTION);
    trigger(&mut spec.at("trigger"));
    bounds(&mut spec.at("capture"));
    spec.at("rateLimit.maxCapturesPerHour").range(1, 100);
    shared::duration(&mut spec.at("rateLimit.cooldown"), limits::COOLDOWN);
    for (source, other) in [("suricata", "HubbleDrop"), ("hubble", "SuricataAlert")] {
        spec.rule(
            Rule::new(
                format!(
                    r"self.trigger.type != '{other}' || !has(self.capture.filterTemplate) || !self.capture.filterTemplate.matches(r'\{{\{{ *{source}\.')"
                ),
                words::no_value(source, other),
            )
            .names(".capture.filterTemplate"),
        );
    }
    status(&mut root.at("status"));
}

fn trigger(trigger: &mut Node<'_>) {
    shared::branch(trigger, "type", "SuricataAlert", ".suricataAlert");
    shared::branch(trigger, "type", "HubbleDrop", ".hubbleDrop");

    let mut alert = trigger.at("suricataAlert");
    alert.at("severities").items(1, 4).is_set();
    alert.at("severities.[]").range(1, 4);
    alert.at("ruleIDs").items(0, limits::MAX_RULE_IDS).is_set();
    alert.at("categories").items(0, limits::MAX_LIST).is_set();
    shared::word(&mut alert.at("categories.[]"));

    let mut drop = trigger.at("hubbleDrop");
    drop.at("reasons").items(1, limits::MAX_LIST).is_set();
    shared::word(&mut drop.at("reasons.[]"));
    drop.at("sourceNamespaces").items(0, limits::MAX_LIST).is_set();
    shared::namespace(&mut drop.at("sourceNamespaces.[]"));
    drop.at("threshold.count").range(1, 10_000);
    shared::duration(&mut drop.at("threshold.window"), limits::WINDOW);
}

fn bounds(capture: &mut Node<'_>) {
    shared::duration(&mut capture.at("duration"), limits::CAPTURE_DURATION);
    shared::filter(capture, ".filterTemplate");
    capture.rule(
        Rule::new(
            format!("!has(self.filterTemplate) || self.filterTemplate.matches(r'{TEMPLATE}')"),
            words::TEMPLATE,
        )
        .names(".filterTemplate"),
    );
    shared::snaplen(&mut capture.at("snaplen"));
    shared::max_size(&mut capture.at("maxSize"));
    capture.at("preTrigger").default("0s");
    shared::duration(&mut capture.at("preTrigger"), limits::PRE_TRIGGER);
}

fn status(status: &mut Node<'_>) {
    for counter in ["observedGeneration", "totalCaptures", "activeCaptures"] {
        status.at(counter).counter();
    }
    shared::uid(&mut status.at("resolvedTapUID"));
    shared::local_ref(&mut status.at("lastCaptureRef"));
    for counter in ["matched", "notMatched", "duplicate", "rateLimited", "failed"] {
        status.at("decisions").at(counter).counter();
    }
}
