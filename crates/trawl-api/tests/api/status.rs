//! Status with several writers.

use serde_json::{Value, json};

use crate::{
    cases,
    harness::{Api, in_namespace},
};

const TIME: &str = "2026-08-29T19:30:20Z";

fn status_of(kind: &str, name: &str, status: Value) -> Value {
    json!({"apiVersion": "trawl.cloud/v1alpha1", "kind": kind, "metadata": {"name": name}, "status": status})
}

fn target(node: &str, packets: i64) -> Value {
    json!({
        "nodeName": node,
        "interface": "eth0",
        "reporterInstance": format!("pod-{node}"),
        "heartbeatTime": TIME,
        "packetsObserved": packets,
        "duplication": "Unknown",
        "rejectedRecords": 0,
    })
}

/// Creates the node tap and returns its name and the path of its status.
async fn tap(api: &Api) -> (String, String) {
    let object = cases::sample("networktap-nodes");
    api.create(&object).await.expect("created");
    let name = object["metadata"]["name"].as_str().expect("name").to_owned();
    (name, format!("{}/status", api.path(&object)))
}

fn packets(status: &Value) -> Vec<(String, i64)> {
    let targets = status["targets"].as_array().cloned().unwrap_or_default();
    let pair = |t: &Value| {
        (
            t["nodeName"].as_str().expect("node").to_owned(),
            t["packetsObserved"].as_i64().expect("packets"),
        )
    };
    targets.iter().map(pair).collect()
}

#[tokio::test]
async fn two_sensors_on_one_tap_never_prune_each_other() {
    in_namespace(|api| async move {
        let (name, path) = tap(&api).await;
        let report = |targets: Value| status_of("NetworkTap", &name, json!({"targets": targets}));
        let pairs = |list: &[(&str, i64)]| {
            list.iter()
                .map(|(n, p)| ((*n).to_owned(), *p))
                .collect::<Vec<_>>()
        };

        api.apply(&path, "trawl-sensor-a", &report(json!([target("a", 1)])))
            .await
            .expect("a reports");
        api.apply(&path, "trawl-sensor-b", &report(json!([target("b", 2)])))
            .await
            .expect("b reports");
        let summary = status_of(
            "NetworkTap",
            &name,
            json!({"observedGeneration": 1, "phase": "Degraded"}),
        );
        api.apply(&path, "trawl-operator", &summary)
            .await
            .expect("the operator sums up");
        let stored = api
            .apply(&path, "trawl-sensor-a", &report(json!([target("a", 3)])))
            .await
            .expect("again");
        assert_eq!(packets(&stored["status"]), pairs(&[("a", 3), ("b", 2)]));
        assert_eq!(stored["status"]["phase"], "Degraded");

        let refusal = api
            .apply(&path, "trawl-sensor-a", &report(json!([target("b", 9)])))
            .await;
        assert_eq!(refusal.expect_err("a wrote b's entry").code, 409);

        let stored = api
            .apply(&path, "trawl-sensor-a", &report(json!([])))
            .await
            .expect("a leaves");
        assert_eq!(packets(&stored["status"]), pairs(&[("b", 2)]));
    })
    .await;
}

#[tokio::test]
async fn reporter_and_operator_share_the_conditions_of_a_job() {
    in_namespace(|api| async move {
        let object = cases::sample("capturejob-manual");
        api.create(&object).await.expect("created");
        let name = object["metadata"]["name"].as_str().expect("name");
        let path = format!("{}/status", api.path(&object));
        let condition = |type_: &str, status: &str| {
            json!({
                "type": type_, "status": status, "reason": type_, "message": "", "observedGeneration": 1,
                "lastTransitionTime": TIME,
            })
        };
        let reporter = json!({"startedAt": TIME, "conditions": [condition("FilterValid", "True")]});
        let operator = json!({"phase": "Capturing", "conditions": [condition("Accepted", "True")]});
        for (manager, status) in [("trawl-capture-reporter", reporter), ("trawl-operator", operator)] {
            api.apply(&path, manager, &status_of("CaptureJob", name, status))
                .await
                .expect("applied");
        }
        let later = json!({
            "startedAt": TIME,
            "runnerResult": {"outcome": "Succeeded", "exitCode": 0, "packetCount": 0},
            "conditions": [condition("FilterValid", "True"), condition("CaptureStarted", "True")],
        });
        let stored = api
            .apply(
                &path,
                "trawl-capture-reporter",
                &status_of("CaptureJob", name, later),
            )
            .await;
        let status = &stored.expect("applied")["status"];
        let mut types: Vec<_> = status["conditions"]
            .as_array()
            .expect("conditions")
            .iter()
            .map(|c| c["type"].as_str().expect("type").to_owned())
            .collect();
        types.sort();
        assert_eq!(types, ["Accepted", "CaptureStarted", "FilterValid"]);
        assert_eq!(status["phase"], "Capturing");
        assert_eq!(status["runnerResult"]["packetCount"], 0);
    })
    .await;
}

