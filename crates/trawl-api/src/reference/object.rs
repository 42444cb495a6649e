//! One object: a table of its fields and the rules between them.

use std::{collections::BTreeMap, fmt::Write};

use serde_json::Value;

use super::fields;

/// Where the tables of one kind are, and which of their fields are immutable.
struct Page<'a> {
    kind: &'a str,
    text: &'a mut String,
    /// Objects that were shown, by what they look like: the same table is not shown twice.
    shown: BTreeMap<String, String>,
}

/// The tables of `spec` and `status` and of every object inside them.
pub fn objects(text: &mut String, kind: &str, properties: &Value) {
    let mut page = Page {
        kind,
        text,
        shown: BTreeMap::new(),
    };
    page.object("spec", &properties["spec"], &[]);
    page.object("status", &properties["status"], &[]);
}

/// The condition, which all kinds share.
pub fn condition(text: &mut String, root: &Value) {
    let _ = writeln!(
        text,
        "\n## Condition\n\nAn entry of `status.conditions` of every kind. [conditions.md](conditions.md) lists the types \
         and the reasons.\n"
    );
    let mut page = Page {
        kind: "Condition",
        text,
        shown: BTreeMap::new(),
    };
    page.table(
        "condition",
        &root["properties"]["status"]["properties"]["conditions"]["items"],
        &[],
    );
}

impl Page<'_> {
    fn anchor(&self, path: &str) -> String {
        let words: String = path.chars().filter(|c| c.is_alphanumeric()).collect();
        format!("{}-{}", self.kind, words).to_lowercase()
    }

    /// Shows `schema`, which is at `path`; `rules` are those that a schema above it names it in.
    fn object(&mut self, path: &str, schema: &Value, rules: &[(String, String)]) {
        let mut looks = schema.clone();
        if let Some(looks) = looks.as_object_mut() {
            looks.remove("description");
            looks.remove("default");
        }
        let anchor = self.anchor(path);
        let _ = writeln!(
            self.text,
            "\n<a id=\"{anchor}\"></a>\n### {} `{path}`\n",
            self.kind
        );
        let _ = writeln!(self.text, "{}\n", fields::prose(&schema["description"]));
        let looks = format!("{looks}{rules:?}");
        if let Some(first) = self.shown.get(&looks) {
            let _ = writeln!(
                self.text,
                "Its fields are those of [`{first}`](#{}).",
                self.anchor(first)
            );
            return;
        }
        self.shown.insert(looks, path.to_owned());
        let inner = self.table(path, schema, rules);
        for (path, schema, rules) in inner {
            self.object(&path, &schema, &rules);
        }
    }

    /// The table of one object and the rules between its fields. Returns the objects inside it, each with the rules
    /// that name it.
    #[allow(
        clippy::type_complexity,
        reason = "path, schema and rules of each; used in one place"
    )]
    fn table(
        &mut self,
        path: &str,
        schema: &Value,
        above: &[(String, String)],
    ) -> Vec<(String, Value, Vec<(String, String)>)> {
        let mut rules = fields::rules(schema);
        rules.extend(above.iter().cloned());
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        self.text.push_str(
            "| field | type | required or default | limits | what it is |\n|---|---|---|---|---|\n",
        );
        let mut inner = vec![];
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let at = format!("{path}.{name}");
            let (nested, step) = fields::entries(field).unwrap_or((field, ""));
            let mut type_ = fields::type_of(field);
            if name == "conditions" {
                type_ = format!("[{type_}](#condition)");
            } else if fields::is_object(nested) {
                let at = format!("{at}{step}");
                type_ = format!("[{type_}](#{})", self.anchor(&at));
                let below = format!("{name}.");
                let named = rules
                    .iter()
                    .filter_map(|(f, m)| f.strip_prefix(&below).map(|f| (f.to_owned(), m.clone())))
                    .collect();
                inner.push((at, nested.clone(), named));
            }
            let mut presence = match fields::default_of(field) {
                Some(default) => default,
                None if required.contains(&name.as_str().into()) => "required".into(),
                None => String::new(),
            };
            let immutable = rules
                .iter()
                .any(|(f, message)| f == name && fields::is_immutable(message));
            if immutable {
                presence += if presence.is_empty() {
                    "immutable"
                } else {
                    ", immutable"
                };
            }
            let _ = writeln!(
                self.text,
                "| `{name}` | {type_} | {presence} | {} | {} |",
                fields::limits(field).join("; "),
                fields::prose(&field["description"])
            );
        }
        self.rules(schema, &rules);
        inner
    }

    fn rules(&mut self, schema: &Value, rules: &[(String, String)]) {
        let here: Vec<_> = rules
            .iter()
            .filter(|(_, message)| !fields::is_immutable(message))
            .filter(|(field, _)| {
                // Rules on fields further down stand there, too.
                field.is_empty() || schema["properties"][field.as_str()].is_object()
            })
            .collect();
        if here.is_empty() {
            return;
        }
        self.text.push_str("\nRules:\n\n");
        for (field, message) in here {
            let subject = if field.is_empty() {
                "It".to_owned()
            } else {
                format!("`{field}`")
            };
            let _ = writeln!(self.text, "- {subject} {}.", fields::escape(message));
        }
    }
}
