//! Objects as they were stored by earlier releases.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    cases,
    harness::{holds, in_namespace},
};

fn fixtures() -> Vec<(String, Value)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1alpha1");
    fs::read_dir(directory)
        .expect("fixtures")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let text = fs::read_to_string(&path).expect("a fixture");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let object = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            (name, object)
        })
        .collect()
}

#[tokio::test]
async fn an_object_as_it_was_stored_is_accepted_kept_whole_and_may_be_updated() {
    in_namespace(|api| async move {
        let fixtures = fixtures();
        assert!(fixtures.len() >= 11, "fixtures are never removed");
        for (name, object) in fixtures {
            let mut fresh = object.clone();
            fresh["metadata"] = json!({"name": name});
            let stored = api
                .create(&fresh)
                .await
                .unwrap_or_else(|e| panic!("{name}: {}", e.message));
            assert!(
                holds(&stored["spec"], &object["spec"]),
                "{name} was changed: {stored}"
            );

            let mut reported = stored.clone();
            if object["status"].is_object() {
                reported["status"] = object["status"].clone();
                let path = format!("{}/status", api.path(&stored));
                reported = api
                    .put(&path, &reported)
                    .await
                    .unwrap_or_else(|e| panic!("{name}: {}", e.message));
                assert!(
                    holds(&reported["status"], &object["status"]),
                    "{name} was changed: {reported}"
                );
            }
            assert_eq!(cases::validate(&reported), Some(vec![]), "{name}");

            // What a controller does: add a label or a finalizer and leave the rest alone.
            reported["metadata"]["labels"] = json!({"kept": "yes"});
            let updated = api
                .replace(&reported)
                .await
                .unwrap_or_else(|e| panic!("{name}: {}", e.message));
            assert_eq!(updated["spec"], stored["spec"], "{name}");
        }
    })
    .await;
}
