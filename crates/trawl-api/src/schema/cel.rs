//! Pieces of CEL.

use crate::limits::DurationRange;

/// Form of a duration: Go's, or whole days.
pub const DURATION_PATTERN: &str =
    r"^([0-9]{1,5}d|0|(([0-9]{1,10}(\.[0-9]{0,9})?|\.[0-9]{1,9})(ns|us|µs|μs|ms|s|m|h))+)$";

/// Form of a Kubernetes quantity that is an amount of a resource: not negative, not finer than 10^-9 and not larger
/// than [`crate::validation`] can compare.
pub const QUANTITY_PATTERN: &str =
    r"^\+?([0-9]{1,12}(\.[0-9]{0,6})?|\.[0-9]{1,6})([KMGTP]i|[mkMGTP]|[eE]\+?[0-9])?$";

/// Whether the duration `field`, which has the form of [`DURATION_PATTERN`], is within `range`. CEL's `duration` knows
/// no days, and building hours out of them would have no bounded cost, so whole days are compared as numbers.
pub fn within(field: &str, range: DurationRange) -> String {
    let days = |seconds: u64| seconds / 86_400;
    let (first, last) = (days(range.min.as_secs() + 86_399), days(range.max.as_secs()));
    format!(
        "({field}.endsWith('d') ? int({field}.substring(0, {field}.size() - 1)) >= {first} && int({field}.substring(0, {field}.size() - 1)) <= {last} : duration({field}) >= duration('{}s') && duration({field}) <= duration('{}s'))",
        range.min.as_secs(),
        range.max.as_secs()
    )
}

/// The value of a duration field whose range admits no day but `0d`; nothing for text that is no duration, which has
/// its own refusal.
pub fn short_duration(field: &str) -> String {
    format!(
        "({field}.matches(r'{DURATION_PATTERN}') && !{field}.endsWith('d') ? duration({field}) : duration('0s'))"
    )
}

/// The value of a quantity field that may be an integer or a string.
pub fn quantity(field: &str) -> String {
    format!("quantity(string({field}))")
}

/// Whether a quantity field can be read; what cannot has its own refusal.
pub fn is_quantity(field: &str) -> String {
    format!("isQuantity(string({field}))")
}

/// Whether an optional field is as it was, in presence and in value.
pub fn unchanged(field: &str) -> String {
    unchanged_by(field, |x| x.to_owned())
}

/// Like [`unchanged`], with the values compared after `value` was applied to each.
pub fn unchanged_by(field: &str, value: impl Fn(&str) -> String) -> String {
    let (new, old) = (
        value(&format!("self.{field}")),
        value(&format!("oldSelf.{field}")),
    );
    format!("has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || {new} == {old})")
}

/// Whether two quantity fields are equal in value and in presence.
pub fn quantity_unchanged(field: &str) -> String {
    let (new, old) = (
        quantity(&format!("self.{field}")),
        quantity(&format!("oldSelf.{field}")),
    );
    format!("isQuantity(string(self.{field})) && {new}.compareTo({old}) == 0")
}
