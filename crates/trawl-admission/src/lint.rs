//! Manifests without a cluster: what the API server and the webhooks would say.

use jiff::Timestamp;
use serde_json::Value;
use trawl_api::{FieldProblem, names, validation::is_subdomain};

use crate::{
    Caller, Kind, Operation, Request, Rules, TapReference, findings::Findings, mutate, schema, validate,
};

/// What was found about one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Its kind; `None` when it is none of the four, and then nothing else was looked at.
    pub kind: Option<Kind>,
    /// Its name, its generateName, or nothing.
    pub name: String,
    /// Why it would be refused.
    pub problems: Vec<FieldProblem>,
    /// What its author should know although it would be accepted.
    pub warnings: Vec<String>,
}

/// Fields of an object beside what its kind defines.
const TOP: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];
/// Fields of the metadata of any object.
const METADATA: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Judges a document as if it were created now, with all privileges that its kind may need. Documents of other API
/// groups are passed over.
#[must_use]
pub fn document(rules: &Rules, document: &Value) -> Report {
    let api_version = document["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let foreign = ![group, api_version].contains(&names::GROUP) && !api_version.is_empty();
    if foreign && document.is_object() {
        return Report::default();
    }
    let mut findings = Findings::default();
    let metadata = &document["metadata"];
    let named = ["name", "generateName"]
        .into_iter()
        .find_map(|field| metadata[field].as_str());
    let name = named.unwrap_or_default().to_owned();
    let kind = document["kind"].as_str().and_then(Kind::from_name);
    if !document.is_object() {
        findings.problem(
            "document",
            "must be an object with apiVersion, kind, metadata and spec",
        );
    } else if version != names::VERSION || group != names::GROUP {
        findings.problem(
            "apiVersion",
            format!("must be {}/{}", names::GROUP, names::VERSION),
        );
    } else if kind.is_none() {
        let kinds = Kind::ALL.map(Kind::as_str).join(", ");
        findings.problem("kind", format!("must be one of {kinds}"));
    }
    let kind = kind.filter(|_| !findings.has("apiVersion"));
    match kind {
        Some(kind) => object(rules, kind, document.clone(), findings, name),
        None => Report {
            kind,
            name,
            problems: findings.into_parts().0,
            warnings: Vec::new(),
        },
    }
}

fn object(rules: &Rules, kind: Kind, mut object: Value, mut findings: Findings, name: String) -> Report {
    unknown_fields(&object, "", &TOP, &mut findings);
    metadata(&object["metadata"], &mut findings);
    if !object["status"].is_null() {
        findings.warn("status", "is not used: only the programs of Trawl write it");
    }
    if kind == Kind::CaptureJob && object["spec"]["requestType"] == "Policy" {
        findings.warn(
            "spec.requestType",
            "Policy is reserved for the event worker of Trawl: the cluster refuses it from anybody else",
        );
    }
    schema::complete(kind, &mut object["spec"]);
    let refused = schema::problems(kind, &object["spec"]);
    let mut request = request(rules, kind, object);
    let (edits, mutation) = mutate::edits(rules, &request);
    if let Some(object) = &mut request.object {
        edits.iter().for_each(|edit| edit.apply(object));
    }
    let verdict = validate(rules, &request);
    let (mut problems, mut warnings) = findings.into_parts();
    problems.extend(verdict.problems);
    for problem in refused {
        // Where the validators have a word about the field, it is the better one.
        if !problems.iter().any(|known| known.field == problem.field) {
            problems.push(problem);
        }
    }
    warnings.extend(mutation);
    warnings.extend(verdict.warnings);
    Report {
        kind: Some(kind),
        name,
        problems,
        warnings,
    }
}

fn request(rules: &Rules, kind: Kind, object: Value) -> Request {
    let policy = object["spec"]["requestType"] == "Policy";
    let username = if policy {
        rules.worker.clone()
    } else {
        "lint".to_owned()
    };
    Request {
        kind,
        operation: Operation::Create,
        namespace: object["metadata"]["namespace"]
            .as_str()
            .unwrap_or(&rules.namespace)
            .to_owned(),
        object: Some(object),
        old: None,
        caller: Caller {
            username,
            groups: Vec::new(),
        },
        now: Timestamp::UNIX_EPOCH,
        tap: TapReference::Unknown,
    }
}

fn unknown_fields(value: &Value, path: &str, known: &[&str], findings: &mut Findings) {
    for name in value.as_object().into_iter().flatten().map(|(name, _)| name) {
        if !known.contains(&name.as_str()) {
            let name: String = name.chars().filter(char::is_ascii_graphic).take(63).collect();
            findings.problem(
                format!("{path}{name}"),
                format!("is no field here; known are: {}", known.join(", ")),
            );
        }
    }
}

fn metadata(metadata: &Value, findings: &mut Findings) {
    if !metadata.is_object() {
        return findings.problem("metadata", "is required");
    }
    unknown_fields(metadata, "metadata.", &METADATA, findings);
    for field in ["name", "generateName", "namespace"] {
        if !metadata[field].is_null() && !metadata[field].is_string() {
            return findings.problem(format!("metadata.{field}"), "must be a text; put it in quotes");
        }
    }
    let name = metadata["name"].as_str();
    let generated = metadata["generateName"].as_str();
    match (name, generated) {
        (None, None) => findings.problem("metadata.name", "is required, or metadata.generateName"),
        (Some(name), _) if !is_name(name, false) => findings.problem("metadata.name", NAME),
        (None, Some(prefix)) if !is_name(prefix, true) => findings.problem("metadata.generateName", NAME),
        _ => {}
    }
    for field in ["labels", "annotations"] {
        let sound = |map: &Value| {
            map.as_object()
                .is_some_and(|map| map.values().all(Value::is_string))
        };
        if !metadata[field].is_null() && !sound(&metadata[field]) {
            findings.problem(
                format!("metadata.{field}"),
                "must be an object of texts; put numbers and true or false in quotes",
            );
        }
    }
}

const NAME: &str = "must be a DNS subdomain of 1 to 253 characters: lower-case letters, digits, - and .";

/// Whether a name of an object is allowed; a prefix gets five more letters, so it may end in any.
fn is_name(name: &str, prefix: bool) -> bool {
    is_subdomain(name) || (prefix && is_subdomain(&format!("{name}x")))
}
