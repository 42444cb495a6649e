//! What has been promised: the surface of the API as a list, and objects as they were stored. Both outlive the code.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::PathBuf,
};

use serde_json::Value;

use super::all;
use crate::{CaptureJob, CapturePolicy, NetworkTap, PortMirror};

/// One property: its type, whether it must be given, and the words that it may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Property {
    type_: String,
    required: bool,
    words: BTreeSet<String>,
}

/// Every property by `Kind path`.
type Surface = BTreeMap<String, Property>;

fn tests() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn golden() -> PathBuf {
    tests().join("golden/v1alpha1.txt")
}

fn of_the_code() -> Surface {
    let mut surface = Surface::new();
    for definition in all().expect("definitions") {
        let kind = definition.value["spec"]["names"]["kind"]
            .as_str()
            .expect("kind")
            .to_owned();
        let root = &definition.value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for part in ["spec", "status"] {
            let required = root["required"]
                .as_array()
                .is_some_and(|r| r.contains(&part.into()));
            add(
                &mut surface,
                &format!("{kind} {part}"),
                &root["properties"][part],
                required,
            );
        }
    }
    surface
}

fn add(surface: &mut Surface, path: &str, schema: &Value, required: bool) {
    let type_ = match schema["type"].as_str() {
        Some("string") if schema["format"] == "date-time" => "time",
        Some(type_) => type_,
        None => "quantity",
    };
    let words = schema["enum"].as_array().into_iter().flatten();
    let words = words.map(|w| w.as_str().expect("a word").to_owned()).collect();
    let property = Property {
        type_: type_.to_owned(),
        required,
        words,
    };
    surface.insert(path.to_owned(), property);
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        let required = schema["required"]
            .as_array()
            .is_some_and(|r| r.contains(&name.as_str().into()));
        add(surface, &format!("{path}.{name}"), child, required);
    }
    for (keyword, step) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[keyword].is_object() {
            add(surface, &format!("{path}{step}"), &schema[keyword], false);
        }
    }
}

fn print(surface: &Surface) -> String {
    let mut text = String::from(
        "# Every property of v1alpha1: kind, path, type, whether it is required, the words that it may hold.\n\
         # Lines are only ever added: TRAWL_UPDATE_GOLDEN=1 cargo test --workspace --lib surface\n",
    );
    for (path, property) in surface {
        text += &format!("{path} {}", property.type_);
        if property.required {
            text += " required";
        }
        if !property.words.is_empty() {
            let words: Vec<_> = property.words.iter().map(String::as_str).collect();
            text += &format!(" {}", words.join("|"));
        }
        text += "\n";
    }
    text
}

fn parse(text: &str) -> Surface {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut parts = line.split(' ');
            let mut next = || parts.next().unwrap_or_else(|| panic!("a broken line: {line}"));
            let path = format!("{} {}", next(), next());
            let type_ = next().to_owned();
            let rest: Vec<&str> = parts.collect();
            let required = rest.first() == Some(&"required");
            let words = rest.get(usize::from(required));
            let words = words.into_iter().flat_map(|w| w.split('|')).map(str::to_owned);
            let words = words.collect();
            (
                path,
                Property {
                    type_,
                    required,
                    words,
                },
            )
        })
        .collect()
}

/// The path without its last step.
fn parent(path: &str) -> &str {
    let stem = path.strip_suffix("[]").or_else(|| path.strip_suffix("{}"));
    stem.or_else(|| path.rsplit_once('.').map(|(parent, _)| parent))
        .unwrap_or_default()
}

/// What `new` takes away from those who rely on `old`.
fn broken(old: &Surface, new: &Surface) -> Vec<String> {
    let mut broken = vec![];
    for (path, was) in old {
        let Some(is) = new.get(path) else {
            broken.push(format!("{path} was removed: stored objects hold it"));
            continue;
        };
        if is.type_ != was.type_ {
            broken.push(format!(
                "{path} was of type {} and is of type {}: stored objects hold the old one",
                was.type_, is.type_
            ));
        }
        for word in was.words.difference(&is.words) {
            broken.push(format!(
                "{path} no longer admits {word}: stored objects may hold it"
            ));
        }
        if was.words.is_empty() && !is.words.is_empty() {
            broken.push(format!("{path} admitted any text and no longer does"));
        }
    }
    for (path, is) in new {
        let newly = old.get(path).is_none_or(|was| !was.required);
        // A new object may require what it likes; nobody has stored one.
        if is.required && newly && old.contains_key(parent(path)) {
            broken.push(format!("{path} is newly required: stored objects lack it"));
        }
    }
    broken
}

#[test]
fn the_surface_of_the_api_only_grows() {
    let old = parse(&fs::read_to_string(golden()).expect("the golden surface"));
    let new = of_the_code();
    let broken = broken(&old, &new);
    assert!(
        broken.is_empty(),
        "v1alpha1 is served and stored, so a change may only add optional fields, with a default and a round trip of \
         old objects. A breaking change needs a new API version and a conversion. Broken:\n{}",
        broken.join("\n")
    );
    if env::var_os("TRAWL_UPDATE_GOLDEN").is_some() {
        fs::write(golden(), print(&new)).expect("the golden surface can be written");
        return;
    }
    let added: Vec<_> = new
        .iter()
        .filter(|(path, is)| old.get(*path) != Some(is))
        .collect();
    assert!(
        added.is_empty(),
        "the API has grown; add fixtures that hold the new fields and run `TRAWL_UPDATE_GOLDEN=1 cargo test --workspace --lib surface` to record {added:#?}"
    );
}

