//! The shape of the configuration file, so that every unknown, missing or mistyped field is named at once; the decoder
//! itself stops at the first.

use serde_json::{Map, Value};

use crate::store::Problem;

/// What a field must hold.
pub(crate) enum Shape {
    Text,
    /// A list of strings.
    Texts,
    Flag,
    Object(&'static [Field]),
    /// Exactly one of the fields.
    OneOf(&'static [Field]),
}

/// One field of an object.
pub(crate) struct Field {
    pub name: &'static str,
    pub required: bool,
    pub shape: Shape,
}

const fn must(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        required: true,
        shape,
    }
}

const fn may(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        required: false,
        shape,
    }
}

const S3: &[Field] = &[
    must("endpoint", Shape::Text),
    must("bucket", Shape::Text),
    must("region", Shape::Text),
    may("pathStyle", Shape::Flag),
    may("allowHttp", Shape::Flag),
    may("caPem", Shape::Text),
];

/// The whole file.
pub(crate) const INSTALLATION: &[Field] = &[
    must("apiVersion", Shape::Text),
    may("namespace", Shape::Text),
    must(
        "images",
        Shape::Object(&[
            must("runner", Shape::Text),
            must("reporter", Shape::Text),
            must("sensor", Shape::Text),
        ]),
    ),
    may("captured", Shape::Object(&[may("socketDir", Shape::Text)])),
    may("capture", Shape::Object(&[may("filterTunnels", Shape::Flag)])),
    must(
        "store",
        Shape::Object(&[
            must("profile", Shape::Text),
            must(
                "backend",
                Shape::OneOf(&[
                    may("s3", Shape::Object(S3)),
                    may("directory", Shape::Object(&[must("path", Shape::Text)])),
                ]),
            ),
        ]),
    ),
    must("secrets", Shape::Object(&[must("runner", Shape::Text)])),
    may("audit", Shape::Object(&[may("directory", Shape::Text)])),
    may(
        "retention",
        Shape::Object(&[may("ceiling", Shape::Text), may("administrators", Shape::Texts)]),
    ),
    may("worker", Shape::Object(&[may("serviceAccount", Shape::Text)])),
];

/// Everything in which `value` differs from the object that `fields` describe. Values are never repeated.
pub(crate) fn check(value: &Value, fields: &[Field], at: &str, found: &mut Vec<Problem>) {
    let Some(object) = value.as_object() else {
        return refuse(
            found,
            if at.is_empty() { "(file)" } else { at },
            "must be a mapping of fields",
        );
    };
    for name in object.keys() {
        if !fields.iter().any(|f| f.name == name) {
            let known: Vec<_> = fields.iter().map(|f| f.name).collect();
            refuse(
                found,
                &join(at, name),
                &format!("is not a known field; known here: {}", known.join(", ")),
            );
        }
    }
    for field in fields {
        let path = join(at, field.name);
        match object.get(field.name) {
            None if field.required => refuse(found, &path, "is required"),
            None => {}
            Some(value) => check_value(value, &field.shape, &path, found),
        }
    }
}

fn check_value(value: &Value, shape: &Shape, at: &str, found: &mut Vec<Problem>) {
    match shape {
        Shape::Text if !value.is_string() => refuse(found, at, "must be a string; quote it"),
        Shape::Flag if !value.is_boolean() => refuse(found, at, "must be true or false"),
        Shape::Texts if !value.as_array().is_some_and(|a| a.iter().all(Value::is_string)) => {
            refuse(found, at, "must be a list of strings");
        }
        Shape::Text | Shape::Texts | Shape::Flag => {}
        Shape::Object(fields) => check(value, fields, at, found),
        Shape::OneOf(fields) => {
            check(value, fields, at, found);
            let given = value.as_object().map_or(1, |o| count(o, fields));
            if given != 1 {
                let names: Vec<_> = fields.iter().map(|f| f.name).collect();
                refuse(
                    found,
                    at,
                    &format!("must hold exactly one of: {}", names.join(", ")),
                );
            }
        }
    }
}

fn count(object: &Map<String, Value>, fields: &[Field]) -> usize {
    fields.iter().filter(|f| object.contains_key(f.name)).count()
}

fn join(at: &str, name: &str) -> String {
    // A key comes from the file; what is shown of it is bounded and printable.
    let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    if at.is_empty() {
        name
    } else {
        format!("{at}.{name}")
    }
}

fn refuse(found: &mut Vec<Problem>, field: &str, problem: &str) {
    found.push(Problem {
        field: field.into(),
        problem: problem.into(),
    });
}
