//! Durations and byte sizes, parsed once, kept in the words in which they were written.

use std::{borrow::Cow, fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A Go duration (`1h30m`, `500ms`) or whole days (`7d`), not mixed. Equal when the time is equal.
#[derive(Clone, Debug)]
pub struct GoDuration {
    text: String,
    value: Duration,
}

/// Why a duration or a byte size was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuantityError(String);

impl GoDuration {
    /// Parses `text`; negative durations, signs and mixed days are refused.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let bad = || QuantityError("not a duration: use Go form such as 30s, 5m, 1h30m, or whole days such as 7d".into());
        let value = if let Some(days) = text.strip_suffix('d') {
            if days.is_empty() || !days.bytes().all(|b| b.is_ascii_digit()) {
                return Err(bad());
            }
            let days: u64 = days.parse().map_err(|_| bad())?;
            Duration::from_secs(days.checked_mul(86_400).ok_or_else(bad)?)
        } else {
            parse_go(text).ok_or_else(bad)?
        };
        Ok(Self { text: text.into(), value })
    }

    pub fn get(&self) -> Duration {
        self.value
    }

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
        let unit_len = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
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
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || whole.len() > 18 || fraction.len() > 15 {
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
        json_schema!({"type": "string", "maxLength": 32})
    }
}

/// A Kubernetes quantity of whole bytes (`50Mi`, `1Gi`, `1048576`). Equal when the number of bytes is equal.
#[derive(Clone, Debug)]
pub struct ByteSize {
    text: String,
    bytes: u64,
}

impl ByteSize {
    /// Parses binary and decimal suffixes; fractions are accepted where they come to whole bytes.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let bad = || QuantityError("not a byte size: use a Kubernetes quantity such as 50Mi or 1Gi".into());
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(digits);
        let scale: u128 = match suffix {
            "" => 1,
            "k" => 1_000,
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            "T" => 1_000_000_000_000,
            "Ki" => 1 << 10,
            "Mi" => 1 << 20,
            "Gi" => 1 << 30,
            "Ti" => 1 << 40,
            _ => return Err(bad()),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || whole.len() > 18 || fraction.len() > 9 || fraction.contains('.') {
            return Err(bad());
        }
        let mut bytes = whole.parse::<u128>().map_err(|_| bad())? * scale;
        if !fraction.is_empty() {
            let part = fraction.parse::<u128>().map_err(|_| bad())? * scale;
            let unit = 10u128.pow(fraction.len() as u32);
            if part % unit != 0 {
                return Err(bad());
            }
            bytes += part / unit;
        }
        Ok(Self { text: text.into(), bytes: u64::try_from(bytes).map_err(|_| bad())? })
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl PartialEq for ByteSize {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for ByteSize {}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Int(u64),
            Text(String),
        }
        let text = match Form::deserialize(d)? {
            Form::Int(n) => n.to_string(),
            Form::Text(t) => t,
        };
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]})
    }
}
