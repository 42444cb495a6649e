use serde_json::json;

use super::*;

#[test]
fn there_is_a_schema_for_every_kind() {
    for kind in Kind::ALL {
        assert!(spec(kind)["properties"].is_object(), "{kind}");
    }
}

#[test]
fn nulls_vanish_and_defaults_appear_at_every_depth() {
    let mut value = json!({"type": "NodeInterface", "mode": null, "nodeInterface": {"interface": "eth0"}});
    complete(Kind::NetworkTap, &mut value);
    assert_eq!(value["mode"], "Passive");
    assert_eq!(value["nodeInterface"]["promiscuous"], false);
    let mut value = json!({"requestType": null, "filter": null});
    complete(Kind::CaptureJob, &mut value);
    assert_eq!(
        value,
        json!({"requestType": "Manual", "snaplen": 0, "preTrigger": "0s", "retention": "30d"})
    );
}

#[test]
fn hostile_names_are_cut_and_cleaned_and_few_of_many_are_told() {
    let name = format!("\u{1b}[31m{}", "x".repeat(100));
    let found = problems(Kind::CaptureJob, &json!({name: 1}));
    let unknown = found
        .iter()
        .find(|p| p.message.contains("no field here"))
        .expect("found");
    assert!(
        unknown.field.len() <= 80 && unknown.field.is_ascii() && !unknown.field.contains('\u{1b}'),
        "{unknown}"
    );
    let many: serde_json::Map<String, Value> = (0..10_000).map(|n| (format!("x{n}"), json!(1))).collect();
    assert!(problems(Kind::CaptureJob, &Value::Object(many)).len() < 100);
}
