//! NetworkTap.

use serde_json::json;

use super::{
    Kind, cel,
    node::{Node, Rule},
    shared,
};
use crate::{limits, words};

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
        words::ANALYZERS,
    ));
    shared::immutable(
        &mut spec,
        Kind::NetworkTap,
        ".type",
        "self.type == oldSelf.type".into(),
    );
    for (source, field) in [
        ("mirrorInterface", ".mirrorInterface.interface"),
        ("nodeInterface", ".nodeInterface.interface"),
    ] {
        let unchanged = cel::unchanged_by(source, |x| format!("{x}.interface"));
        shared::immutable(&mut spec, Kind::NetworkTap, field, unchanged);
    }
    status(&mut root.at("status"));
}

fn interface_source(node: &mut Node<'_>) {
    shared::interface(&mut node.at("interface"));
    let mut selector = node.at("nodeSelector");
    selector.set("x-kubernetes-map-type", "atomic").rule(Rule::new(
        "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
        words::SELECTOR,
    ));
    selector
        .at("matchLabels")
        .set("maxProperties", limits::MAX_SELECTOR)
        .rule(Rule::new(
            format!("self.all(key, {})", label_key("key")),
            words::LABEL_KEYS,
        ));
    selector
        .at("matchLabels.{}")
        .form(63, LABEL_VALUE, words::LABEL_VALUE);
    let mut expressions = selector.at("matchExpressions");
    expressions.items(0, limits::MAX_SELECTOR).is_atomic();
    let mut expression = expressions.at("[]");
    expression
        .at("key")
        .length(0, 317)
        .rule(Rule::new(label_key("self"), words::LABEL_KEY));
    expression
        .at("operator")
        .set("enum", json!(["In", "NotIn", "Exists", "DoesNotExist"]));
    expression.at("values").items(0, limits::MAX_VALUES).is_atomic();
    expression
        .at("values.[]")
        .form(63, LABEL_VALUE, words::LABEL_VALUE);
    expression.rule(
        Rule::new(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            words::IN_REQUIRED,
        )
        .names(".values"),
    );
}

const LABEL_VALUE: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";
const LABEL_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";

/// Whether `field` is a label key; a domain may have 253 characters and regular expressions cannot count them.
fn label_key(field: &str) -> String {
    format!("{field}.matches(r'{LABEL_KEY}') && {field}.indexOf('/') <= 253")
}

/// A repository, with or without a registry, and a digest; no tag.
const PINNED: &str = r"^([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*@sha256:[a-f0-9]{64}$";

fn analyzer(node: &mut Node<'_>) {
    let mut resources = node.at("resources");
    for list in ["requests", "limits"] {
        resources.at(list).set("maxProperties", limits::MAX_SELECTOR);
    }
    resources
        .at("claims")
        .items(0, limits::MAX_SELECTOR)
        .is_map("name");
    resources.at("claims.[].name").length(1, 63);
    resources.at("claims.[].request").length(0, 63);
    node.at("customContent.reference")
        .form(limits::MAX_REFERENCE, PINNED, words::PINNED);
    for resource in ["cpu", "memory"] {
        amounts(node, resource);
    }
}

/// Rules about one resource of an analyzer. What is no quantity is refused by the pattern and left alone here.
fn amounts(node: &mut Node<'_>, resource: &str) {
    let resources = ".resources";
    let present = |list: &str| format!("has(self.resources.{list}) && '{resource}' in self.resources.{list}");
    let field = |list: &str| format!("self.resources.{list}['{resource}']");
    let both = format!("{} && {}", present("requests"), present("limits"));
    node.rule(
        Rule::new(
            format!("!self.enabled || (has(self.resources) && {both})"),
            words::needs_resource(resource),
        )
        .names(resources)
        .required(),
    );
    for list in ["requests", "limits"] {
        let (readable, amount) = (cel::is_quantity(&field(list)), cel::quantity(&field(list)));
        node.rule(
            Rule::new(
                format!(
                    "!has(self.resources) || !({}) || !{readable} || {amount}.compareTo(quantity('0')) >= 0",
                    present(list)
                ),
                words::not_negative(list, resource),
            )
            .names(resources),
        );
    }
    let (request, limit) = (field("requests"), field("limits"));
    node.rule(
        Rule::new(
            format!(
                "!self.enabled || !has(self.resources) || !({both}) || !{} || !{} || {}.compareTo({}) <= 0",
                cel::is_quantity(&request),
                cel::is_quantity(&limit),
                cel::quantity(&request),
                cel::quantity(&limit)
            ),
            words::not_above_limit(resource),
        )
        .names(resources),
    );
}

fn status(status: &mut Node<'_>) {
    for counter in ["observedGeneration", "matchedTargets", "readyTargets"] {
        status.at(counter).counter();
    }
    let mut targets = status.at("targets");
    targets.items(0, 1024).is_map("nodeName");
    let mut target = targets.at("[]");
    shared::reported_name(&mut target.at("nodeName"));
    shared::reported_interface(&mut target.at("interface"));
    shared::reported_name(&mut target.at("podRef.name"));
    target.at("podRef").set("x-kubernetes-map-type", "atomic");
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
    shared::reported_sha256_form(&mut analyzer.at("customContentDigest"));
    analyzer.at("reason").bytes(256);
}
