//! Shapes that several kinds share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of an object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct LocalRef {
    /// Name of the object: a DNS subdomain of 1 to 253 characters.
    pub name: String,
}

impl LocalRef {
    /// A reference to the object called `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}
