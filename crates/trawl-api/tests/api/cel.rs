//! Two evaluators of the same rules: the API server, and `kube-cel`, which needs no server. Where both look at an
//! object they must find the same rules broken; otherwise a rule means something that its author did not write.

use std::collections::{BTreeMap, BTreeSet};

use kube_cel::{CompiledSchema, Validator, compile_schema};
use serde_json::Value;

use crate::{
    cases::{self, Case},
    harness::{Api, Refusal, in_namespace},
};

/// A broken rule: the field that it names, without indexes, and its message.
type Broken = BTreeSet<(String, String)>;

/// Values about which the two are known to differ, and why. Each must go on to differ, or its line is out of date.
const KNOWN: [(&str, &str); 2] = [
    (
        "2µs",
        "the cel crate reads no micro sign in a duration; the API server, like Go, does",
    ),
    (
        "2026-08-29T19:30:20+99:99",
        "neither can evaluate a rule on what passes for a time and is none; the API server then names the schema that carries the rule, kube-cel the field of the rule",
    ),
];

/// The schema of one kind, and the message of each of its rules.
struct Schema {
    compiled: CompiledSchema,
    messages: BTreeMap<String, String>,
}

fn schemas() -> BTreeMap<String, Schema> {
    let all = trawl_api::crds::all().expect("definitions");
    all.iter()
        .map(|definition| {
            let kind = definition.value["spec"]["names"]["kind"].as_str().expect("kind");
            let root = &definition.value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let mut messages = BTreeMap::new();
            collect(root, &mut messages);
            let compiled = compile_schema(root);
            (kind.to_owned(), Schema { compiled, messages })
        })
        .collect()
}

fn collect(schema: &Value, messages: &mut BTreeMap<String, String>) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let text = |key: &str| rule[key].as_str().expect("text").to_owned();
        messages.insert(text("rule"), text("message"));
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    for child in properties.map(|(_, child)| child) {
        collect(child, messages);
    }
    for child in ["items", "additionalProperties"] {
        if schema[child].is_object() {
            collect(&schema[child], messages);
        }
    }
}

/// `spec.list[3].x` and `spec.map[key]`, which the two write differently, without what is in the brackets.
fn place(field: &str) -> String {
    let plain: String = field
        .split('[')
        .map(|part| part.split_once(']').map_or(part, |(_, rest)| rest))
        .collect();
    match plain.split_once("matchLabels.") {
        Some((before, _)) => format!("{before}matchLabels"),
        None => plain,
    }
}

impl Schema {
    /// The rules that the API server found broken, or `None` when it did not get as far as to look.
    fn by_the_server(&self, answer: &Result<Value, Refusal>) -> Option<Broken> {
        let Err(refusal) = answer else {
            return Some(Broken::new());
        };
        if refusal.code != 422 || refusal.message.contains("some validation rules were not checked") {
            return None;
        }
        let mut broken = Broken::new();
        for (field, said) in &refusal.causes {
            for message in self.messages.values().filter(|m| said.ends_with(m.as_str())) {
                broken.insert((place(field), message.clone()));
            }
        }
        Some(broken)
    }

    fn by_kube_cel(&self, new: &Value, old: Option<&Value>) -> Broken {
        let errors = Validator::new()
            .validate_compiled(&self.compiled, new, old)
            .err()
            .map(|errors| errors.into_vec())
            .unwrap_or_default();
        errors
            .into_iter()
            .map(|error| {
                let message = self.messages.get(&error.rule);
                let message = message.unwrap_or_else(|| panic!("an error of no rule: {error:?}"));
                (place(&error.field_path), message.clone())
            })
            .collect()
    }
}

/// What was compared, and how it came out.
#[derive(Default)]
struct Tally {
    compared: usize,
    not_looked_at: usize,
    seen: BTreeSet<(String, String)>,
    differences: Vec<String>,
    known: BTreeSet<&'static str>,
}

impl Tally {
    fn compare(
        &mut self,
        case: &Case,
        schema: &Schema,
        answer: &Result<Value, Refusal>,
        (new, old): (&Value, Option<&Value>),
    ) {
        let Some(server) = schema.by_the_server(answer) else {
            self.not_looked_at += 1;
            return;
        };
        self.compared += 1;
        let kind = new["kind"].as_str().expect("kind");
        self.seen
            .extend(server.iter().map(|(_, m)| (kind.to_owned(), m.clone())));
        let other = schema.by_kube_cel(new, old);
        let patch = case.patch.to_string();
        let known = KNOWN.iter().find(|(value, _)| patch.contains(value));
        if server == other {
            return;
        }
        if let Some((value, _)) = known {
            self.known.insert(value);
        } else {
            let only = |a: &Broken, b: &Broken| a.difference(b).cloned().collect::<Vec<_>>();
            self.differences.push(format!(
                "{} {}: only the API server {:?}, only kube-cel {:?}",
                case.sample,
                case.patch,
                only(&server, &other),
                only(&other, &server)
            ));
        }
    }
}

async fn create(api: &Api, index: usize, object: &mut Value) -> Result<Value, Refusal> {
    object["metadata"]["name"] = format!("cel-{index}").into();
    api.create(object).await
}

#[tokio::test]
async fn kube_cel_and_the_api_server_find_the_same_rules_broken() {
    in_namespace(|api| async move {
        let schemas = schemas();
        let mut tally = Tally::default();
        let creates = cases::refused_on_create()
            .into_iter()
            .chain(cases::accepted_on_create());
        let mut index = 0;
        for case in creates {
            index += 1;
            let mut object = cases::spoiled(&case);
            let schema = &schemas[object["kind"].as_str().expect("kind")];
            let answer = create(&api, index, &mut object).await;
            tally.compare(&case, schema, &answer, (&object, None));
        }
        let updates = cases::refused_on_update()
            .into_iter()
            .chain(cases::allowed_on_update())
            .chain(cases::refused_on_create());
        for case in updates {
            index += 1;
            let mut object = cases::sample(case.sample);
            let schema = &schemas[object["kind"].as_str().expect("kind")];
            let old = create(&api, index, &mut object).await.expect("the sample");
            let mut new = old.clone();
            cases::merge(&mut new, &case.patch);
            let answer = api.replace(&new).await;
            tally.compare(&case, schema, &answer, (&new, Some(&old)));
        }
        assert!(
            tally.differences.is_empty(),
            "{} of {}:\n{}",
            tally.differences.len(),
            tally.compared,
            tally.differences.join("\n")
        );
        let listed = KNOWN.iter().map(|(value, _)| *value).collect();
        assert_eq!(tally.known, listed, "a known difference is gone: remove its line");
        println!(
            "{} objects compared, {} refused before rules were looked at",
            tally.compared, tally.not_looked_at
        );
        assert!(tally.compared >= 700, "only {} compared", tally.compared);
        assert!(
            tally.seen.len() >= 60,
            "only {} rules seen broken",
            tally.seen.len()
        );
    })
    .await;
}
