//! Shapes that several kinds share.

use serde_json::json;

use super::{
    Kind, cel,
    node::{Node, Rule},
};
use crate::{
    MAX_MESSAGE_BYTES,
    conditions::MAX_REASON_BYTES,
    limits::{self, DurationRange},
    words,
};

const DNS_SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const DNS_LABEL: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// What the kernel accepts and every tool prints unharmed; never `.` or `..`.
const INTERFACE: &str = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$";
const WORD: &str = r"^[\x20-\x7e]+$";
const SHA256: &str = r"^[a-f0-9]{64}$";
const SHA256_FORM: &str = r"^sha256:[a-f0-9]{64}$";
/// A quantity with at most six decimal places and no suffix below `m`.
const SIZE: &str = r"^\+?([0-9]{1,16}(\.[0-9]{0,6})?|\.[0-9]{1,6})([KMGTPE]i|[mkMGTPE]|[eE]\+?[0-9]{1,2})?$";

/// Name of an object or node.
pub fn name(node: &mut Node<'_>) {
    node.form(limits::MAX_NAME, DNS_SUBDOMAIN, words::name());
}

/// Name of a node in a long list that only Trawl writes.
pub fn reported_name(node: &mut Node<'_>) {
    node.length(1, limits::MAX_NAME).pattern(DNS_SUBDOMAIN);
}

/// Reference to an object in the same namespace.
pub fn local_ref(node: &mut Node<'_>) {
    name(&mut node.at("name"));
    node.set("x-kubernetes-map-type", "atomic");
}

/// Namespace.
pub fn namespace(node: &mut Node<'_>) {
    node.form(63, DNS_LABEL, words::namespace());
}

/// UID of an object.
pub fn uid(node: &mut Node<'_>) {
    node.length(1, limits::MAX_UID);
}

/// Linux interface name.
pub fn interface(node: &mut Node<'_>) {
    node.form(limits::MAX_INTERFACE, INTERFACE, words::interface());
}

/// Linux interface name in a status.
pub fn reported_interface(node: &mut Node<'_>) {
    node.length(1, limits::MAX_INTERFACE).pattern(INTERFACE);
}

/// A word of another system, such as a category: printable ASCII.
pub fn word(node: &mut Node<'_>) {
    node.form(limits::MAX_WORD, WORD, words::word());
}

/// A word that comes out of recorded traffic. The rule stands on the parent, because the API server repeats the value
/// of a field that breaks a rule of its own.
pub fn recorded_word(parent: &mut Node<'_>, field: &'static str) {
    let name = field.trim_start_matches('.');
    parent.at(name).length(0, limits::MAX_WORD);
    parent.rule(
        Rule::new(
            format!("!has(self.{name}) || self.{name}.matches(r'{WORD}')"),
            words::word(),
        )
        .names(field),
    );
}

/// Lower-case hex of a SHA-256.
pub fn sha256(node: &mut Node<'_>) {
    node.length(64, 64).pattern(SHA256);
}

/// `sha256:` and the hex.
pub fn sha256_form(node: &mut Node<'_>) {
    node.form(71, SHA256_FORM, words::SHA256_FORM);
}

/// `sha256:` and the hex, in a status.
pub fn reported_sha256_form(node: &mut Node<'_>) {
    node.length(71, 71).pattern(SHA256_FORM);
}

/// A duration within `range`.
pub fn duration(node: &mut Node<'_>, range: DurationRange) {
    let rule = format!(
        "self.matches(r'{}') && {}",
        cel::DURATION_PATTERN,
        cel::within("self", range)
    );
    node.length(0, limits::MAX_DURATION_TEXT)
        .rule(Rule::new(rule, words::duration(range)));
}

/// `snaplen`: whole packets, or a length.
pub fn snaplen(node: &mut Node<'_>) {
    let (min, max) = (limits::MIN_SNAPLEN, limits::MAX_SNAPLEN);
    node.range(0, max.into())
        .rule(Rule::new(format!("self == 0 || self >= {min}"), words::snaplen()));
}