#[tokio::test]
async fn a_counter_that_is_absent_and_one_that_is_zero_stay_different() {
    in_namespace(|api| async move {
        let (name, path) = tap(&api).await;
        let mut zero = target("zero", 0);
        zero["kernelDrops"] = json!(0);
        zero["bytesObserved"] = json!(0);
        let status = status_of(
            "NetworkTap",
            &name,
            json!({"targets": [zero, target("absent", 0)]}),
        );
        api.apply(&path, "trawl-sensor-a", &status)
            .await
            .expect("applied");
        let stored = api.get(&path).await;
        let typed: trawl_api::NetworkTap = serde_json::from_value(stored.clone()).expect("parses");
        let targets = typed.status.expect("status").targets;
        let counters = |node: &str| {
            let target = targets.iter().find(|t| t.node_name == node).expect("the target");
            (target.kernel_drops, target.bytes_observed)
        };
        assert_eq!(counters("zero"), (Some(0), Some(0)));
        assert_eq!(counters("absent"), (None, None));
        let again = serde_json::to_value(&targets).expect("json");
        assert_eq!(again, stored["status"]["targets"]);
    })
    .await;
}

#[tokio::test]
async fn a_status_that_breaks_the_contract_is_refused_with_the_name_of_the_field() {
    in_namespace(|api| async move {
        let (name, path) = tap(&api).await;
        let with = |field: &str, value: Value| {
            let mut entry = target("a", 1);
            entry[field] = value;
            json!({"targets": [entry]})
        };
        let condition = |field: &str, value: Value| {
            let mut condition = json!({
                "type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
                "lastTransitionTime": TIME,
            });
            condition[field] = value;
            json!({"conditions": [condition]})
        };
        for (status, field) in [
            (json!({"phase": "Fine"}), "phase"),
            (json!({"matchedTargets": -1}), "matchedTargets"),
            (with("kernelDrops", json!(-1)), "kernelDrops"),
            (with("duplication", json!("Maybe")), "duplication"),
            (
                with("analyzers", json!([{"name": "Snort", "healthy": true}])),
                "name",
            ),
            (
                with(
                    "analyzers",
                    json!([{"name": "Zeek", "healthy": true, "reason": "é".repeat(200)}]),
                ),
                "reason",
            ),
            (with("packetsObserved", Value::Null), "packetsObserved"),
            (json!({"targets": [target("a", 1), target("a", 2)]}), "targets"),
            (condition("status", json!("Maybe")), "status"),
            (condition("reason", json!("not a word")), "reason"),
            (condition("reason", json!("R".repeat(65))), "reason"),
            (condition("message", json!("é".repeat(400))), "message"),
        ] {
            let answer = api
                .apply(&path, "trawl-operator", &status_of("NetworkTap", &name, status))
                .await;
            let refusal = answer.expect_err(field);
            assert!(refusal.message.contains(field), "{field}: {}", refusal.message);
        }
    })
    .await;
}

#[tokio::test]
async fn status_and_spec_are_written_apart() {
    in_namespace(|api| async move {
        let mut object = cases::sample("capturejob-manual");
        object["status"] = json!({"phase": "Completed"});
        let stored = api.create(&object).await.expect("created");
        assert!(stored.get("status").is_none(), "a user wrote status");
        assert_eq!(stored["metadata"]["generation"], 1);
    })
    .await;
}
