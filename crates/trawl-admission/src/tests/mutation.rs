use serde_json::{Value, json};

use super::common::*;
use crate::*;

const MANUAL: &str = "capturejob-manual";

/// The object after the patch, which is applied by its own rules.
fn patched(rules: &Rules, request: &Request) -> (Value, Vec<String>) {
    let mutation = mutate(rules, request);
    let mut object = request.object.clone().expect("object");
    for operation in &mutation.patch {
        assert_eq!(operation["op"], "add");
        let path = operation["path"].as_str().expect("path");
        let (parent, name) = path.rsplit_once('/').expect("a pointer");
        let name = name.replace("~1", "/").replace("~0", "~");
        let parent = object
            .pointer_mut(parent)
            .unwrap_or_else(|| panic!("{path}: no parent"));
        parent[name.as_str()] = operation["value"].clone();
    }
    (object, mutation.warnings)
}

fn annotation(object: &Value) -> &Value {
    &object["metadata"]["annotations"]["trawl.cloud/requester"]
}

#[test]
fn the_one_who_asks_is_always_written_into_a_new_capture() {
    for (annotations, warned) in [
        (json!(null), false),
        (json!({"trawl.cloud/requester": null, "other": "x"}), false),
        (json!({"trawl.cloud/requester": "grace"}), true),
        (json!({"trawl.cloud/requester": ""}), true),
        (json!({"trawl.cloud/requester": USER}), false),
    ] {
        let mut object = sample(MANUAL);
        object["metadata"]["annotations"] = json!({});
        let object = with(object, json!({"metadata": {"annotations": annotations}}));
        let (object, warnings) = patched(&rules(), &create(object));
        assert_eq!(*annotation(&object), USER);
        assert_eq!(!warnings.is_empty(), warned, "{warnings:?}");
        must_admit(&rules(), &create(object));
    }
    let kept = with(
        sample(MANUAL),
        json!({"metadata": {"annotations": {"other": "x"}}}),
    );
    let (object, _) = patched(&rules(), &create(kept));
    assert_eq!(object["metadata"]["annotations"]["other"], "x");
}

#[test]
fn a_user_name_with_any_letters_is_kept_as_it_is() {
    for username in ["system:serviceaccount:a:b", "a/b~c", "ünï \"quoted\"", ""] {
        let mut request = create(sample(MANUAL));
        request.caller.username = username.into();
        let (object, _) = patched(&rules(), &request);
        assert_eq!(*annotation(&object), username);
        request.object = Some(object);
        must_admit(&rules(), &request);
    }
}

#[test]
fn an_update_never_writes_the_requester() {
    let old = stored(MANUAL);
    let object = with(
        old.clone(),
        json!({"metadata": {"annotations": {"trawl.cloud/requester": "grace"}}, "spec": {"retention": "8d"}}),
    );
    assert_eq!(mutate(&rules(), &update(old, object)), Mutation::default());
}

#[test]
fn a_mirror_port_is_promiscuous_and_a_nodes_own_interface_is_left_alone() {
    for promiscuous in [json!(false), json!(null), json!(true)] {
        let object = with(
            sample("networktap-mirror"),
            json!({"spec": {"mode": null, "mirrorInterface": {"promiscuous": promiscuous}}}),
        );
        let (object, _) = patched(&rules(), &create(object));
        assert_eq!(object["spec"]["mode"], "Passive");
        assert_eq!(object["spec"]["mirrorInterface"]["promiscuous"], true);
    }
    for promiscuous in [json!(false), json!(true)] {
        let object = with(
            stored("networktap-nodes"),
            json!({"spec": {"nodeInterface": {"promiscuous": promiscuous}}}),
        );
        assert_eq!(mutate(&rules(), &create(object)), Mutation::default());
    }
    let broken = with(
        sample("networktap-mirror"),
        json!({"spec": {"mirrorInterface": {"promiscuous": "yes"}}}),
    );
    assert_eq!(
        mutate(&rules(), &create(broken)),
        Mutation::default(),
        "the schema refuses it"
    );
}

#[test]
fn a_mode_that_is_given_is_left_for_the_schema_to_judge() {
    let object = with(stored("networktap-nodes"), json!({"spec": {"mode": "Inline"}}));
    assert_eq!(mutate(&rules(), &create(object)), Mutation::default());
}

#[test]
fn the_default_retention_becomes_the_ceiling_and_nothing_else_does() {
    for sample in [MANUAL, "capturepolicy-suricata"] {
        for (hours, given, becomes) in [
            (240, json!("30d"), Some("10d")),
            (240, json!("720h"), Some("10d")),
            (240, json!(null), Some("10d")),
            (5, json!("30d"), Some("5h")),
            (720, json!("30d"), None),
            (240, json!("29d"), None),
            (240, json!("10d"), None),
            (240, json!("1h"), None),
            (240, json!("31d"), None),
            (240, json!("soon"), None),
            (240, json!(30), None),
        ] {
            let object = with(stored(sample), json!({"spec": {"retention": given}}));
            let before = object["spec"]["retention"].clone();
            let (object, warnings) = patched(&ceiling(hours), &create(object));
            let lowered = warnings
                .iter()
                .any(|w| w.starts_with("spec.retention: ") && w.contains("lowered"));
            assert_eq!(lowered, becomes.is_some(), "{given}: {warnings:?}");
            match becomes {
                Some(text) => {
                    assert_eq!(object["spec"]["retention"], text);
                    must_admit(&ceiling(hours), &create(object));
                }
                None => assert_eq!(object["spec"]["retention"], before),
            }
        }
    }
}

#[test]
fn a_stored_retention_above_a_lowered_ceiling_is_not_changed_by_passing_updates() {
    for sample in [MANUAL, "capturepolicy-suricata"] {
        let old = with(stored(sample), json!({"spec": {"retention": "30d"}}));
        let labelled = with(old.clone(), json!({"metadata": {"labels": {"a": "b"}}}));
        assert_eq!(mutate(&ceiling(240), &update(old, labelled)), Mutation::default());
    }
    let old = with(stored(MANUAL), json!({"spec": {"retention": "30d"}}));
    let reworded = with(
        old.clone(),
        json!({"spec": {"retention": "720h", "duration": "120s"}}),
    );
    assert_eq!(mutate(&ceiling(240), &update(old, reworded)), Mutation::default());
    let armed = with(
        stored("capturepolicy-suricata"),
        json!({"spec": {"retention": "30d"}}),
    );
    let disarmed = with(armed.clone(), json!({"spec": {"armed": false}}));
    assert_eq!(
        mutate(&ceiling(240), &update(armed, disarmed)),
        Mutation::default()
    );
}

#[test]
fn a_capture_without_retention_that_is_applied_again_stays_at_the_ceiling() {
    let old = with(stored(MANUAL), json!({"spec": {"retention": "10d"}}));
    let again = with(old.clone(), json!({"spec": {"retention": "30d"}}));
    let (object, _) = patched(&ceiling(240), &update(old.clone(), again));
    assert_eq!(object, old);
}

#[test]
fn what_lies_in_another_namespace_is_refused_for_that_alone() {
    let object = with(
        sample(MANUAL),
        json!({"metadata": {"namespace": "elsewhere"}, "spec": {"retention": null}}),
    );
    let (object, _) = patched(&ceiling(240), &create(object));
    must_refuse(
        &ceiling(240),
        &create(object),
        "metadata.namespace",
        "trawl-system",
    );
}
