//! Defaults.

use serde_json::Value;

/// Drops `null` members and fills in defaults, from the outside to the inside.
pub fn apply(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(properties) = schema["properties"].as_object() {
                members.retain(|name, member| !(member.is_null() && properties.contains_key(name)));
                for (name, property) in properties {
                    if let Some(default) = property.get("default") {
                        members.entry(name.clone()).or_insert_with(|| default.clone());
                    }
                }
                for (name, member) in members {
                    apply(&schema["properties"][name.as_str()], member);
                }
            } else if schema["additionalProperties"].is_object() {
                members
                    .values_mut()
                    .for_each(|member| apply(&schema["additionalProperties"], member));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| apply(&schema["items"], item)),
        _ => {}
    }
}
