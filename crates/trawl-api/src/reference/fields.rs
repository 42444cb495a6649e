//! One field: its type, its limits, what it says about itself.

use serde_json::Value;

/// A description on one line, safe inside a table.
pub fn prose(description: &Value) -> String {
    let text = description.as_str().unwrap_or_default();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    escape(&line)
}

/// Text that Markdown shows as it is.
pub fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*")
}

/// Every rule of a schema: the field that it names, relative to the schema, and its message.
pub fn rules(schema: &Value) -> Vec<(String, String)> {
    let rules = schema["x-kubernetes-validations"].as_array();
    rules
        .into_iter()
        .flatten()
        .map(|rule| {
            let text = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
            (
                text("fieldPath").trim_start_matches('.').to_owned(),
                text("message"),
            )
        })
        .collect()
}

/// Whether a message is that of an immutable field.
pub fn is_immutable(message: &str) -> bool {
    message.starts_with("is immutable")
}

/// Whether `schema` has a table of its own.
pub fn is_object(schema: &Value) -> bool {
    schema["properties"].is_object()
}

/// The schema of the entries of a list or a map, and the step that leads there.
pub fn entries(schema: &Value) -> Option<(&Value, &'static str)> {
    if schema["items"].is_object() {
        Some((&schema["items"], "[]"))
    } else if schema["additionalProperties"].is_object() {
        Some((&schema["additionalProperties"], "{}"))
    } else {
        None
    }
}

/// The type in words.
pub fn type_of(schema: &Value) -> String {
    let is_duration = || {
        rules(schema)
            .iter()
            .any(|(_, m)| m.starts_with("must be a duration"))
    };
    match schema["type"].as_str() {
        None => "quantity".into(),
        Some("string") if schema["format"] == "date-time" => "time".into(),
        Some("string") if is_duration() => "duration".into(),
        Some("array") => {
            let of = type_of(&schema["items"]);
            match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => format!("set of {of}s"),
                Some("map") => format!(
                    "list by `{}`",
                    schema["x-kubernetes-list-map-keys"][0]
                        .as_str()
                        .unwrap_or_default()
                ),
                _ => format!("list of {of}s"),
            }
        }
        Some("object") if schema["additionalProperties"].is_object() => {
            let of = type_of(&schema["additionalProperties"]);
            format!(
                "map of {}",
                if of == "quantity" {
                    "quantities".into()
                } else {
                    of + "s"
                }
            )
        }
        Some(type_) => type_.to_owned(),
    }
}

/// The default, where there is one that says anything.
pub fn default_of(schema: &Value) -> Option<String> {
    match &schema["default"] {
        Value::Null | Value::Object(_) => None,
        Value::String(text) => Some(format!("`{text}`")),
        other => Some(format!("`{other}`")),
    }
}

/// The limits in words: of the field, and of its entries when they are no objects.
pub fn limits(schema: &Value) -> Vec<String> {
    let mut limits = vec![];
    let words = schema["enum"].as_array().into_iter().flatten();
    let words: Vec<_> = words
        .filter_map(Value::as_str)
        .map(|w| format!("`{w}`"))
        .collect();
    if !words.is_empty() {
        limits.push(words.join(", "));
    }
    let mut own: Vec<_> = rules(schema);
    own.retain(|(field, _)| field.is_empty() && !is_object(schema));
    // The words of a rule include the numbers.
    let ranges = [
        ("minimum", "maximum", "", own.is_empty()),
        ("minLength", "maxLength", " characters", own.is_empty()),
        ("minItems", "maxItems", " entries", true),
        ("minProperties", "maxProperties", " entries", true),
    ];
    for (min, max, unit, _) in ranges.iter().filter(|range| range.3) {
        limits.extend(range(schema, min, max, unit));
    }
    limits.extend(own.iter().map(|(_, message)| escape(message)));
    if let Some((entries, _)) = entries(schema)
        && !is_object(entries)
    {
        limits.extend(self::limits(entries).into_iter().map(|l| format!("each: {l}")));
    }
    limits
}

fn range(schema: &Value, min: &str, max: &str, unit: &str) -> Option<String> {
    match (schema[min].as_i64(), schema[max].as_i64()) {
        (Some(min), Some(max)) if min == max => Some(format!("{min}{unit}")),
        (Some(min), Some(max)) => Some(format!("{min} to {max}{unit}")),
        (None, Some(max)) => Some(format!("at most {max}{unit}")),
        (Some(min), None) => Some(format!("at least {min}{unit}")),
        (None, None) => None,
    }
}
