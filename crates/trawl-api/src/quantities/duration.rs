//! Durations.

use std::{borrow::Cow, fmt, time::Duration};

use super::QuantityError;
use crate::limits::MAX_DURATION_TEXT;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A Go duration (`1h30m`, `500ms`) or whole days (`7d`), not mixed. Equal when the time is equal.
#[derive(Clone, Debug)]
pub struct GoDuration {
    text: String,
    value: Duration,
}

impl GoDuration {
    /// Parses `text`; negative durations, signs and mixed days are refused.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let bad = || {
            QuantityError(
                "not a duration: use Go form such as 30s, 5m, 1h30m, or whole days such as 7d".into(),
            )
        };
        if text.len() > MAX_DURATION_TEXT {
            return Err(bad());
        }
        let value = if let Some(days) = text.strip_suffix('d') {
            if days.is_empty() || !days.bytes().all(|b| b.is_ascii_digit()) {
                return Err(bad());
            }
            let days: u64 = days.parse().map_err(|_| bad())?;
            Duration::from_secs(days.checked_mul(86_400).ok_or_else(bad)?)
        } else {
            parse_go(text).ok_or_else(bad)?
        };
        Ok(Self {
            text: text.into(),
            value,
        })
    }

    /// The time.
    pub fn get(&self) -> Duration {
        self.value
    }

    /// The time in whole milliseconds.
    pub fn as_millis(&self) -> u64 {
        u64::try_from(self.value.as_millis()).unwrap_or(u64::MAX)
    }
}

fn parse_go(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit_len = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_len);
        let scale: u128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty())
            || fraction.contains('.')
            || whole.len() > 18
            || fraction.len() > 15
        {
            return None;
        }
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        nanos = nanos.checked_add(whole.checked_mul(scale)?)?;
        if !fraction.is_empty() {
            nanos += fraction.parse::<u128>().ok()? * scale / 10u128.pow(fraction.len() as u32);
        }
        rest = tail;
    }
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

impl PartialEq for GoDuration {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for GoDuration {}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::parse(&Cow::<str>::deserialize(d)?).map_err(de::Error::custom)
    }
}

impl JsonSchema for GoDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": MAX_DURATION_TEXT})
    }
}

#[cfg(test)]
#[path = "duration_tests.rs"]
mod tests;
