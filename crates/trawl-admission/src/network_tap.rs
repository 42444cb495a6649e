//! NetworkTap.

use serde_json::Value;
use trawl_api::NetworkTapSpec;

use crate::{Kind, findings::Findings, spec};

/// Judges a tap that is created or changed.
pub fn validate(object: &Value, old: Option<&Value>, findings: &mut Findings) {
    let Some(new) = spec::read::<NetworkTapSpec>(Kind::NetworkTap, object, findings) else {
        return;
    };
    new.validate()
        .into_iter()
        .for_each(|problem| findings.take(problem));
    if let Some(old) = old {
        immutable(&new, object, old, findings);
    }
    for (name, analyzer) in [
        ("suricata", &new.analyzers.suricata),
        ("zeek", &new.analyzers.zeek),
    ] {
        if !analyzer.enabled && analyzer.custom_content.is_some() {
            findings.warn(
                &format!("spec.analyzers.{name}.customContent"),
                "has no effect while the analyzer is not enabled",
            );
        }
    }
}

/// Counters, conditions and evidence belong to one interface.
fn immutable(new: &NetworkTapSpec, object: &Value, old: &Value, findings: &mut Findings) {
    const MESSAGE: &str = "is immutable: another interface is another tap; delete this one and create that";
    if object["spec"]["type"] != old["spec"]["type"] {
        findings.problem("spec.type", MESSAGE);
        return;
    }
    let field = match new.type_ {
        trawl_api::TapType::MirrorInterface => "mirrorInterface",
        trawl_api::TapType::NodeInterface => "nodeInterface",
    };
    if object["spec"][field]["interface"] != old["spec"][field]["interface"] {
        findings.problem(format!("spec.{field}.interface"), MESSAGE);
    }
}
