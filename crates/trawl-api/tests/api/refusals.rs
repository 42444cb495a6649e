//! What is accepted and what is refused.

use serde_json::{Value, json};

use crate::{
    cases::{self, Case},
    harness::{Api, Refusal, holds, in_namespace},
};

/// Describes what is wrong with an answer that should be a refusal that names the field.
fn not_refused(case: &Case, answer: Result<Value, Refusal>) -> Option<String> {
    let complaint = match answer {
        Ok(_) => "was accepted".to_owned(),
        Err(refusal) if refusal.code != 422 && refusal.code != 400 => format!("got {refusal:?}"),
        // A rule that cannot be evaluated refuses too, but with words that help nobody. Only what passes for a time
        // and is none must end that way.
        Err(refusal)
            if refusal.message.contains("evaluating rule") && !refusal.message.contains("date-time") =>
        {
            format!("got {}", refusal.message)
        }
        Err(refusal) if !names(&refusal.message, case.field) => {
            format!("does not name {}: {}", case.field, refusal.message)
        }
        Err(_) => return None,
    };
    Some(format!("{} {}: {complaint}", case.sample, case.patch))
}

/// Whether `message` names `field` itself or something inside it, and not merely a field with a longer name.
fn names(message: &str, field: &str) -> bool {
    message.match_indices(field).any(|(at, _)| {
        let after = message[at + field.len()..].chars().next();
        after.is_none_or(|c| !c.is_ascii_alphanumeric())
    })
}

