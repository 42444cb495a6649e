//! What kubectl shows.

use serde_json::{Value, json};

use crate::{cases, harness::in_namespace};

fn columns(table: &Value) -> Vec<String> {
    let definitions = table["columnDefinitions"].as_array().expect("columns");
    definitions
        .iter()
        .map(|c| c["name"].as_str().expect("name").to_owned())
        .collect()
}

#[tokio::test]
async fn the_printed_columns_are_those_of_the_contract() {
    in_namespace(|api| async move {
        for (plural, expected) in [
            ("networktaps", "Name Type Phase Targets Matched Last~Packet Age"),
            (
                "capturepolicies",
                "Name Armed Trigger Tap Phase Captures Active Age",
            ),
            ("capturejobs", "Name Type Tap Node Phase Size Expires Age"),
            ("portmirrors", "Name Provider Target Phase Verified Age"),
        ] {
            let expected: Vec<String> = expected.split(' ').map(|c| c.replace('~', " ")).collect();
            assert_eq!(columns(&api.table(plural).await), expected, "{plural}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_printed_cells_hold_what_the_columns_promise() {
    in_namespace(|api| async move {
        let object = cases::sample("capturejob-manual");
        api.create(&object).await.expect("created");
        let status = json!({
            "apiVersion": "trawl.cloud/v1alpha1",
            "kind": "CaptureJob",
            "metadata": {"name": object["metadata"]["name"]},
            "status": {"phase": "Completed", "sizeBytes": 4096, "retentionDeadline": "2999-01-01T00:00:00Z"},
        });
        let path = format!("{}/status", api.path(&object));
        api.apply(&path, "trawl-operator", &status)
            .await
            .expect("applied");
        let table = api.table("capturejobs").await;
        let cells = table["rows"][0]["cells"].as_array().expect("cells").clone();
        let name = object["metadata"]["name"].clone();
        // A deadline lies in the future, which a column of type date would print as <invalid>.
        let expected = [
            name,
            json!("Manual"),
            json!("north-south-mirror"),
            json!("talos-sensor-01"),
            json!("Completed"),
            json!(4096),
            json!("2999-01-01T00:00:00Z"),
        ];
        assert_eq!(cells[..7], expected);
    })
    .await;
}

#[tokio::test]
async fn short_names_and_status_subresources_are_served() {
    in_namespace(|api| async move {
        let resources = api.get("/apis/trawl.cloud/v1alpha1").await;
        let resources = resources["resources"].as_array().expect("resources").clone();
        for (plural, short) in [
            ("networktaps", ["tap", "taps"]),
            ("capturepolicies", ["cpolicy", "cpolicies"]),
            ("capturejobs", ["capture", "captures"]),
            ("portmirrors", ["mirror", "mirrors"]),
        ] {
            let resource = resources
                .iter()
                .find(|r| r["name"] == plural)
                .expect("the kind is served");
            assert_eq!(resource["shortNames"], json!(short), "{plural}");
            assert_eq!(resource["namespaced"], true);
            let status = format!("{plural}/status");
            assert!(
                resources.iter().any(|r| r["name"] == *status),
                "{status} is not served"
            );
        }
    })
    .await;
}
