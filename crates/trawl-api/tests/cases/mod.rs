//! What the contract refuses, as edits of the samples: one table for the API server and for the validation of stored
//! objects.

pub mod capture_job;
pub mod capture_policy;
pub mod network_tap;
pub mod port_mirror;

use std::{fs, path::PathBuf};

use serde_json::Value;
use trawl_api::{CaptureJob, CapturePolicy, FieldProblem, NetworkTap, PortMirror};

/// One refusal: a sample, a JSON merge patch that spoils it, and the field that the message must name.
pub struct Case {
    pub sample: &'static str,
    pub patch: Value,
    pub field: &'static str,
}

/// A row of a table of cases.
pub fn case(sample: &'static str, patch: Value, field: &'static str) -> Case {
    Case { sample, patch, field }
}

/// Every refusal on create.
pub fn refused_on_create() -> Vec<Case> {
    let mut cases = network_tap::create();
    cases.extend(capture_policy::create());
    cases.extend(capture_job::create());
    cases.extend(port_mirror::create());
    cases
}

/// Every refusal on update of an object that was created from its sample.
pub fn refused_on_update() -> Vec<Case> {
    let mut cases = network_tap::update();
    cases.extend(capture_policy::update());
    cases.extend(capture_job::update());
    cases.extend(port_mirror::update());
    cases
}

/// Updates that change words but not values, or fields that may change.
pub fn allowed_on_update() -> Vec<Case> {
    let mut cases = network_tap::allowed();
    cases.extend(capture_policy::allowed());
    cases.extend(capture_job::allowed());
    cases.extend(port_mirror::allowed());
    cases
}

/// What lies at the limits, and is accepted on create.
pub fn accepted_on_create() -> Vec<Case> {
    let mut cases = network_tap::accepted();
    cases.extend(capture_policy::accepted());
    cases.extend(capture_job::accepted());
    cases.extend(port_mirror::accepted());
    cases
}

pub fn samples_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/samples")
}

/// Names of all samples that are resources of Trawl, below `deploy/samples` and without their extension.
pub fn samples() -> Vec<String> {
    let files = ["", "by-worker/"].into_iter().flat_map(|below| {
        let entries = fs::read_dir(samples_directory().join(below)).expect("deploy/samples");
        entries.map(move |entry| (below, entry.expect("entry").path()))
    });
    let mut names: Vec<String> = files
        .filter(|(_, path)| path.extension().is_some_and(|e| e == "yaml"))
        .filter(|(_, path)| {
            fs::read_to_string(path)
                .expect("a sample")
                .contains("\napiVersion: trawl.cloud/")
        })
        .map(|(below, path)| format!("{below}{}", path.file_stem().expect("name").to_string_lossy()))
        .collect();
    names.sort();
    names
}

/// A sample as JSON.
pub fn sample(name: &str) -> Value {
    let path = samples_directory().join(format!("{name}.yaml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The sample with the patch laid over it.
pub fn spoiled(case: &Case) -> Value {
    let mut object = sample(case.sample);
    merge(&mut object, &case.patch);
    object
}

/// JSON merge patch (RFC 7396).
pub fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Default::default());
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().expect("an object").remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

/// What validation says, or `None` when the object does not even parse, which a reconciler never gets to see.
pub fn validate(object: &Value) -> Option<Vec<FieldProblem>> {
    fn parse<T: serde::de::DeserializeOwned>(object: &Value) -> Option<T> {
        serde_json::from_value(object.clone()).ok()
    }
    match object["kind"].as_str().expect("kind") {
        "NetworkTap" => parse::<NetworkTap>(object).map(|o| o.spec.validate()),
        "CapturePolicy" => parse::<CapturePolicy>(object).map(|o| o.spec.validate()),
        "CaptureJob" => parse::<CaptureJob>(object).map(|o| o.spec.validate()),
        "PortMirror" => parse::<PortMirror>(object).map(|o| o.spec.validate()),
        other => panic!("unknown kind {other}"),
    }
}
