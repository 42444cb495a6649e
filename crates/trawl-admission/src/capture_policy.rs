//! CapturePolicy.

use serde_json::Value;
use trawl_api::{CapturePolicySpec, HubbleDropTrigger, SuricataAlertTrigger};
use trawl_policy::{known_category, known_drop_reason, nearly_known_category};

use crate::{Kind, Operation, Request, Rules, capturing, findings::Findings, spec, template};

/// Whether the policy may start captures.
pub fn is_armed(object: &Value) -> bool {
    object["spec"]["armed"] == true
}

/// Whether an update disarms the policy and changes nothing else: no rule, however new, may keep it armed.
pub fn is_disarming(object: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
        spec.remove("armed");
        spec
    };
    is_armed(old) && !is_armed(object) && rest(object) == rest(old)
}

/// Judges a policy that is created or changed.
pub fn validate(rules: &Rules, request: &Request, object: &Value, findings: &mut Findings) {
    let Some(new) = spec::read::<CapturePolicySpec>(Kind::CapturePolicy, object, findings) else {
        return;
    };
    new.validate()
        .into_iter()
        .for_each(|problem| findings.take(problem));
    template::check(rules, &new, findings);
    capturing::retention(rules, new.effective_retention(), findings);
    if new.armed && request.operation == Operation::Create {
        findings.warn(
            "spec.armed",
            "the policy is created armed: the next event that matches starts a capture",
        );
    }
    capturing::tap(request.tap, findings);
    capturing::snaplen("spec.capture.snaplen", new.capture.snaplen, findings);
    capturing::pre_trigger(
        "spec.capture.preTrigger",
        new.capture.effective_pre_trigger(),
        findings,
    );
    if let Some(alert) = &new.trigger.suricata_alert {
        categories(alert, findings);
    }
    if let Some(drop) = &new.trigger.hubble_drop {
        reasons(drop, findings);
    }
}

/// Categories that no event may ever have.
fn categories(alert: &SuricataAlertTrigger, findings: &mut Findings) {
    for (index, name) in alert.categories.iter().enumerate() {
        let field = format!("spec.trigger.suricataAlert.categories[{index}]");
        match (known_category(name), nearly_known_category(name)) {
            (Some(known), _) if !alert.severities.contains(&known.severity.into()) => findings.warn(
                &field,
                &format!(
                    "its alerts have severity {} unless a rule says otherwise, and spec.trigger.suricataAlert.severities \
                     leaves that out",
                    known.severity
                ),
            ),
            (Some(_), _) => {}
            (None, Some(near)) => findings.warn(
                &field,
                &format!(
                    "upper and lower case matter: Suricata has \"{}\" ({})",
                    near.short_name, near.description
                ),
            ),
            (None, None) => findings.warn(
                &field,
                "is no classification that Suricata ships with, neither short name nor description; it matches only \
                 if the rules of the sensor define it",
            ),
        }
    }
}

/// Reasons that no event may ever have, and the two that Cilium has for what people call a denied flow.
fn reasons(drop: &HubbleDropTrigger, findings: &mut Findings) {
    for (index, reason) in drop.reasons.iter().enumerate() {
        if !known_drop_reason(reason) {
            findings.warn(
                &format!("spec.trigger.hubbleDrop.reasons[{index}]"),
                "is no drop reason of Cilium 1.19, where they look like POLICY_DENIED; it matches only if another \
                 version has it",
            );
        }
    }
    let lists = |name: &str| drop.reasons.iter().any(|reason| reason == name);
    for (listed, other, what) in [
        (
            "POLICY_DENIED",
            "POLICY_DENY",
            "flows that an explicit deny rule drops",
        ),
        ("POLICY_DENY", "POLICY_DENIED", "flows that no rule allows"),
    ] {
        if lists(listed) && !lists(other) {
            findings.warn(
                "spec.trigger.hubbleDrop.reasons",
                &format!("{listed} leaves out {what}: their reason is {other}"),
            );
        }
    }
}
