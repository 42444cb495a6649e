//! PortMirror.

use serde_json::Value;
use trawl_api::PortMirrorSpec;

use crate::{Kind, Rules, findings::Findings, spec};

/// Judges a mirror that is created or changed.
pub fn validate(rules: &Rules, object: &Value, old: Option<&Value>, findings: &mut Findings) {
    let Some(new) = spec::read::<PortMirrorSpec>(Kind::PortMirror, object, findings) else {
        return;
    };
    new.validate()
        .into_iter()
        .for_each(|problem| findings.take(problem));
    if let Some(old) = old {
        immutable(object, old, findings);
    }
    if rules.providers.contains(&new.provider) {
        findings.warn(
            "spec.provider",
            "no driver of this version of Trawl acts on it yet: the mirror is stored, and no device is configured",
        );
    } else {
        let known: Vec<String> = rules.providers.iter().map(|p| format!("{p:?}")).collect();
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(", ")
        };
        findings.problem(
            "spec.provider",
            format!("has no driver in this installation; providers with a driver: {known}"),
        );
    }
}

/// Deleting a mirror reverts the device that it points at, so it must point at the one that it configured.
fn immutable(object: &Value, old: &Value, findings: &mut Findings) {
    for field in ["provider", "deviceRef"] {
        if object["spec"][field] != old["spec"][field] {
            findings.problem(
                format!("spec.{field}"),
                "is immutable: the device that was configured would keep mirroring; delete the PortMirror, which \
                 reverts its device, and create another",
            );
        }
    }
}
