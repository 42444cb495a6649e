//! The part of structural schemas that the four kinds use.

use regex::Regex;
use serde_json::Value;
use trawl_api::FieldProblem;

/// Problems of one list or map that are told; a hostile document could make thousands.
const MOST: usize = 64;

/// Collects what `schema` refuses in `value`. Values and unknown names are not repeated, known names are.
pub fn check(schema: &Value, value: &Value, path: &str, problems: &mut Vec<FieldProblem>) {
    let mut report = Report { path, problems };
    if !of_type(schema, value) {
        // YAML reads n, on and 010 as something else than text.
        let scalar = value.is_boolean() || value.is_number();
        let advice = if scalar && schema["type"] == "string" {
            "; put it in quotes"
        } else {
            ""
        };
        return report.add(format!(
            "must be {}, not {}{advice}",
            type_words(schema),
            found(value)
        ));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let words: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        return report.add(format!("must be one of {}", words.join(", ")));
    }
    match value {
        Value::String(text) => string(schema, text, &mut report),
        Value::Number(_) => number(schema, value, &mut report),
        Value::Array(items) => {
            between(
                schema,
                items.len(),
                ["minItems", "maxItems"],
                "entries",
                &mut report,
            );
            for (index, item) in items.iter().enumerate().take(MOST) {
                check(
                    &schema["items"],
                    item,
                    &format!("{path}[{index}]"),
                    report.problems,
                );
            }
        }
        Value::Object(members) => {
            between(
                schema,
                members.len(),
                ["minProperties", "maxProperties"],
                "members",
                &mut report,
            );
            for name in schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                if !members.contains_key(name) {
                    report.problems.push(FieldProblem {
                        field: format!("{path}.{name}"),
                        message: "is required".into(),
                    });
                }
            }
            for (name, member) in members.iter().take(MOST) {
                let path = format!("{path}.{}", shown(name));
                let open = schema["x-kubernetes-preserve-unknown-fields"] == true
                    || schema["additionalProperties"] == true;
                if let Some(property) = schema["properties"].get(name) {
                    check(property, member, &path, problems_of(&mut report));
                } else if schema["additionalProperties"].is_object() {
                    check(
                        &schema["additionalProperties"],
                        member,
                        &path,
                        problems_of(&mut report),
                    );
                } else if !open {
                    report.problems.push(FieldProblem {
                        field: path,
                        message: unknown(schema),
                    });
                }
            }
        }
        _ => {}
    }
}

struct Report<'a> {
    path: &'a str,
    problems: &'a mut Vec<FieldProblem>,
}

impl Report<'_> {
    fn add(&mut self, message: impl Into<String>) {
        self.problems.push(FieldProblem {
            field: self.path.to_owned(),
            message: message.into(),
        });
    }
}

fn problems_of<'a>(report: &'a mut Report<'_>) -> &'a mut Vec<FieldProblem> {
    report.problems
}

/// A member's name as it may be shown: names are part of the path, but hostile ones are cut and cleaned.
fn shown(name: &str) -> String {
    let clean: String = name
        .chars()
        .take(63)
        .map(|c| if c.is_ascii_graphic() { c } else { '?' })
        .collect();
    if clean.contains('.') || clean.contains('/') {
        format!("[{clean}]")
    } else {
        clean
    }
}

fn unknown(schema: &Value) -> String {
    let known: Vec<&str> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    format!("is no field here; known are: {}", known.join(", "))
}

fn of_type(schema: &Value, value: &Value) -> bool {
    if schema["x-kubernetes-int-or-string"] == true {
        return value.is_string() || value.is_i64() || value.is_u64();
    }
    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        Some("number") => value.is_number(),
        _ => true,
    }
}

fn type_words(schema: &Value) -> &'static str {
    if schema["x-kubernetes-int-or-string"] == true {
        return "a text or a whole number";
    }
    match schema["type"].as_str() {
        Some("object") => "an object",
        Some("array") => "a list",
        Some("string") => "a text",
        Some("boolean") => "true or false",
        Some("integer") => "a whole number",
        _ => "a number",
    }
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn string(schema: &Value, text: &str, report: &mut Report<'_>) {
    between(
        schema,
        text.chars().count(),
        ["minLength", "maxLength"],
        "characters",
        report,
    );
    let form = trawl_api::schema::form(schema).and_then(|pattern| Regex::new(pattern).ok());
    let time = schema["format"] == "date-time" && text.parse::<jiff::Timestamp>().is_err();
    if time {
        report.add("must be a time in RFC 3339 form, such as 2026-01-31T12:00:00Z");
    } else if form.is_some_and(|form| !form.is_match(text)) {
        report.add(said_by_rule(schema));
    }
}

/// The message of the field's own rule explains its form better than a pattern does.
fn said_by_rule(schema: &Value) -> String {
    let rule = schema["x-kubernetes-validations"][0]["message"].as_str();
    let pattern = trawl_api::schema::form(schema).unwrap_or_default();
    rule.map_or_else(|| format!("must match {pattern}"), str::to_owned)
}

fn number(schema: &Value, value: &Value, report: &mut Report<'_>) {
    let (least, most) = match schema["format"].as_str() {
        Some("int32") => (f64::from(i32::MIN), f64::from(i32::MAX)),
        _ => (f64::MIN, f64::MAX),
    };
    let least = schema["minimum"].as_f64().map_or(least, |n| n.max(least));
    let most = schema["maximum"].as_f64().map_or(most, |n| n.min(most));
    if value.as_f64().is_some_and(|n| n < least) {
        report.add(format!("must be at least {least}"));
    } else if value.as_f64().is_some_and(|n| n > most) {
        report.add(format!("must be at most {most}"));
    }
}

fn between(schema: &Value, count: usize, keywords: [&str; 2], what: &str, report: &mut Report<'_>) {
    let bound = |keyword: &str| schema[keyword].as_u64().and_then(|n| usize::try_from(n).ok());
    match (bound(keywords[0]), bound(keywords[1])) {
        (Some(least), _) if count < least => report.add(format!("must have at least {least} {what}")),
        (_, Some(most)) if count > most => report.add(format!("must have at most {most} {what}")),
        _ => {}
    }
}
