use std::{collections::BTreeSet, fs, path::PathBuf};

use super::*;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../crds")
}

/// Calls `visit` for every schema in `schema`, with its path.
fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        walk(child, &format!("{path}.{name}"), visit);
    }
    for keyword in ["items", "additionalProperties"] {
        if schema[keyword].is_object() {
            walk(&schema[keyword], &format!("{path}.{keyword}"), visit);
        }
    }
}

fn every_schema(mut visit: impl FnMut(&str, &Value)) {
    for definition in all().expect("definitions") {
        for version in definition.value["spec"]["versions"].as_array().expect("versions") {
            let root = &version["schema"]["openAPIV3Schema"];
            for part in ["spec", "status"] {
                walk(
                    &root["properties"][part],
                    &format!("{}.{part}", definition.name),
                    &mut visit,
                );
            }
        }
    }
}

#[test]
fn the_files_in_crds_are_what_the_types_say() {
    let mut files = BTreeSet::new();
    for definition in all().expect("definitions") {
        let path = directory().join(&definition.file);
        let on_disk = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            on_disk == definition.to_yaml().expect("yaml"),
            "{} drifted: run `cargo run -p trawl-api --bin crdgen -- crds/`",
            definition.file
        );
        files.insert(definition.file);
    }
    let present: BTreeSet<_> = fs::read_dir(directory())
        .expect("crds/")
        .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("trawl.cloud_"))
        .collect();
    assert_eq!(present, files);
}

#[test]
fn no_schema_is_nullable_or_titled() {
    every_schema(|path, schema| {
        for keyword in ["nullable", "title"] {
            assert!(
                schema.get(keyword).is_none_or(Value::is_object),
                "{path} has {keyword}"
            );
        }
    });
}

#[test]
fn every_string_list_and_map_is_bounded() {
    every_schema(|path, schema| {
        let bounded = match schema["type"].as_str() {
            Some("string") => ["maxLength", "enum", "format"]
                .iter()
                .any(|keyword| schema.get(keyword).is_some()),
            Some("array") => schema.get("maxItems").is_some(),
            Some("object") if schema["additionalProperties"].is_object() => {
                schema.get("maxProperties").is_some()
            }
            _ => true,
        };
        assert!(bounded, "{path} is not bounded");
    });
}

#[test]
fn every_list_says_how_it_is_merged() {
    every_schema(|path, schema| {
        if schema["type"] == "array" {
            assert!(
                schema.get("x-kubernetes-list-type").is_some(),
                "{path} has no list type"
            );
        }
    });
}

#[test]
fn every_field_is_explained() {
    every_schema(|path, schema| {
        let leaf = path.rsplit('.').next().unwrap_or_default();
        if !["items", "additionalProperties"].contains(&leaf) {
            assert!(
                schema["description"].as_str().is_some_and(|d| !d.is_empty()),
                "{path} has no description"
            );
        }
    });
}

#[test]
fn no_field_of_a_status_is_required_so_that_each_writer_may_leave_out_what_others_own() {
    for definition in all().expect("definitions") {
        let root = &definition.value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert!(
            root["properties"]["status"].get("required").is_none(),
            "{}",
            definition.name
        );
        assert_eq!(
            root["required"],
            serde_json::json!(["spec"]),
            "{}",
            definition.name
        );
    }
}

#[test]
fn no_number_in_a_schema_is_a_fraction_or_an_unsigned_format() {
    every_schema(|path, schema| {
        for keyword in ["minimum", "maximum"] {
            if let Some(n) = schema.get(keyword) {
                assert!(n.is_i64() || n.is_u64(), "{path} has {keyword} {n}");
            }
        }
        assert!(
            !schema["format"].as_str().is_some_and(|f| f.starts_with("uint")),
            "{path} is unsigned"
        );
    });
}

#[test]
fn the_definitions_survive_the_clients_type() {
    for definition in all().expect("definitions") {
        let again = serde_json::to_value(definition.typed().expect("typed")).expect("json");
        assert_eq!(
            sorted(again).to_string().replace(".0", ""),
            definition.value.to_string().replace(".0", "")
        );
    }
}
