//! Shapes that several kinds share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of an object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct LocalRef {
    pub name: String,
}

impl LocalRef {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}
