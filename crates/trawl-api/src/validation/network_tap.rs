//! NetworkTap.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::ResourceRequirements,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::LabelSelector},
};

use super::{
    FieldProblem,
    checks::{self, Problems},
};
use crate::{AnalyzerConfig, InterfaceSource, NetworkTapSpec, TapType, quantities::nanos};

impl NetworkTapSpec {
    /// Every rule that this spec breaks; empty when it is sound.
    pub fn validate(&self) -> Vec<FieldProblem> {
        let mut problems = Problems::default();
        for (type_, source, field) in [
            (
                TapType::MirrorInterface,
                &self.mirror_interface,
                "spec.mirrorInterface",
            ),
            (TapType::NodeInterface, &self.node_interface, "spec.nodeInterface"),
        ] {
            problems.branch(
                source.is_some(),
                self.type_ == type_,
                field,
                &format!("spec.type is {type_:?}"),
            );
            if let Some(source) = source {
                interface_source(&mut problems, field, source);
            }
        }
        let (suricata, zeek) = (&self.analyzers.suricata, &self.analyzers.zeek);
        problems.require(
            suricata.enabled || zeek.enabled,
            "spec.analyzers",
            "at least one of suricata and zeek must be enabled",
        );
        analyzer(&mut problems, "spec.analyzers.suricata", suricata);
        analyzer(&mut problems, "spec.analyzers.zeek", zeek);
        problems.into_vec()
    }

    /// The source that `type` selects, or `None` when a stored object lacks it.
    pub fn source(&self) -> Option<&InterfaceSource> {
        match self.type_ {
            TapType::MirrorInterface => self.mirror_interface.as_ref(),
            TapType::NodeInterface => self.node_interface.as_ref(),
        }
    }
}

fn interface_source(problems: &mut Problems, field: &str, source: &InterfaceSource) {
    problems.interface(&format!("{field}.interface"), &source.interface);
    let field = format!("{field}.nodeSelector");
    problems.require(!is_empty(&source.node_selector), &field, "must not be empty");
    for (key, value) in source.node_selector.match_labels.iter().flatten() {
        let holds = is_label_key(key) && is_label_value(value);
        problems.require(
            holds,
            format!("{field}.matchLabels"),
            "must hold label keys and label values",
        );
    }
    for (index, expression) in source
        .node_selector
        .match_expressions
        .iter()
        .flatten()
        .enumerate()
    {
        let field = format!("{field}.matchExpressions[{index}]");
        problems.require(
            is_label_key(&expression.key),
            format!("{field}.key"),
            "must be a label key",
        );
        let given = expression.values.as_ref().is_some_and(|v| !v.is_empty());
        match expression.operator.as_str() {
            "In" | "NotIn" => {
                problems.require(given, format!("{field}.values"), "must be given for In and NotIn")
            }
            "Exists" | "DoesNotExist" => {
                problems.require(
                    !given,
                    format!("{field}.values"),
                    "must be given only for In and NotIn",
                );
            }
            _ => problems.add(
                format!("{field}.operator"),
                "must be In, NotIn, Exists or DoesNotExist",
            ),
        }
    }
}

fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(checks::is_subdomain) && !name.is_empty() && is_label_value(name)
}

fn is_label_value(value: &str) -> bool {
    let ends = |b: Option<u8>| b.is_none_or(|b| b.is_ascii_alphanumeric());
    value.len() <= 63
        && ends(value.bytes().next())
        && ends(value.bytes().last())
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn analyzer(problems: &mut Problems, field: &str, config: &AnalyzerConfig) {
    resources(problems, field, config);
    if let Some(content) = &config.custom_content {
        let pinned = content
            .reference
            .split_once('@')
            .is_some_and(|(repository, digest)| {
                let last = repository.rsplit('/').next().unwrap_or_default();
                !last.is_empty()
                    && !last.contains(':')
                    && content.reference.len() <= 512
                    && checks::is_sha256_form(digest)
            });
        problems.require(
            pinned,
            format!("{field}.customContent.reference"),
            "must be repository@sha256:<64 hex digits>, without a tag",
        );
    }
}

fn resources(problems: &mut Problems, field: &str, config: &AnalyzerConfig) {
    let empty = ResourceRequirements::default();
    let resources = config.resources.as_ref().unwrap_or(&empty);
    for name in ["cpu", "memory"] {
        let request = amount(&resources.requests, name);
        let limit = amount(&resources.limits, name);
        for (list, amount) in [("requests", request), ("limits", limit)] {
            let field = format!("{field}.resources.{list}.{name}");
            match amount {
                None => problems.require(!config.enabled, field, "is required when the analyzer is enabled"),
                Some(None) => problems.add(field, "must be a Kubernetes quantity"),
                Some(Some(_)) => {}
            }
        }
        if let (Some(Some(request)), Some(Some(limit))) = (request, limit) {
            let field = format!("{field}.resources.requests.{name}");
            problems.require(request <= limit, field, format!("must not exceed limits.{name}"));
        }
    }
}

/// The amount of a resource: absent, unreadable, or in units of 10^-9.
fn amount(list: &Option<BTreeMap<String, Quantity>>, name: &str) -> Option<Option<u128>> {
    Some(nanos(&list.as_ref()?.get(name)?.0))
}