/// `maxSize`: a quantity of whole bytes within the limits. `isInteger()` is false for `1.5Mi`, so the nearest whole
/// number is taken away instead. The pattern leaves out what could be finer than a quantity can hold and would be
/// rounded: whatever is accepted here must be readable by [`crate::ByteSize`], or no watcher could read the kind.
pub fn max_size(node: &mut Node<'_>) {
    let value = cel::quantity("self");
    node.pattern(SIZE).rule(Rule::new(
        format!(
            "isQuantity(string(self)) && {value}.compareTo(quantity('1Mi')) >= 0 && {value}.compareTo(quantity('1Gi')) <= 0 && {value}.sub(int({value}.asApproximateFloat() + 0.5)).compareTo(quantity('0')) == 0"
        ),
        words::max_size(),
    ));
}

/// A time that every client can represent; formats let more through.
pub fn time(node: &mut Node<'_>) {
    node.rule(Rule::new(
        "self >= timestamp('1970-01-01T00:00:00Z') && self < timestamp('9999-01-01T00:00:00Z')",
        words::TIME,
    ));
}

/// A filter or a filter template: printable ASCII, which cannot hide anything from a reader. The rules stand on the
/// parent, because a refusal by the field's own rule or pattern would repeat the text.
pub fn filter(parent: &mut Node<'_>, field: &'static str) {
    let name = field.trim_start_matches('.');
    let max = limits::MAX_FILTER;
    parent.at(name).set("maxLength", max);
    for (holds, message) in [
        (format!("size(bytes(self.{name})) <= {max}"), words::filter_size()),
        (
            format!(r"self.{name}.matches(r'^[\x20-\x7e]*$')"),
            words::PRINTABLE.to_owned(),
        ),
    ] {
        parent.rule(Rule::new(format!("!has(self.{name}) || {holds}"), message).names(field));
    }
}

/// A sanitized message.
pub fn message(node: &mut Node<'_>) {
    node.bytes(MAX_MESSAGE_BYTES);
}

/// Conditions: merged by type, bounded, and with reasons in the form of the closed list.
pub fn conditions(node: &mut Node<'_>) {
    node.items(0, 16).is_map("type");
    let mut item = node.at("[]");
    for (field, description) in [
        ("type", "What the condition is about."),
        ("status", "Whether it holds: True, False or Unknown."),
        ("reason", "One word for why, from a closed list."),
        (
            "message",
            "Why, in a sentence; at most 512 bytes and without secrets. May be empty.",
        ),
        (
            "observedGeneration",
            "Generation of the spec that this was found about. Lower than metadata.generation, or absent: it is stale.",
        ),
        (
            "lastTransitionTime",
            "When status last changed from one word to another.",
        ),
    ] {
        item.at(field).set("description", description);
    }
    item.at("type").length(1, 64).pattern("^[A-Z][A-Za-z]*$");
    item.at("status").set("enum", json!(["True", "False", "Unknown"]));
    item.at("reason")
        .length(1, MAX_REASON_BYTES)
        .pattern("^[A-Z][A-Za-z]*$");
    item.at("observedGeneration").counter();
    message(&mut item.at("message"));
}

/// The two ways of a closed union: the branch is there when `tag` is `value`, and only then.
pub fn branch(union: &mut Node<'_>, tag: &str, value: &str, field: &'static str) {
    let name = field.trim_start_matches('.');
    union
        .rule(
            Rule::new(
                format!("self.{tag} != '{value}' || has(self.{name})"),
                words::required_when(tag, value),
            )
            .names(field)
            .required(),
        )
        .rule(
            Rule::new(
                format!("self.{tag} == '{value}' || !has(self.{name})"),
                words::allowed_only_when(tag, value),
            )
            .names(field)
            .forbidden(),
        );
}

/// A parent rule that refuses a change of `field`; a rule on the field itself would not see it appear or vanish.
pub fn immutable(parent: &mut Node<'_>, kind: Kind, field: &'static str, unchanged: String) {
    parent.rule(Rule::new(unchanged, words::immutable(kind)).names(field));
}