#[tokio::test]
async fn every_sample_applies_as_it_stands() {
    in_namespace(|api| async move {
        let names = cases::samples();
        assert!(names.len() >= 7, "{names:?}");
        for name in names {
            let object = cases::sample(&name);
            api.create(&object)
                .await
                .unwrap_or_else(|e| panic!("{name}: {}", e.message));
            let stored = api.get(&api.path(&object)).await;
            assert!(
                holds(&stored["spec"], &object["spec"]),
                "{name} was changed: {stored}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn what_the_contract_refuses_is_refused_on_create_with_the_name_of_the_field() {
    in_namespace(|api| async move {
        let cases = cases::refused_on_create();
        assert!(cases.len() >= 300, "only {} cases", cases.len());
        let mut complaints = vec![];
        for case in &cases {
            let answer = api.create(&cases::spoiled(case)).await;
            complaints.extend(not_refused(case, answer));
        }
        assert!(
            complaints.is_empty(),
            "{} of {}:\n{}",
            complaints.len(),
            cases.len(),
            complaints.join("\n")
        );
    })
    .await;
}

/// Creates the sample of `case` under a name of its own and replaces it by the patched one.
async fn update(api: &Api, index: usize, case: &Case) -> Result<Value, Refusal> {
    let mut object = cases::sample(case.sample);
    object["metadata"]["name"] = format!("update-{index}").into();
    let mut stored = api
        .create(&object)
        .await
        .unwrap_or_else(|e| panic!("{}: {}", case.sample, e.message));
    cases::merge(&mut stored, &case.patch);
    api.replace(&stored).await
}

#[tokio::test]
async fn what_the_contract_refuses_is_refused_on_update_with_the_name_of_the_field() {
    in_namespace(|api| async move {
        let cases = cases::refused_on_update();
        let mut complaints = vec![];
        for (index, case) in cases.iter().enumerate() {
            complaints.extend(not_refused(case, update(&api, index, case).await));
        }
        assert!(
            complaints.is_empty(),
            "{} of {}:\n{}",
            complaints.len(),
            cases.len(),
            complaints.join("\n")
        );
    })
    .await;
}

#[tokio::test]
async fn an_update_that_keeps_every_immutable_value_is_accepted_in_other_words() {
    in_namespace(|api| async move {
        for (index, case) in cases::allowed_on_update().iter().enumerate() {
            match update(&api, index, case).await {
                Err(refusal) => panic!("{} {}: {}", case.sample, case.patch, refusal.message),
                // A stored object that does not parse would make the whole kind unreadable for watchers.
                Ok(stored) => {
                    assert_eq!(
                        cases::validate(&stored),
                        Some(vec![]),
                        "{} {}",
                        case.sample,
                        case.patch
                    );
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_refused_on_create_is_refused_on_update_as_well() {
    in_namespace(|api| async move {
        let mut complaints = vec![];
        for (index, case) in cases::refused_on_create().iter().enumerate() {
            complaints.extend(not_refused(case, update(&api, index, case).await));
        }
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    })
    .await;
}

#[tokio::test]
async fn what_lies_at_a_limit_is_accepted_and_readable() {
    in_namespace(|api| async move {
        let cases = cases::accepted_on_create();
        assert!(cases.len() >= 100, "only {} cases", cases.len());
        let mut complaints = vec![];
        for (index, case) in cases.iter().enumerate() {
            let mut object = cases::spoiled(case);
            object["metadata"]["name"] = format!("accepted-{index}").into();
            match api.create(&object).await {
                Err(refusal) => {
                    complaints.push(format!("{} {}: {}", case.sample, case.patch, refusal.message));
                }
                Ok(stored) if cases::validate(&stored) != Some(vec![]) => {
                    let problems = cases::validate(&stored);
                    complaints.push(format!("{} {}: {problems:?}", case.sample, case.patch));
                }
                Ok(_) => {}
            }
        }
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    })
    .await;
}

#[tokio::test]
async fn an_immutable_optional_field_can_neither_appear_nor_vanish() {
    in_namespace(|api| async move {
        let mut object = cases::sample("capturejob-manual");
        object["spec"].as_object_mut().expect("spec").remove("filter");
        let mut stored = api.create(&object).await.expect("created");
        stored["spec"]["filter"] = "tcp".into();
        let refusal = api.replace(&stored).await.expect_err("a filter appeared");
        assert!(refusal.message.contains("spec.filter"), "{}", refusal.message);

        let mut object = cases::sample("by-worker/capturejob-policy");
        object["spec"].as_object_mut().expect("spec").remove("targetNode");
        let mut stored = api
            .create(&object)
            .await
            .expect("a policy's job may lack a target");
        stored["spec"]["targetNode"] = "node".into();
        let refusal = api.replace(&stored).await.expect_err("a target appeared");
        assert!(refusal.message.contains("spec.targetNode"), "{}", refusal.message);
    })
    .await;
}

#[tokio::test]
async fn every_member_of_a_closed_enum_is_accepted() {
    in_namespace(|api| async move {
        for (sample, field, value) in [
            ("portmirror", "provider", "MikroTikRouterOS7"),
            ("portmirror", "provider", "MikroTikRouterOS7SSH"),
            ("portmirror", "direction", "Both"),
            ("portmirror", "direction", "Ingress"),
            ("portmirror", "direction", "Egress"),
            ("networktap-mirror", "mode", "Passive"),
        ] {
            let mut object = cases::sample(sample);
            object["metadata"]["name"] = format!("{}-{}", field, value.to_lowercase()).into();
            object["spec"][field] = value.into();
            api.create(&object)
                .await
                .unwrap_or_else(|e| panic!("{field} {value}: {}", e.message));
        }
    })
    .await;
}

#[tokio::test]
async fn unknown_fields_are_refused_and_never_stored() {
    in_namespace(|api| async move {
        for (name, path) in [
            ("networktap-mirror", "/spec/mirrorInterface"),
            ("capturepolicy-suricata", "/spec/capture"),
            ("capturejob-manual", "/spec"),
            ("portmirror", "/spec/deviceRef"),
        ] {
            let mut object = cases::sample(name);
            object.pointer_mut(path).expect("a path")["bogus"] = json!(1);
            let refusal = api
                .create(&object)
                .await
                .expect_err("an unknown field was accepted");
            assert!(refusal.message.contains("bogus"), "{}", refusal.message);
            let stored = api.create_with(&object, "Ignore").await.expect("created");
            assert!(
                stored.pointer(path).expect("a path").get("bogus").is_none(),
                "{name} kept an unknown field"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_null_branch_is_no_branch() {
    in_namespace(|api| async move {
        for (name, path, field) in [
            ("networktap-mirror", "/spec", "mirrorInterface"),
            ("capturepolicy-suricata", "/spec/trigger", "suricataAlert"),
            ("by-worker/capturejob-policy", "/spec", "policyRef"),
            ("by-worker/capturejob-policy", "/spec", "trigger"),
            ("by-worker/capturejob-policy", "/spec", "deduplicationKey"),
            ("by-worker/capturejob-policy", "/spec/trigger", "suricata"),
            ("capturejob-manual", "/spec", "targetNode"),
        ] {
            let mut object = cases::sample(name);
            object.pointer_mut(path).expect("a path")[field] = Value::Null;
            let refusal = api.create(&object).await.expect_err("null passed for a branch");
            assert!(
                names(&refusal.message, field),
                "{name} {field}: {}",
                refusal.message
            );
        }
        let mut object = cases::sample("networktap-mirror");
        object["spec"]["nodeInterface"] = Value::Null;
        let stored = api
            .create(&object)
            .await
            .expect("a null beside the branch is nothing");
        assert!(stored["spec"].get("nodeInterface").is_none());
    })
    .await;
}

#[tokio::test]
async fn absent_fields_take_the_defaults_of_the_contract() {
    in_namespace(|api| async move {
        let mut tap = cases::sample("networktap-nodes");
        tap["spec"].as_object_mut().expect("spec").remove("mode");
        let tap = api.create(&tap).await.expect("tap");
        assert_eq!(tap["spec"]["mode"], "Passive");
        assert_eq!(tap["spec"]["nodeInterface"]["promiscuous"], false);
        assert_eq!(tap["spec"]["analyzers"]["suricata"]["enabled"], false);

        let mut policy = cases::sample("capturepolicy-suricata");
        for field in ["armed", "retention"] {
            policy["spec"].as_object_mut().expect("spec").remove(field);
        }
        policy["spec"]["capture"]
            .as_object_mut()
            .expect("capture")
            .remove("snaplen");
        let policy = api.create(&policy).await.expect("policy");
        assert_eq!(policy["spec"]["armed"], false);
        assert_eq!(policy["spec"]["retention"], "30d");
        assert_eq!(policy["spec"]["capture"]["snaplen"], 0);
        assert_eq!(policy["spec"]["capture"]["preTrigger"], "0s");

        let mut job = cases::sample("capturejob-manual");
        for field in ["requestType", "snaplen", "retention"] {
            job["spec"].as_object_mut().expect("spec").remove(field);
        }
        let job = api.create(&job).await.expect("job");
        assert_eq!(job["spec"]["requestType"], "Manual");
        assert_eq!(job["spec"]["snaplen"], 0);
        assert_eq!(job["spec"]["retention"], "30d");
        assert_eq!(job["spec"]["preTrigger"], "0s");

        let mut mirror = cases::sample("portmirror");
        mirror["spec"].as_object_mut().expect("spec").remove("direction");
        let mirror = api.create(&mirror).await.expect("mirror");
        assert_eq!(mirror["spec"]["direction"], "Both");
    })
    .await;
}

#[tokio::test]
async fn a_generated_name_works_as_in_the_contracts_example() {
    in_namespace(|api| async move {
        let mut object = cases::sample("capturejob-manual");
        object["metadata"] = json!({"generateName": "manual-"});
        let stored = api.create(&object).await.expect("created");
        assert!(
            stored["metadata"]["name"]
                .as_str()
                .expect("name")
                .starts_with("manual-")
        );
    })
    .await;
}

/// Every rule of a schema: the field that its refusal names, and the message.
fn rules(schema: &Value, path: &str, found: &mut Vec<(String, String)>) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let field = rule["fieldPath"].as_str().unwrap_or_default();
        found.push((
            format!("{path}{field}"),
            rule["message"].as_str().expect("a message").to_owned(),
        ));
    }
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        rules(child, &path, found);
    }
    if schema["items"].is_object() {
        rules(&schema["items"], path, found);
    }
}

/// `spec.list[3].x` without the index.
fn without_index(field: &str) -> String {
    field
        .split('[')
        .map(|part| part.split_once(']').map_or(part, |(_, rest)| rest))
        .collect()
}

#[tokio::test]
async fn every_rule_on_a_spec_is_seen_to_refuse() {
    in_namespace(|api| async move {
        let mut seen = vec![];
        let mut note = |sample: &str, answer: Result<Value, Refusal>| {
            let kind = cases::sample(sample)["kind"].as_str().expect("kind").to_owned();
            for (field, message) in answer.err().into_iter().flat_map(|refusal| refusal.causes) {
                seen.push((kind.clone(), without_index(&field), message));
            }
        };
        for case in cases::refused_on_create() {
            note(case.sample, api.create(&cases::spoiled(&case)).await);
        }
        for (index, case) in cases::refused_on_update().iter().enumerate() {
            note(case.sample, update(&api, index, case).await);
        }
        let mut silent = vec![];
        for definition in trawl_api::crds::all().expect("definitions") {
            let kind = &definition.value["spec"]["names"]["kind"];
            let root = &definition.value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let mut expected = vec![];
            rules(&root["properties"]["spec"], "spec", &mut expected);
            assert!(!expected.is_empty());
            silent.extend(expected.into_iter().filter(|(field, message)| {
                !seen
                    .iter()
                    .any(|(k, f, m)| *k == *kind && f == field && m.contains(message.as_str()))
            }));
        }
        assert!(silent.is_empty(), "never seen: {silent:#?}");
    })
    .await;
}

#[tokio::test]
async fn a_refusal_never_repeats_a_filter_a_template_or_what_was_recorded() {
    in_namespace(|api| async move {
        for (sample, parent, field) in [
            ("capturejob-manual", "/spec", "filter"),
            ("capturepolicy-suricata", "/spec/capture", "filterTemplate"),
            (
                "by-worker/capturejob-policy",
                "/spec/trigger/suricata",
                "category",
            ),
            ("by-worker/capturejob-policy", "/spec/trigger/suricata", "message"),
        ] {
            let mut refused = 0;
            for value in [
                json!("confidential {{"),
                json!("confidential\u{e9}"),
                json!("confidential".repeat(99)),
                json!(["confidential"]),
                json!({"key": "confidential"}),
            ] {
                let mut object = cases::sample(sample);
                object["metadata"] = json!({"generateName": "confidence-"});
                object.pointer_mut(parent).expect("a path")[field] = value;
                for validation in ["Strict", "Ignore"] {
                    let Err(refusal) = api.create_with(&object, validation).await else {
                        continue;
                    };
                    refused += 1;
                    assert!(!refusal.message.contains("confidential"), "{}", refusal.message);
                }
            }
            assert!(refused >= 6, "only {refused} refusals of {field} were looked at");
        }
    })
    .await;
}
