//! A cursor over a schema.

use serde_json::{Value, json};

use crate::words;

/// A CEL rule of the schema, with the field that its refusal names.
#[derive(Clone, Debug)]
pub struct Rule {
    rule: String,
    message: String,
    field: Option<&'static str>,
    reason: Option<&'static str>,
}

impl Rule {
    /// A rule that refuses with `message` when `rule` is false.
    pub fn new(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            message: message.into(),
            field: None,
            reason: None,
        }
    }

    /// Names the field, relative to the schema that carries the rule, for example `.maxSize`.
    pub fn names(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    /// Says that the field is missing.
    pub fn required(mut self) -> Self {
        self.reason = Some("FieldValueRequired");
        self
    }

    /// Says that the field must not be there.
    pub fn forbidden(mut self) -> Self {
        self.reason = Some("FieldValueForbidden");
        self
    }

    fn to_value(&self) -> Value {
        let mut value = json!({"rule": self.rule, "message": self.message});
        if let Some(field) = self.field {
            value["fieldPath"] = field.into();
        }
        if let Some(reason) = self.reason {
            value["reason"] = reason.into();
        }
        value
    }
}

/// One schema inside a larger one.
pub struct Node<'a> {
    value: &'a mut Value,
    path: String,
}

impl<'a> Node<'a> {
    /// The root of a schema.
    pub fn new(value: &'a mut Value) -> Self {
        Self {
            value,
            path: String::new(),
        }
    }

    /// The schema at `path` below this one: names of properties joined by dots, `[]` for the items of a list and
    /// `{}` for the values of a map.
    ///
    /// # Panics
    /// When there is no such schema.
    pub fn at(&mut self, path: &str) -> Node<'_> {
        let mut value = &mut *self.value;
        for step in path.split('.') {
            let next = match step {
                "[]" => value.get_mut("items"),
                "{}" => value.get_mut("additionalProperties"),
                name => value.get_mut("properties").and_then(|p| p.get_mut(name)),
            };
            value = next.unwrap_or_else(|| panic!("the schema has no {step} in {}.{path}", self.path));
        }
        Node {
            value,
            path: format!("{}.{path}", self.path),
        }
    }

    /// Sets a keyword.
    pub fn set(&mut self, keyword: &str, value: impl Into<Value>) -> &mut Self {
        self.value[keyword] = value.into();
        self
    }

    /// Value that an absent field takes.
    pub fn default(&mut self, value: impl Into<Value>) -> &mut Self {
        self.set("default", value)
    }

    /// Bounds of an integer, both inclusive.
    pub fn range(&mut self, min: i64, max: i64) -> &mut Self {
        self.set("minimum", min).set("maximum", max)
    }

    /// An integer that counts.
    pub fn counter(&mut self) -> &mut Self {
        self.set("minimum", 0)
    }

    /// Bounds of the length of a string in characters.
    pub fn length(&mut self, min: usize, max: usize) -> &mut Self {
        if min > 0 {
            self.set("minLength", min);
        }
        self.set("maxLength", max)
    }

    /// Longest string in bytes; a multi-byte character must not stretch it.
    pub fn bytes(&mut self, max: usize) -> &mut Self {
        self.set("maxLength", max).rule(Rule::new(
            format!("size(bytes(self)) <= {max}"),
            words::at_most_bytes(max),
        ))
    }

    /// Regular expression of a string of at most `max` characters that people write. A refusal by `pattern` would show
    /// the expression; a rule says in words what is allowed.
    pub fn form(&mut self, max: usize, pattern: &str, message: impl Into<String>) -> &mut Self {
        self.length(0, max)
            .rule(Rule::new(format!("self.matches(r'{pattern}')"), message))
    }

    /// Regular expression of a string that only Trawl writes.
    pub fn pattern(&mut self, pattern: &str) -> &mut Self {
        self.set("pattern", pattern)
    }

    /// Bounds of the number of items.
    pub fn items(&mut self, min: usize, max: usize) -> &mut Self {
        if min > 0 {
            self.set("minItems", min);
        }
        self.set("maxItems", max)
    }

    /// A list without duplicates.
    pub fn is_set(&mut self) -> &mut Self {
        self.set("x-kubernetes-list-type", "set")
    }

    /// A list whose items are told apart by `key`, so that several writers can own one item each.
    pub fn is_map(&mut self, key: &str) -> &mut Self {
        self.set("x-kubernetes-list-type", "map")
            .set("x-kubernetes-list-map-keys", json!([key]))
    }

    /// A list that is only ever replaced as a whole.
    pub fn is_atomic(&mut self) -> &mut Self {
        self.set("x-kubernetes-list-type", "atomic")
    }

    /// Adds a rule.
    pub fn rule(&mut self, rule: Rule) -> &mut Self {
        let rules = &mut self.value["x-kubernetes-validations"];
        if rules.is_null() {
            *rules = json!([]);
        }
        if let Some(rules) = rules.as_array_mut() {
            rules.push(rule.to_value());
        }
        self
    }
}
