//! NetworkTap.

use serde_json::json;

use super::{
    cel,
    node::{Node, Rule},
    shared,
};

/// Lays the limits of NetworkTap over its derived schema.
pub fn overlay(root: &mut Node<'_>) {
    let mut spec = root.at("spec");
    for source in ["mirrorInterface", "nodeInterface"] {
        interface_source(&mut spec.at(source));
    }
    for analyzer in ["suricata", "zeek"] {
        self::analyzer(&mut spec.at("analyzers").at(analyzer));
    }
    shared::branch(&mut spec, "type", "MirrorInterface", ".mirrorInterface");
    shared::branch(&mut spec, "type", "NodeInterface", ".nodeInterface");
    spec.at("analyzers").rule(Rule::new(
        "self.suricata.enabled || self.zeek.enabled",
        "at least one of analyzers.suricata and analyzers.zeek must be enabled",
    ));
    shared::immutable(&mut spec, ".type", "self.type == oldSelf.type".into());
    for (source, field) in [
        ("mirrorInterface", ".mirrorInterface.interface"),
        ("nodeInterface", ".nodeInterface.interface"),
    ] {
        let unchanged = cel::unchanged_by(source, |x| format!("{x}.interface"));
        shared::immutable(&mut spec, field, unchanged);
    }
    status(&mut root.at("status"));
}

fn interface_source(node: &mut Node<'_>) {
    shared::interface(&mut node.at("interface"));
    let mut selector = node.at("nodeSelector");
    selector.set("x-kubernetes-map-type", "atomic").rule(Rule::new(
        "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
        "must not be empty: an empty nodeSelector would match every node",
    ));
    selector
        .at("matchLabels")
        .set("maxProperties", 16)
        .rule(Rule::new(
            format!("self.all(key, size(key) <= 317 && key.matches(r'{LABEL_KEY}'))"),
            "must have label keys of at most 317 characters",
        ));
    selector.at("matchLabels.{}").length(0, 63).pattern(LABEL_VALUE);
    let mut expressions = selector.at("matchExpressions");
    expressions.items(0, 16).is_atomic();
    let mut expression = expressions.at("[]");
    expression.at("key").length(1, 317).pattern(LABEL_KEY);
    expression
        .at("operator")
        .set("enum", json!(["In", "NotIn", "Exists", "DoesNotExist"]));
    expression.at("values").items(0, 64).is_atomic();
    expression.at("values.[]").length(0, 63).pattern(LABEL_VALUE);
    expression.rule(
        Rule::new(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "must be given for In and NotIn, and only for them",
        )
        .names(".values"),
    );
}

const LABEL_VALUE: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";
const LABEL_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$";
/// A repository, with or without a registry, and a digest; no tag.
const PINNED: &str = r"^([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*@sha256:[a-f0-9]{64}$";

fn analyzer(node: &mut Node<'_>) {
    let mut resources = node.at("resources");
    for list in ["requests", "limits"] {
        resources.at(list).set("maxProperties", 16);
    }
    resources.at("claims").items(0, 16).is_map("name");
    resources.at("claims.[].name").length(1, 63);
    resources.at("claims.[].request").length(0, 63);
    node.at("customContent.reference").length(1, 512).pattern(PINNED);
    for (resource, field) in [("cpu", ".resources"), ("memory", ".resources")] {
        let both = |x: &str| format!("has({x}.resources.{{}}) && '{resource}' in {x}.resources.{{}}");
        let present = |list: &str| both("self").replace("{}", list);
        node.rule(
            Rule::new(
                format!(
                    "!self.enabled || (has(self.resources) && {} && {})",
                    present("requests"),
                    present("limits")
                ),
                format!(
                    "an enabled analyzer needs resources.requests.{resource} and resources.limits.{resource}"
                ),
            )
            .names(field)
            .required(),
        );
        let value = |list: &str| cel::quantity(&format!("self.resources.{list}['{resource}']"));
        node.rule(
            Rule::new(
                format!(
                    "!has(self.resources) || !({} && {}) || {}.compareTo({}) <= 0",
                    present("requests"),
                    present("limits"),
                    value("requests"),
                    value("limits")
                ),
                format!("requests.{resource} must not exceed limits.{resource}"),
            )
            .names(field),
        );
    }
}

fn status(status: &mut Node<'_>) {
    for counter in ["observedGeneration", "matchedTargets", "readyTargets"] {
        status.at(counter).counter();
    }
    let mut targets = status.at("targets");
    targets.items(0, 1024).is_map("nodeName");
    let mut target = targets.at("[]");
    shared::name(&mut target.at("nodeName"));
    shared::interface(&mut target.at("interface"));
    shared::local_ref(&mut target.at("podRef"));
    target.at("reporterInstance").length(1, 253);
    for counter in [
        "packetsObserved",
        "kernelDrops",
        "bytesObserved",
        "rejectedRecords",
    ] {
        target.at(counter).counter();
    }
    let mut analyzers = target.at("analyzers");
    analyzers.items(0, 2).is_map("name");
    let mut analyzer = analyzers.at("[]");
    analyzer.at("version").length(0, 64);
    shared::sha256_form(&mut analyzer.at("customContentDigest"));
    analyzer.at("reason").bytes(256);
}
