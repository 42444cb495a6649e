//! NetworkTap.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::ResourceRequirements,
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
    },
};

use super::{
    FieldProblem,
    checks::{self, Problems},
};
use crate::{AnalyzerConfig, InterfaceSource, NetworkTapSpec, TapType, limits, quantities::nanos, words};

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
            let wanted = self.type_ == type_;
            problems.branch(source.is_some(), wanted, field, "type", &format!("{type_:?}"));
            if let Some(source) = source {
                interface_source(&mut problems, field, source);
            }
        }
        let (suricata, zeek) = (&self.analyzers.suricata, &self.analyzers.zeek);
        problems.require(
            suricata.enabled || zeek.enabled,
            "spec.analyzers",
            words::ANALYZERS,
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
    selector(problems, &format!("{field}.nodeSelector"), &source.node_selector);
}

fn selector(problems: &mut Problems, field: &str, selector: &LabelSelector) {
    let labels = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.as_deref().unwrap_or_default();
    let empty = labels.clone().next().is_none() && expressions.is_empty();
    problems.require(!empty, field, words::SELECTOR);

    let field_of_labels = format!("{field}.matchLabels");
    problems.entries(&field_of_labels, labels.clone().count(), 0, limits::MAX_SELECTOR);
    let mut keys = true;
    for (key, value) in labels {
        keys &= is_label_key(key);
        // The key is the way to the value; a key that is none would make the path unreadable.
        if is_label_key(key) {
            problems.require(
                is_label_value(value),
                format!("{field_of_labels}.{key}"),
                words::LABEL_VALUE,
            );
        }
    }
    problems.require(keys, field_of_labels, words::LABEL_KEYS);

    let field = format!("{field}.matchExpressions");
    problems.entries(&field, expressions.len(), 0, limits::MAX_SELECTOR);
    for (index, expression) in expressions.iter().enumerate() {
        self::expression(problems, &format!("{field}[{index}]"), expression);
    }
}

fn expression(problems: &mut Problems, field: &str, expression: &LabelSelectorRequirement) {
    problems.require(
        is_label_key(&expression.key),
        format!("{field}.key"),
        words::LABEL_KEY,
    );
    let values = expression.values.as_deref().unwrap_or_default();
    let wanted = match expression.operator.as_str() {
        "In" | "NotIn" => true,
        "Exists" | "DoesNotExist" => false,
        _ => {
            return problems.add(
                format!("{field}.operator"),
                "must be In, NotIn, Exists or DoesNotExist",
            );
        }
    };
    let field = format!("{field}.values");
    problems.require(wanted != values.is_empty(), &field, words::IN_REQUIRED);
    problems.entries(&field, values.len(), 0, limits::MAX_VALUES);
    for (index, value) in values.iter().enumerate() {
        problems.require(
            is_label_value(value),
            format!("{field}[{index}]"),
            words::LABEL_VALUE,
        );
    }
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
        problems.require(
            is_pinned(&content.reference),
            format!("{field}.customContent.reference"),
            words::PINNED,
        );
    }
}

/// A repository, with or without a registry, and a digest; no tag.
fn is_pinned(reference: &str) -> bool {
    let Some((repository, digest)) = reference.split_once('@') else {
        return false;
    };
    let part = |part: &str| {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        part.bytes().next().is_some_and(plain)
            && part.bytes().last().is_some_and(plain)
            && part.bytes().all(|b| plain(b) || b"._-".contains(&b))
    };
    let registry = |text: &str| {
        let (host, port) = text.split_once(':').unwrap_or((text, "0"));
        host.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
            && host
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b))
            && (1..=5).contains(&port.len())
            && port.bytes().all(|b| b.is_ascii_digit())
    };
    let repository = match repository.split_once('/') {
        Some((first, rest)) => (part(first) || registry(first)) && rest.split('/').all(part),
        None => part(repository),
    };
    reference.len() <= limits::MAX_REFERENCE && repository && checks::is_sha256_form(digest)
}

fn resources(problems: &mut Problems, field: &str, config: &AnalyzerConfig) {
    let empty = ResourceRequirements::default();
    let resources = config.resources.as_ref().unwrap_or(&empty);
    let field = format!("{field}.resources");
    for (list, amounts) in [("requests", &resources.requests), ("limits", &resources.limits)] {
        let count = amounts.as_ref().map_or(0, BTreeMap::len);
        problems.entries(&format!("{field}.{list}"), count, 0, limits::MAX_SELECTOR);
        for (name, amount) in amounts.iter().flatten() {
            let readable = nanos(&amount.0).is_some();
            problems.require(readable, format!("{field}.{list}.{name}"), words::QUANTITY);
        }
    }
    let claims = resources.claims.as_ref().map_or(0, Vec::len);
    problems.entries(&format!("{field}.claims"), claims, 0, limits::MAX_SELECTOR);
    if !config.enabled {
        return;
    }
    for name in ["cpu", "memory"] {
        let request = amount(&resources.requests, name);
        let limit = amount(&resources.limits, name);
        let both = request.is_some() && limit.is_some();
        problems.require(both, &field, words::needs_resource(name));
        if let (Some(Some(request)), Some(Some(limit))) = (request, limit) {
            problems.require(request <= limit, &field, words::not_above_limit(name));
        }
    }
}

/// The amount of a resource: absent, unreadable, or in units of 10^-9.
fn amount(list: &Option<BTreeMap<String, Quantity>>, name: &str) -> Option<Option<u128>> {
    Some(nanos(&list.as_ref()?.get(name)?.0))
}
