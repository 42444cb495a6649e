//! Object keys that mean the same to every store: no escaping, no traversal, nothing hidden.

use object_store::path::Path;

use crate::StoreError;

/// A checked object key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Accepts 1 to 512 bytes of segments from `A-Z a-z 0-9 . _ -`, none of which begins with a dot.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        let segment = |s: &str| !s.is_empty() && !s.starts_with('.') && s.bytes().all(plain);
        if text.len() > 512 || !text.split('/').all(segment) {
            return Err(StoreError::Invalid {
                what: "key".into(),
                problem: "must be 1 to 512 bytes of '/'-separated names from A-Z a-z 0-9 . _ -".into(),
            });
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn path(&self) -> Path {
        Path::from(self.0.as_str())
    }
}
