//! What a refusal says: the same words by the API server, by a reconciler and by `trawlctl lint`. Each names what is
//! allowed and, where that is not plain, what to do; none repeats what was written.

use crate::limits::{self, DurationRange};

pub const IN_REQUIRED: &str = "must be given when operator is In or NotIn, and only then";
pub const LABEL_KEY: &str = "must be a label key, such as kubernetes.io/hostname: a name of at most 63 letters, digits, - _ and ., after an optional domain and /";
pub const LABEL_KEYS: &str = "must have label keys such as kubernetes.io/hostname: a name of at most 63 letters, digits, - _ and ., after an optional domain and /";
pub const LABEL_VALUE: &str = "must be a label value: at most 63 letters, digits, - _ and ., beginning and ending with a letter or a digit";
pub const SELECTOR: &str = "must name at least one label: an empty selector would match every node";
pub const ANALYZERS: &str =
    "must enable at least one of suricata and zeek: a tap without an analyzer observes nothing";
pub const PINNED: &str =
    "must be repository@sha256:<64 lower-case hex digits> without a tag: content is pinned by its digest";
pub const QUANTITY: &str = "must be a Kubernetes quantity that is not negative, such as 500m or 512Mi";
pub const SHA256_FORM: &str = "must be sha256: and 64 lower-case hex digits";
pub const ADDRESS: &str =
    "must be an IPv4 or IPv6 address, without a zone, a prefix length or an embedded IPv4 address";
pub const TIME: &str = "must be a time in RFC 3339 form from 1970 to 9998, such as 2026-08-29T19:30:20Z";
pub const PROTOCOL: &str = "must be the name of a protocol, such as TCP: at most 16 letters, digits and -";
pub const COMMUNITY_ID: &str =
    "must be a Community ID: a version number, a colon and base64 text, at most 64 characters";
pub const PRINTABLE: &str =
    "must be printable ASCII on one line: no tabs, no line breaks, no other characters";
pub const LOOP: &str = "must not be one of sources: a port that mirrors itself is a loop";
pub const TEMPLATE: &str = "must use braces only for placeholders; these are {{source.ip}}, {{source.port}}, {{destination.ip}}, {{destination.port}}, {{protocol}}, and for alerts {{suricata.ruleID}}, {{suricata.severity}}";

pub fn at_most_bytes(max: usize) -> String {
    format!("must be at most {max} bytes")
}

pub fn name() -> String {
    format!(
        "must be the name of an object: at most {} lower-case letters, digits, - and ., beginning and ending with a letter or a digit",
        limits::MAX_NAME
    )
}

pub fn namespace() -> String {
    "must be the name of a namespace: at most 63 lower-case letters, digits and -, beginning and ending with a letter or a digit".into()
}

pub fn interface() -> String {
    format!(
        "must be the name of a Linux interface, such as enp5s0: at most {} letters, digits, _ . and -, beginning with a letter, a digit or _",
        limits::MAX_INTERFACE
    )
}

pub fn port() -> String {
    format!(
        "must be the name of a switch port, such as ether1: at most {} letters, digits, . _ / and -, beginning with a letter or a digit",
        limits::MAX_PORT
    )
}

pub fn word() -> String {
    format!("must be 1 to {} characters of printable ASCII", limits::MAX_WORD)
}

pub fn duration(range: DurationRange) -> String {
    let DurationRange {
        min_text,
        max_text,
        examples,
        ..
    } = range;
    format!("must be a duration from {min_text} to {max_text}, such as {examples}")
}

pub fn snaplen() -> String {
    format!(
        "must be 0, which keeps whole packets, or a number of bytes from {} to {}",
        limits::MIN_SNAPLEN,
        limits::MAX_SNAPLEN
    )
}

pub fn max_size() -> String {
    "must be a whole number of bytes from 1Mi to 1Gi, such as 50Mi, 1Gi or 52428800".into()
}

pub fn filter_size() -> String {
    format!(
        "must be at most {} bytes: name networks instead of many hosts, or use several captures",
        limits::MAX_FILTER
    )
}

pub fn required_when(tag: &str, value: &str) -> String {
    format!("is required when {tag} is {value}")
}

pub fn allowed_only_when(tag: &str, value: &str) -> String {
    format!("is allowed only when {tag} is {value}: remove it or change {tag}")
}

pub fn no_value(placeholders: &str, event: &str) -> String {
    format!("must not use {placeholders} placeholders: a {event} event has no value for them")
}

pub fn not_above_limit(resource: &str) -> String {
    format!(
        "must have requests.{resource} no greater than limits.{resource}: lower the request or raise the limit"
    )
}

pub fn not_negative(list: &str, resource: &str) -> String {
    format!("must not have a negative {list}.{resource}")
}

pub fn needs_resource(resource: &str) -> String {
    format!("must hold requests.{resource} and limits.{resource} when the analyzer is enabled")
}

/// What to do instead of changing an immutable field of `kind`.
pub fn immutable(kind: crate::Kind) -> &'static str {
    use crate::Kind;
    match kind {
        Kind::NetworkTap => "is immutable: delete this NetworkTap and create another",
        Kind::CapturePolicy => "is immutable: delete this CapturePolicy and create another",
        Kind::CaptureJob => "is immutable: leave it as it was and create another CaptureJob",
        Kind::PortMirror => {
            "is immutable: delete this PortMirror, which reverts its device, and create another"
        }
    }
}
