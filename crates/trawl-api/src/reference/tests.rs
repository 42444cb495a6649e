use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::Value;

use super::*;
use crate::crds;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text() -> String {
    let samples = samples(&repository().join("deploy/samples")).expect("samples");
    render(&crds::all().expect("definitions"), &samples)
}

#[test]
fn the_reference_is_what_the_definitions_and_the_samples_say() {
    let on_disk = fs::read_to_string(repository().join("docs/api.md")).unwrap_or_default();
    assert!(
        on_disk == text(),
        "docs/api.md drifted: run `cargo run -p trawl-api --bin crdgen -- crds/ --reference docs/api.md`"
    );
}

#[test]
fn every_link_within_the_reference_leads_somewhere() {
    let text = text();
    let headings = text
        .lines()
        .filter_map(|l| l.strip_prefix("## "))
        .map(str::to_lowercase);
    let mut anchors: BTreeSet<String> = headings.collect();
    anchors.extend(
        text.split("<a id=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap_or_default().to_owned()),
    );
    let links: Vec<_> = text
        .split("](#")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap_or_default())
        .collect();
    assert!(links.len() > 30, "only {} links", links.len());
    for link in links {
        assert!(anchors.contains(link), "#{link} leads nowhere");
    }
}

/// Names of all properties below `schema`, and the messages of all rules.
fn collect(schema: &Value, names: &mut BTreeSet<String>, messages: &mut BTreeSet<String>) {
    messages.extend(fields::rules(schema).into_iter().map(|(_, message)| message));
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        names.insert(name.clone());
        collect(child, names, messages);
    }
    if let Some((child, _)) = fields::entries(schema) {
        collect(child, names, messages);
    }
}

#[test]
fn every_field_and_every_rule_is_in_the_reference_and_every_kind_has_an_example() {
    let text = text();
    for definition in crds::all().expect("definitions") {
        let kind = kind(&definition);
        assert!(
            text.contains("```yaml\n# ") && text.contains(&format!("\nkind: {kind}\n")),
            "{kind} has no example"
        );
        let (mut names, mut messages) = (BTreeSet::new(), BTreeSet::new());
        for part in ["spec", "status"] {
            collect(&root(&definition)["properties"][part], &mut names, &mut messages);
        }
        for name in names {
            assert!(text.contains(&format!("| `{name}` |")), "{kind} {name}");
        }
        for message in messages.iter().filter(|m| !fields::is_immutable(m)) {
            assert!(text.contains(&fields::escape(message)), "{kind}: {message}");
        }
    }
}

/// The first words of a message, without what differs from field to field.
fn stem(message: &str) -> String {
    let common = message
        .replace("memory", "cpu")
        .replace("negative limits", "negative requests");
    let count = if common.starts_with("is ") { 3 } else { 4 };
    common.split(' ').take(count).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_rule_on_a_spec_is_explained_among_the_refusals() {
    let page = fs::read_to_string(repository().join("docs/refusals/schema.md")).expect("the page");
    let (mut names, mut messages) = (BTreeSet::new(), BTreeSet::new());
    for definition in crds::all().expect("definitions") {
        collect(
            &root(&definition)["properties"]["spec"],
            &mut names,
            &mut messages,
        );
    }
    assert!(messages.len() > 40, "only {} messages", messages.len());
    for message in messages {
        assert!(
            page.contains(&stem(&message)),
            "docs/refusals/schema.md: {message}"
        );
    }
}
