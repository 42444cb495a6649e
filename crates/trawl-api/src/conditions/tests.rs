use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

fn ready(truth: Truth) -> Observed {
    Observed::new(ConditionType::Ready, truth, Reason::Accepted, "text")
}

#[test]
fn the_transition_time_moves_only_when_the_status_changes() {
    let first = merge(&[], &ready(Truth::True), 1, at(10));
    assert_eq!(first.last_transition_time, Time(at(10)));
    let same = merge(std::slice::from_ref(&first), &ready(Truth::True), 2, at(20));
    assert_eq!(same.last_transition_time, Time(at(10)));
    assert_eq!(same.observed_generation, Some(2));
    let changed = merge(&[same], &ready(Truth::Unknown), 2, at(30));
    assert_eq!(changed.last_transition_time, Time(at(30)));
    assert_eq!(changed.status, "Unknown");
}

#[test]
fn another_reason_alone_does_not_move_the_transition_time() {
    let first = merge(&[], &ready(Truth::False), 1, at(10));
    let other = Observed {
        reason: Reason::InvalidSpec,
        ..ready(Truth::False)
    };
    let merged = merge(&[first], &other, 1, at(20));
    assert_eq!(merged.reason, "InvalidSpec");
    assert_eq!(merged.last_transition_time, Time(at(10)));
}

#[test]
fn true_counts_only_at_the_current_generation() {
    let conditions = [merge(&[], &ready(Truth::True), 1, at(10))];
    assert!(is_true(&conditions, ConditionType::Ready, 1));
    assert!(!is_true(&conditions, ConditionType::Ready, 2), "stale");
    assert!(!is_true(&conditions, ConditionType::Accepted, 1), "missing");
    assert!(!is_true(
        &[merge(&[], &ready(Truth::Unknown), 1, at(10))],
        ConditionType::Ready,
        1
    ));
}

#[test]
fn a_message_is_cut_at_a_character_and_loses_its_control_characters() {
    let long = Observed::new(
        ConditionType::Ready,
        Truth::True,
        Reason::Accepted,
        "é".repeat(300),
    );
    let merged = merge(&[], &long, 1, at(0));
    assert_eq!(merged.message.len(), 512);
}

#[test]
fn a_message_never_carries_a_secret_into_a_status() {
    let leak = Observed::new(
        ConditionType::Ready,
        Truth::False,
        Reason::StorageFailure,
        "password=hunter2",
    );
    assert_eq!(merge(&[], &leak, 1, at(0)).message, "password=[redacted]");
}

#[test]
fn words_survive_the_way_to_the_wire_and_back() {
    for reason in Reason::ALL {
        assert_eq!(Reason::from_wire(reason.as_str()), Some(*reason));
        assert!(reason.as_str().len() <= MAX_REASON_BYTES);
    }
    for type_ in ConditionType::ALL {
        assert_eq!(ConditionType::from_wire(type_.as_str()), Some(*type_));
    }
    assert_eq!(Reason::from_wire("accepted"), None);
}

/// The first column of the table under `heading`.
fn documented(heading: &str) -> Vec<String> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/conditions.md"))
        .expect("docs/conditions.md is there");
    let section = text
        .split(&format!("\n## {heading}\n"))
        .nth(1)
        .expect("the section is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next().map(str::to_owned))
        .collect()
}

#[test]
fn the_documentation_explains_every_reason_and_no_other() {
    let words: Vec<_> = Reason::ALL.iter().map(|r| r.as_str().to_owned()).collect();
    assert_eq!(documented("Reasons"), words);
}

#[test]
fn the_documentation_explains_every_condition_type_and_no_other() {
    let words: Vec<_> = ConditionType::ALL.iter().map(|r| r.as_str().to_owned()).collect();
    assert_eq!(documented("Types"), words);
}

#[test]
fn the_documentation_explains_every_failure_reason_that_the_schema_knows() {
    let definitions = crate::crds::all().expect("definitions");
    let job = definitions
        .iter()
        .find(|d| d.name.starts_with("capturejobs"))
        .expect("CaptureJob");
    let path =
        "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/failure/properties/reason/enum";
    let words: Vec<String> =
        serde_json::from_value(job.value.pointer(path).expect("an enum").clone()).expect("words");
    assert_eq!(documented("Failure reasons"), words);
}
