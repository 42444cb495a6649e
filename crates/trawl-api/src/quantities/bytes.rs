//! Byte sizes.

use std::{borrow::Cow, fmt};

use super::QuantityError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A Kubernetes quantity of whole bytes (`50Mi`, `1Gi`, `1048576`). Equal when the number of bytes is equal.
#[derive(Clone, Debug)]
pub struct ByteSize {
    text: String,
    bytes: u64,
}

impl ByteSize {
    /// Parses the whole grammar of Kubernetes quantities (binary and decimal suffixes, `m`, exponents); what does not
    /// come to whole bytes, or is negative, is refused.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let bytes = parse_bytes(text).ok_or_else(|| {
            QuantityError(
                "not a byte size: use a Kubernetes quantity of whole bytes such as 50Mi or 1Gi".into(),
            )
        })?;
        Ok(Self {
            text: text.into(),
            bytes,
        })
    }

    /// A size of `bytes` bytes.
    pub fn from_bytes(bytes: u64) -> Self {
        Self {
            text: bytes.to_string(),
            bytes,
        }
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A Kubernetes quantity in units of 10^-9, or `None` when it is none, is negative, is finer or too large.
pub(crate) fn nanos(text: &str) -> Option<u128> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let empty = whole.is_empty() && fraction.is_empty();
    if empty || whole.len() > 18 || fraction.len() > 9 || fraction.contains('.') {
        return None;
    }
    let (factor, power) = scale(suffix)?;
    let scaled = format!("{whole}{fraction}")
        .parse::<u128>()
        .ok()?
        .checked_mul(factor)?;
    let power = power + 9 - i32::try_from(fraction.len()).ok()?;
    let ten = 10u128.checked_pow(power.unsigned_abs());
    match (power >= 0, ten) {
        _ if scaled == 0 => Some(0),
        (true, Some(ten)) => scaled.checked_mul(ten),
        (false, Some(ten)) if scaled % ten == 0 => Some(scaled / ten),
        _ => None,
    }
}

fn parse_bytes(text: &str) -> Option<u64> {
    let nanos = nanos(text)?;
    if nanos % NANOS != 0 {
        None
    } else {
        u64::try_from(nanos / NANOS).ok()
    }
}

const NANOS: u128 = 1_000_000_000;

/// A suffix as a binary factor and a power of ten.
fn scale(suffix: &str) -> Option<(u128, i32)> {
    Some(match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        exponent => {
            let digits = exponent.strip_prefix(['e', 'E'])?;
            let bare = digits.strip_prefix(['+', '-']).unwrap_or(digits);
            if bare.is_empty() || bare.len() > 2 || !bare.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            (1, digits.parse().ok()?)
        }
    })
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

#[cfg(test)]
#[path = "bytes_tests.rs"]
mod tests;
