//! Checks that several kinds share.

use std::{collections::HashSet, fmt, hash::Hash};

use super::FieldProblem;
use crate::{
    ByteSize, GoDuration,
    limits::{self, DurationRange},
    words,
};

/// Problems of one spec that are told: what no schema has bounded can have millions, and each is a text.
const MOST: usize = 256;

/// Collects problems.
#[derive(Default)]
pub struct Problems(Vec<FieldProblem>);

impl Problems {
    pub fn into_vec(self) -> Vec<FieldProblem> {
        self.0
    }

    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        if self.0.len() < MOST {
            self.0.push(FieldProblem {
                field: field.into(),
                message: message.into(),
            });
        }
    }

    pub fn require(&mut self, holds: bool, field: impl Into<String>, message: impl Into<String>) {
        if !holds {
            self.add(field, message);
        }
    }

    /// A requirement whose refusal says what was found; never for what may be secret.
    pub fn require_found(
        &mut self,
        holds: bool,
        field: impl Into<String>,
        found: impl fmt::Display,
        words: impl fmt::Display,
    ) {
        if !holds {
            self.add(field, format!("is {found}, but {words}"));
        }
    }

    /// Name of an object or node.
    pub fn name(&mut self, field: &str, name: &str) {
        self.require(is_subdomain(name), field, words::name());
    }

    pub fn namespace(&mut self, field: impl Into<String>, name: &str) {
        self.require(is_label(name), field, words::namespace());
    }

    pub fn interface(&mut self, field: &str, name: &str) {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let holds = name.bytes().next().is_some_and(plain)
            && name.len() <= limits::MAX_INTERFACE
            && name.bytes().all(|b| plain(b) || b == b'.' || b == b'-');
        self.require(holds, field, words::interface());
    }

    /// A word of another system, such as a category.
    pub fn word(&mut self, field: impl Into<String>, word: &str) {
        let holds = (1..=limits::MAX_WORD).contains(&word.len()) && is_printable(word);
        self.require(holds, field, words::word());
    }

    /// Text of `min` to `max` characters.
    pub fn length(&mut self, field: impl Into<String>, text: &str, min: usize, max: usize) {
        let length = text.chars().count();
        self.require(
            (min..=max).contains(&length),
            field,
            format!("has {length} characters, but must have {min} to {max}"),
        );
    }

    pub fn duration(&mut self, field: &str, value: &GoDuration, range: DurationRange) {
        let holds = (range.min..=range.max).contains(&value.get());
        self.require_found(holds, field, value, words::duration(range));
    }

    pub fn optional_duration(&mut self, field: &str, value: Option<&GoDuration>, range: DurationRange) {
        if let Some(value) = value {
            self.duration(field, value, range);
        }
    }

    pub fn max_size(&mut self, field: &str, value: &ByteSize) {
        let holds = (limits::MIN_SIZE..=limits::MAX_SIZE).contains(&value.bytes());
        self.require_found(holds, field, value, words::max_size());
    }

    pub fn snaplen(&mut self, field: &str, value: i32) {
        let holds = value == 0 || (limits::MIN_SNAPLEN..=limits::MAX_SNAPLEN).contains(&value);
        self.require_found(holds, field, value, words::snaplen());
    }

    /// A filter or a template; neither is ever repeated.
    pub fn filter(&mut self, field: &str, text: Option<&str>) {
        let text = text.unwrap_or_default();
        let size = text.len();
        self.require(
            size <= limits::MAX_FILTER,
            field,
            format!("has {size} bytes, but {}", words::filter_size()),
        );
        self.require(is_printable(text), field, words::PRINTABLE);
    }

    pub fn sha256_form(&mut self, field: &str, text: &str) {
        self.require(is_sha256_form(text), field, words::SHA256_FORM);
    }

    /// A set of `min` to `max` entries.
    pub fn set<T: Eq + Hash>(&mut self, field: &str, list: &[T], min: usize, max: usize) {
        self.entries(field, list.len(), min, max);
        let mut seen = HashSet::new();
        for (index, entry) in list.iter().enumerate() {
            self.require(
                seen.insert(entry),
                format!("{field}[{index}]"),
                "repeats an earlier entry: remove it",
            );
        }
    }

    pub fn entries(&mut self, field: &str, count: usize, min: usize, max: usize) {
        self.require(
            (min..=max).contains(&count),
            field,
            format!("has {count} entries, but must have {min} to {max}"),
        );
    }

    pub fn range(&mut self, field: &str, value: i32, min: i32, max: i32) {
        let holds = (min..=max).contains(&value);
        self.require_found(holds, field, value, format_args!("must be from {min} to {max}"));
    }

    /// The branch of a closed union is there exactly when `tag` is `value`.
    pub fn branch(&mut self, present: bool, wanted: bool, field: &str, tag: &str, value: &str) {
        self.require(present || !wanted, field, words::required_when(tag, value));
        self.require(!present || wanted, field, words::allowed_only_when(tag, value));
    }
}

/// Printable ASCII.
fn is_printable(text: &str) -> bool {
    text.bytes().all(|b| (0x20..=0x7e).contains(&b))
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
