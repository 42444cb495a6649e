//! Brings a derived schema into the form that the API server wants.

use serde_json::{Map, Value, json};

/// Walks the whole schema: no `nullable` (a `null` would satisfy `has()`) and no `null` among the words of an enum, no
/// `title`, no unsigned formats, integer bounds as integers.
pub fn normalize(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            drop_keyword(map, "nullable");
            drop_keyword(map, "title");
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = flowing(text);
            }
            if let Some(Value::Array(words)) = map.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            widen_unsigned(map);
            for keyword in ["minimum", "maximum"] {
                if let Some(n) = map.get(keyword).and_then(Value::as_f64) {
                    map.insert(keyword.into(), json!(n as i64));
                }
            }
            if map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
                int_or_string(map);
            }
            for (_, child) in map.iter_mut() {
                normalize(child);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        _ => {}
    }
}

/// Text without the line breaks of the source, so that `kubectl explain` breaks it where the terminal ends. Blank lines
/// and lists stay.
fn flowing(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let is_list = paragraph.lines().any(|line| line.trim_start().starts_with("- "));
        if is_list {
            paragraph.to_owned()
        } else {
            paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ")
        }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// A property may be called like a keyword: it is then a schema, never a flag or a text.
fn drop_keyword(map: &mut Map<String, Value>, keyword: &str) {
    if map.get(keyword).is_some_and(|v| !v.is_object()) {
        map.remove(keyword);
    }
}

fn widen_unsigned(map: &mut Map<String, Value>) {
    if map.get("format").and_then(Value::as_str) == Some("uint32") {
        map.insert("format".into(), "int64".into());
        map.insert("minimum".into(), 0.into());
        map.insert("maximum".into(), u32::MAX.into());
    }
}

fn int_or_string(map: &mut Map<String, Value>) {
    map.remove("type");
    map.insert("anyOf".into(), json!([{"type": "integer"}, {"type": "string"}]));
    map.insert("pattern".into(), super::cel::QUANTITY_PATTERN.into());
    map.entry("description")
        .or_insert_with(|| "A Kubernetes quantity, for example 500m, 50Mi or 1Gi.".into());
}
