use serde_json::{Value, json};

use super::common::*;
use crate::lint::{Report, document};

fn fields(report: &Report) -> Vec<&str> {
    report.problems.iter().map(|p| p.field.as_str()).collect()
}

#[test]
fn every_sample_is_sound() {
    for name in [
        "capturejob-manual",
        "by-worker/capturejob-policy",
        "capturepolicy-hubble",
        "capturepolicy-suricata",
        "networktap-mirror",
        "networktap-nodes",
        "portmirror",
    ] {
        let object = sample(name);
        let report = document(&rules(), &object);
        assert_eq!(report.problems, vec![], "{name}");
        assert_eq!(report.kind, Some(kind_of(&object)));
        assert_eq!(report.name, object["metadata"]["name"].as_str().expect("name"));
    }
}

#[test]
fn unknown_fields_are_found_wherever_they_are() {
    for (sample, patch, field) in [
        ("capturejob-manual", json!({"spce": {}}), "spce"),
        (
            "capturejob-manual",
            json!({"metadata": {"nmae": "x"}}),
            "metadata.nmae",
        ),
        (
            "capturejob-manual",
            json!({"spec": {"Filter": "tcp"}}),
            "spec.Filter",
        ),
        (
            "by-worker/capturejob-policy",
            json!({"spec": {"trigger": {"flow": {"vlan": 5}}}}),
            "spec.trigger.flow.vlan",
        ),
        (
            "networktap-mirror",
            json!({"spec": {"analyzers": {"snort": {}}}}),
            "spec.analyzers.snort",
        ),
        (
            "networktap-mirror",
            json!({"spec": {"mirrorInterface": {"nodeSelector": {"labels": {}}}}}),
            "spec.mirrorInterface.nodeSelector.labels",
        ),
    ] {
        let report = document(&rules(), &with(super::common::sample(sample), patch));
        assert_eq!(fields(&report), [field]);
        assert!(
            report.problems[0].message.contains("known are: "),
            "{:?}",
            report.problems
        );
    }
}

#[test]
fn defaults_are_filled_in_as_the_api_server_does() {
    let bare = json!({
        "apiVersion": "trawl.cloud/v1alpha1", "kind": "CaptureJob",
        "metadata": {"generateName": "manual-"},
        "spec": {"tapRef": {"name": "t"}, "targetNode": "n", "duration": "1m", "maxSize": "1Mi", "filter": null},
    });
    let report = document(&ceiling(24), &bare);
    assert_eq!(report.problems, vec![]);
    assert_eq!(report.name, "manual-");
    assert!(
        report.warnings.iter().any(|w| w.contains("lowered to 1d")),
        "{:?}",
        report.warnings
    );
    assert!(
        report.warnings.iter().any(|w| w.contains("every packet")),
        "{:?}",
        report.warnings
    );
}

#[test]
fn a_field_has_one_problem_and_the_validators_word_it() {
    for (patch, field, words) in [
        (json!({"snaplen": 63}), "spec.snaplen", "64"),
        (json!({"snaplen": 99_999_999_999_i64}), "spec.snaplen", "at most"),
        (json!({"snaplen": 1.5}), "spec.snaplen", "a whole number"),
        (json!({"duration": "soon"}), "spec.duration", "1s"),
        (json!({"duration": "2h"}), "spec.duration", "1s"),
        (json!({"retention": "1d12h"}), "spec.retention", "1h"),
        (json!({"maxSize": "2Gi"}), "spec.maxSize", "1Gi"),
        (
            json!({"maxSize": true}),
            "spec.maxSize",
            "must be a text or a whole number, not true or false",
        ),
        (
            json!({"requestType": "Cron"}),
            "spec.requestType",
            "must be one of",
        ),
        (json!({"targetNode": null}), "spec.targetNode", "required"),
        (json!({"tapRef": null}), "spec.tapRef", "is required"),
        (json!({"filter": "tcp port http"}), "spec.filter", "byte 10"),
    ] {
        let report = document(
            &rules(),
            &with(sample("capturejob-manual"), json!({"spec": patch})),
        );
        assert_eq!(fields(&report), [field], "{:?}", report.problems);
        assert!(
            report.problems[0].message.contains(words),
            "{words}: {:?}",
            report.problems
        );
    }
}

#[test]
fn what_is_no_object_of_trawl_is_passed_over_and_what_should_be_one_is_not() {
    for other in [
        json!({"apiVersion": "v1", "kind": "Namespace"}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "nonsense": 5}),
        json!({"apiVersion": "config.trawl.cloud/v1", "kind": "Installation"}),
    ] {
        assert_eq!(document(&rules(), &other), Report::default());
    }
    for (wrong, field) in [
        (json!({"kind": "CaptureJob"}), "apiVersion"),
        (
            json!({"apiVersion": "trawl.cloud/v1", "kind": "CaptureJob"}),
            "apiVersion",
        ),
        (
            json!({"apiVersion": "trawl.cloud", "kind": "CaptureJob"}),
            "apiVersion",
        ),
        (
            json!({"apiVersion": "trawl.cloud/v1alpha1", "kind": "capturejob"}),
            "kind",
        ),
        (json!({"apiVersion": "trawl.cloud/v1alpha1"}), "kind"),
        (json!({"apiVersion": 5}), "apiVersion"),
        (json!([]), "document"),
        (json!("text"), "document"),
        (Value::Null, "document"),
    ] {
        let report = document(&rules(), &wrong);
        assert_eq!(fields(&report), [field], "{wrong}");
        assert_eq!(report.kind, None);
    }
}

#[test]
fn metadata_is_looked_at_too() {
    for (patch, field) in [
        (json!({"name": null}), "metadata.name"),
        (json!({"name": "Upper"}), "metadata.name"),
        (json!({"name": true}), "metadata.name"),
        (json!({"namespace": 5}), "metadata.namespace"),
        (json!({"name": "a".repeat(254)}), "metadata.name"),
        (
            json!({"name": null, "generateName": "Upper-"}),
            "metadata.generateName",
        ),
        (json!({"namespace": "elsewhere"}), "metadata.namespace"),
        (json!({"labels": {"a": 5}}), "metadata.labels"),
        (json!({"annotations": ["x"]}), "metadata.annotations"),
        (
            json!({"ownerReferences": [{"uid": "1"}]}),
            "metadata.ownerReferences",
        ),
    ] {
        let report = document(
            &rules(),
            &with(sample("capturejob-manual"), json!({"metadata": patch})),
        );
        assert_eq!(fields(&report), [field]);
    }
    let here = with(
        sample("capturejob-manual"),
        json!({"metadata": {"namespace": null}}),
    );
    assert_eq!(document(&rules(), &here).problems, vec![]);
}

#[test]
fn a_status_in_a_manifest_is_a_warning() {
    let object = with(
        sample("capturejob-manual"),
        json!({"status": {"phase": "Completed"}}),
    );
    let report = document(&rules(), &object);
    assert_eq!(report.problems, vec![]);
    assert!(report.warnings.iter().any(|w| w.starts_with("status: ")));
}
