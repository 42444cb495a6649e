//! Checks that several kinds share.

use std::collections::HashSet;
use std::hash::Hash;

use super::FieldProblem;
use crate::{
    ByteSize, GoDuration,
    limits::{self, DurationRange},
};

/// Collects problems.
#[derive(Default)]
pub struct Problems(Vec<FieldProblem>);

impl Problems {
    pub fn into_vec(self) -> Vec<FieldProblem> {
        self.0
    }

    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldProblem {
            field: field.into(),
            message: message.into(),
        });
    }

    pub fn require(&mut self, holds: bool, field: impl Into<String>, message: impl Into<String>) {
        if !holds {
            self.add(field, message);
        }
    }

    /// Name of an object or node.
    pub fn name(&mut self, field: &str, name: &str) {
        let max = limits::MAX_NAME;
        self.require(
            is_subdomain(name),
            field,
            format!("must be a DNS subdomain of 1 to {max} lower-case characters"),
        );
    }

    pub fn interface(&mut self, field: &str, name: &str) {
        let max = limits::MAX_INTERFACE;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let holds = !name.is_empty()
            && name.len() <= max
            && plain(name.as_bytes()[0])
            && name.bytes().all(|b| plain(b) || b == b'.' || b == b'-');
        self.require(
            holds,
            field,
            format!("must be a Linux interface name of 1 to {max} bytes: letters, digits, _ . and -"),
        );
    }

    pub fn duration(&mut self, field: &str, value: &GoDuration, range: DurationRange) {
        let holds = (range.min..=range.max).contains(&value.get());
        self.require(
            holds,
            field,
            format!("must be from {} to {}", range.min_text, range.max_text),
        );
    }

    pub fn optional_duration(&mut self, field: &str, value: Option<&GoDuration>, range: DurationRange) {
        if let Some(value) = value {
            self.duration(field, value, range);
        }
    }

    pub fn max_size(&mut self, field: &str, value: &ByteSize) {
        let holds = (limits::MIN_SIZE..=limits::MAX_SIZE).contains(&value.bytes());
        self.require(holds, field, "must be from 1Mi to 1Gi");
    }

    pub fn snaplen(&mut self, field: &str, value: i32) {
        let (min, max) = (limits::MIN_SNAPLEN, limits::MAX_SNAPLEN);
        let holds = value == 0 || (min..=max).contains(&value);
        self.require(
            holds,
            field,
            format!("must be 0 (whole packets) or {min} to {max}"),
        );
    }

    pub fn filter(&mut self, field: &str, text: Option<&str>) {
        let max = limits::MAX_FILTER;
        let text = text.unwrap_or_default();
        self.require(text.len() <= max, field, format!("must be at most {max} bytes"));
        self.require(
            text.bytes().all(|b| (0x20..=0x7e).contains(&b)),
            field,
            "must be printable ASCII",
        );
    }

    pub fn sha256_form(&mut self, field: &str, text: &str) {
        self.require(
            is_sha256_form(text),
            field,
            "must be sha256: and 64 lower-case hex digits",
        );
    }

    pub fn one_to<T: Eq + Hash>(&mut self, field: &str, list: &[T], min: usize, max: usize) {
        let holds = (min..=max).contains(&list.len());
        self.require(holds, field, format!("must have {min} to {max} entries"));
        let distinct: HashSet<&T> = list.iter().collect();
        self.require(distinct.len() == list.len(), field, "must not have duplicates");
    }

    pub fn range(&mut self, field: &str, value: i32, min: i32, max: i32) {
        self.require(
            (min..=max).contains(&value),
            field,
            format!("must be from {min} to {max}"),
        );
    }

    /// The branch of a closed union is there exactly when its tag says so.
    pub fn branch(&mut self, present: bool, wanted: bool, field: &str, tag: &str) {
        self.require(present || !wanted, field, format!("is required when {tag}"));
        self.require(!present || wanted, field, format!("is allowed only when {tag}"));
    }
}

/// A DNS label of at most 63 characters.
pub fn is_label(label: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let ends = |b: Option<u8>| b.is_some_and(plain);
    label.len() <= 63
        && ends(label.bytes().next())
        && ends(label.bytes().last())
        && label.bytes().all(|b| plain(b) || b == b'-')
}

/// A DNS subdomain, as names of objects are.
pub fn is_subdomain(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let part = |part: &str| {
        part.bytes().next().is_some_and(plain)
            && part.bytes().last().is_some_and(plain)
            && part.bytes().all(|b| plain(b) || b == b'-')
    };
    name.len() <= limits::MAX_NAME && name.split('.').all(part)
}

/// `sha256:` and 64 lower-case hex digits.
pub fn is_sha256_form(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}
