//! Changes to an object: as a JSON patch for the API server, and applied here.

use serde_json::{Map, Value, json};

/// Sets one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    path: Vec<String>,
    value: Value,
}

impl Edit {
    /// Sets the field at `path`, whose parents exist.
    pub fn set(path: &[&str], value: impl Into<Value>) -> Self {
        Self {
            path: path.iter().map(ToString::to_string).collect(),
            value: value.into(),
        }
    }

    /// The operation of RFC 6902; `add` also replaces.
    pub fn to_patch(&self) -> Value {
        let mut path = String::new();
        for step in &self.path {
            path.push('/');
            path.push_str(&step.replace('~', "~0").replace('/', "~1"));
        }
        json!({"op": "add", "path": path, "value": self.value})
    }

    /// Makes the change.
    pub fn apply(&self, object: &mut Value) {
        let mut place = object;
        for step in &self.path {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[step.as_str()];
        }
        *place = self.value.clone();
    }
}
