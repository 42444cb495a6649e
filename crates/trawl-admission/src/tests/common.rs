//! Requests made of the samples of the documentation.

use std::{fs, path::PathBuf};

use jiff::Timestamp;
use serde_json::Value;
use trawl_api::MirrorProvider;

use crate::*;

pub const USER: &str = "ada";
pub const WORKER: &str = "system:serviceaccount:trawl-system:trawl-worker";
pub const ADMINISTRATORS: &str = "trawl:retention-administrators";

pub fn rules() -> Rules {
    Rules {
        namespace: "trawl-system".into(),
        worker: WORKER.into(),
        retention_administrators: vec![ADMINISTRATORS.into()],
        retention_ceiling: Duration::from_secs(30 * 86_400),
        providers: vec![
            MirrorProvider::MikroTikRouterOS7,
            MirrorProvider::MikroTikRouterOS7SSH,
        ],
        filter: trawl_filter::Options::default(),
    }
}

/// The rules with a ceiling of so many hours.
pub fn ceiling(hours: u64) -> Rules {
    Rules {
        retention_ceiling: Duration::from_secs(hours * 3600),
        ..rules()
    }
}

pub fn sample(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../deploy/samples/{name}.yaml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_saphyr::from_str(&text).expect("YAML")
}

/// The object as the API server hands it to the webhooks: complete.
pub fn stored(name: &str) -> Value {
    let mut object = sample(name);
    let kind = kind_of(&object);
    schema::complete(kind, &mut object["spec"]);
    if kind == Kind::CaptureJob {
        object["metadata"]["annotations"]["trawl.cloud/requester"] = USER.into();
    }
    object
}

pub fn kind_of(object: &Value) -> Kind {
    Kind::from_name(object["kind"].as_str().expect("kind")).expect("a kind of Trawl")
}

/// JSON merge patch (RFC 7396).
pub fn merge(target: &mut Value, patch: &Value) {
    let Some(members) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    for (key, value) in members {
        if value.is_null() {
            target.as_object_mut().expect("object").remove(key);
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}

pub fn with(mut object: Value, patch: Value) -> Value {
    merge(&mut object, &patch);
    object
}

pub fn request(operation: Operation, object: Option<Value>, old: Option<Value>) -> Request {
    let any = object.as_ref().or(old.as_ref()).expect("an object");
    Request {
        kind: kind_of(any),
        operation,
        namespace: any["metadata"]["namespace"]
            .as_str()
            .expect("namespace")
            .to_owned(),
        object,
        old,
        caller: Caller {
            username: USER.into(),
            groups: vec!["system:authenticated".into()],
        },
        now: "2026-09-01T00:00:00Z".parse::<Timestamp>().expect("time"),
        tap: TapReference::Found,
    }
}

pub fn create(object: Value) -> Request {
    request(Operation::Create, Some(object), None)
}

pub fn update(old: Value, object: Value) -> Request {
    request(Operation::Update, Some(object), Some(old))
}

pub fn delete(old: Value) -> Request {
    request(Operation::Delete, None, Some(old))
}

pub fn as_administrator(mut request: Request) -> Request {
    request.caller.groups.push(ADMINISTRATORS.into());
    request
}

/// The verdict, which must stay within the limits of the API whatever it says.
pub fn judged(rules: &Rules, request: &Request) -> Verdict {
    let verdict = validate(rules, request);
    let mut once = verdict.problems.clone();
    once.dedup();
    assert_eq!(once, verdict.problems, "said once");
    for warning in &verdict.warnings {
        assert!(warning.len() <= 256 && !warning.ends_with("..."), "{warning}");
    }
    verdict
}

/// The fields of the problems, in order.
pub fn fields(verdict: &Verdict) -> Vec<&str> {
    verdict.problems.iter().map(|p| p.field.as_str()).collect()
}

#[track_caller]
pub fn must_admit(rules: &Rules, request: &Request) -> Verdict {
    let verdict = judged(rules, request);
    assert_eq!(verdict.problems, vec![], "{:?}", request.object);
    verdict
}

/// Refused with exactly one problem: of this field, and saying these words.
#[track_caller]
pub fn must_refuse(rules: &Rules, request: &Request, field: &str, words: &str) -> Verdict {
    let verdict = judged(rules, request);
    assert_eq!(fields(&verdict), vec![field], "{:?}", verdict.problems);
    let message = &verdict.problems[0].message;
    assert!(message.contains(words), "{words}: {message}");
    verdict
}

#[track_caller]
pub fn must_warn(verdict: &Verdict, field: &str, words: &str) {
    let found = verdict
        .warnings
        .iter()
        .any(|w| w.starts_with(&format!("{field}: ")) && w.contains(words));
    assert!(found, "{field}, {words}: {:?}", verdict.warnings);
}

/// Refused for this field, or for one inside it.
#[track_caller]
pub fn must_refuse_within(rules: &Rules, request: &Request, field: &str) {
    let verdict = judged(rules, request);
    let inside = verdict
        .problems
        .iter()
        .all(|problem| problem.field.starts_with(field));
    assert!(
        inside && !verdict.problems.is_empty(),
        "{field}: {:?}",
        verdict.problems
    );
}