#[test]
fn a_removed_property_a_changed_type_a_lost_word_and_a_new_requirement_are_each_noticed() {
    let old =
        parse("K spec object required\nK spec.a string\nK spec.b string required X|Y\nK spec.c integer\n");
    let complaints = |text: &str| broken(&old, &parse(text)).join("; ");
    let same = print(&old);
    assert_eq!(complaints(&same), "");
    let with = |from: &str, to: &str| complaints(&same.replace(from, to));
    assert!(with("K spec.a string\n", "").contains("spec.a was removed"));
    assert!(with("K spec.c integer", "K spec.c string").contains("spec.c was of type integer"));
    assert!(with(" X|Y", " X").contains("spec.b no longer admits Y"));
    assert!(with("K spec.a string", "K spec.a string X").contains("spec.a admitted any text"));
    assert!(with("K spec.a string", "K spec.a string required").contains("spec.a is newly required"));
    assert!(complaints(&format!("{same}K spec.d string required\n")).contains("spec.d is newly required"));
    assert_eq!(complaints(&format!("{same}K spec.d string\n")), "");
    assert_eq!(
        complaints(&format!("{same}K spec.d object\nK spec.d.e string required\n")),
        ""
    );
    assert_eq!(with(" X|Y", " X|Y|Z"), "");
}

fn fixtures() -> Vec<(String, Value)> {
    let directory = tests().join("fixtures/v1alpha1");
    let mut fixtures: Vec<_> = fs::read_dir(&directory)
        .expect("fixtures")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a fixture");
            let value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            (name, value)
        })
        .collect();
    fixtures.sort_by(|a, b| a.0.cmp(&b.0));
    fixtures
}

/// The object after a way through its type.
fn through_the_type(object: &Value) -> Value {
    fn through<T: serde::Serialize + serde::de::DeserializeOwned>(object: &Value) -> Value {
        let typed: T = serde_json::from_value(object.clone()).expect("the type reads it");
        serde_json::to_value(typed).expect("the type writes it")
    }
    match object["kind"].as_str().expect("kind") {
        "NetworkTap" => through::<NetworkTap>(object),
        "CapturePolicy" => through::<CapturePolicy>(object),
        "CaptureJob" => through::<CaptureJob>(object),
        "PortMirror" => through::<PortMirror>(object),
        other => panic!("unknown kind {other}"),
    }
}

/// Leaves of `value` by path.
fn leaves(value: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, child) in map {
                leaves(child, &format!("{path}.{key}"), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, child) in items.iter().enumerate() {
                leaves(child, &format!("{path}[{index}]"), found);
            }
        }
        leaf => {
            found.insert(path.to_owned(), leaf.clone());
        }
    }
}

/// Sizes and quantities are kept as text, so a number comes back in quotes.
fn same(stored: &Value, written: &Value) -> bool {
    stored == written || (stored.is_number() && written.as_str() == Some(&stored.to_string()))
}

#[test]
fn an_object_that_was_stored_loses_nothing_on_its_way_through_the_types() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 11, "fixtures are never removed");
    for (name, object) in fixtures {
        let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
        leaves(&object, "", &mut before);
        leaves(&through_the_type(&object), "", &mut after);
        for (path, value) in &before {
            let kept = after.get(path);
            assert!(
                kept.is_some_and(|kept| same(value, kept)),
                "{name} {path}: {value} became {kept:?}"
            );
        }
        // A type may write a default that an old object lacks, and nothing else.
        for (path, value) in after.iter().filter(|(path, _)| !before.contains_key(*path)) {
            let nothing = value == &Value::from(false) || value == &Value::from(0);
            assert!(nothing, "{name}: {path} appeared as {value}");
        }
    }
}

#[test]
fn an_object_that_was_stored_is_still_sound() {
    use crate::validation::summary;
    for (name, object) in fixtures() {
        let problems = match object["kind"].as_str().expect("kind") {
            "NetworkTap" => typed::<NetworkTap>(&object).spec.validate(),
            "CapturePolicy" => typed::<CapturePolicy>(&object).spec.validate(),
            "CaptureJob" => typed::<CaptureJob>(&object).spec.validate(),
            _ => typed::<PortMirror>(&object).spec.validate(),
        };
        assert!(problems.is_empty(), "{name}: {}", summary(&problems));
    }
}

fn typed<T: serde::de::DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).expect("the type reads it")
}

#[test]
fn the_fixtures_hold_every_property_that_was_promised() {
    let mut held = BTreeSet::new();
    for (_, object) in fixtures() {
        let kind = object["kind"].as_str().expect("kind");
        for part in ["spec", "status"] {
            properties(&object[part], &format!("{kind} {part}"), &mut held);
        }
    }
    let surface = parse(&fs::read_to_string(golden()).expect("the golden surface"));
    let missing: Vec<_> = surface
        .keys()
        .filter(|path| !path.ends_with("[]") && !path.ends_with("{}") && !held.contains(*path))
        .collect();
    assert!(missing.is_empty(), "no fixture holds {missing:#?}");
}

/// Paths of all properties, in the form of the surface.
fn properties(value: &Value, path: &str, held: &mut BTreeSet<String>) {
    held.insert(path.to_owned());
    for (key, child) in value.as_object().into_iter().flatten() {
        properties(child, &format!("{path}.{key}"), held);
    }
    for item in value.as_array().into_iter().flatten() {
        properties(item, &format!("{path}[]"), held);
    }
}
