use serde_json::{Value, json};
use trawl_audit::Action;

use super::common::*;
use crate::*;

const FIELD: &str = "spec.retention";

/// A capture that was completed at `completed` and is kept 7 days; now it is 2026-09-01T00:00:00Z.
fn kept_since(completed: &str, deadline: &str) -> Value {
    with(
        stored("capturejob-manual"),
        json!({"status": {"phase": "Completed", "completedAt": completed, "retentionDeadline": deadline}}),
    )
}

fn fresh() -> Value {
    kept_since("2026-08-31T00:00:00Z", "2026-09-07T00:00:00Z")
}

fn changed_to(old: Value, retention: &str) -> Request {
    let object = with(old.clone(), json!({"spec": {"retention": retention}}));
    as_administrator(update(old, object))
}

#[test]
fn administrators_change_the_retention_and_it_is_recorded() {
    for retention in ["1h", "6d", "8d", "720h", "30d"] {
        let verdict = judged(&rules(), &changed_to(fresh(), retention));
        assert_eq!(verdict.problems, vec![], "{retention}");
        assert_eq!(verdict.action, Some(Action::RetentionChange));
    }
    // Before the capture is completed there is no deadline yet.
    must_admit(&rules(), &changed_to(stored("capturejob-manual"), "1h"));
}

#[test]
fn others_do_not_and_the_attempt_is_recorded() {
    for groups in [
        vec![],
        vec!["system:masters"],
        vec!["trawl:retention-administrators2"],
        vec![""],
    ] {
        let mut request = changed_to(fresh(), "8d");
        request.caller.groups = groups.into_iter().map(str::to_owned).collect();
        let verdict = must_refuse(&rules(), &request, FIELD, "group trawl:retention-administrators");
        assert_eq!(verdict.action, Some(Action::RetentionChange));
    }
    let worker = Caller {
        username: WORKER.into(),
        groups: vec![],
    };
    let request = Request {
        caller: worker,
        ..changed_to(fresh(), "8d")
    };
    must_refuse(&rules(), &request, FIELD, "group");
}

#[test]
fn where_nobody_administers_retention_the_refusal_says_so() {
    let nobody = Rules {
        retention_administrators: Vec::new(),
        ..rules()
    };
    must_refuse(&nobody, &changed_to(fresh(), "8d"), FIELD, "names no group");
}

#[test]
fn the_deadline_itself_is_too_late() {
    let at = |deadline: &str| changed_to(kept_since("2026-08-25T00:00:00Z", deadline), "30d");
    must_admit(&rules(), &at("2026-09-01T00:00:01Z"));
    for deadline in ["2026-09-01T00:00:00Z", "2026-08-31T23:59:59Z"] {
        let verdict = must_refuse(&rules(), &at(deadline), FIELD, "deadline has passed");
        assert_eq!(verdict.action, Some(Action::RetentionChange));
    }
}

#[test]
fn what_has_expired_is_not_kept_longer() {
    let mut old = fresh();
    old["status"]["phase"] = "Expired".into();
    must_refuse(&rules(), &changed_to(old, "30d"), FIELD, "expired");
}

#[test]
fn a_status_that_is_partly_unreadable_still_says_that_it_is_too_late() {
    for (status, words) in [
        (json!({"phase": "Expired"}), "expired"),
        (
            json!({"retentionDeadline": "2026-08-31T00:00:00Z"}),
            "deadline has passed",
        ),
    ] {
        let mut old = with(stored("capturejob-manual"), json!({"status": status}));
        old["status"]["failure"] = json!({"reason": "OfALaterVersion"});
        must_refuse(&rules(), &changed_to(old, "30d"), FIELD, words);
    }
}

#[test]
fn retention_lies_between_one_hour_and_the_ceiling() {
    for (hours, retention, holds) in [
        (720, "59m59s", false),
        (720, "1h", true),
        (720, "30d", true),
        (720, "720h1s", false),
        (240, "10d", true),
        (240, "240h1s", false),
        (240, "30d", false),
        (9999, "31d", false),
    ] {
        let rules = ceiling(hours);
        let request = changed_to(fresh(), retention);
        if holds {
            must_admit(&rules, &request);
        } else {
            let limit = if hours == 240 {
                "from 1h to 10d"
            } else {
                "from 1h to 30d"
            };
            must_refuse(&rules, &request, FIELD, limit);
        }
    }
}

#[test]
fn each_reason_against_a_change_is_told_by_itself() {
    let mut request = changed_to(kept_since("2026-08-01T00:00:00Z", "2026-08-08T00:00:00Z"), "40d");
    request.caller.groups.clear();
    let verdict = judged(&rules(), &request);
    assert_eq!(fields(&verdict), [FIELD, FIELD, FIELD]);
    let messages: Vec<&str> = verdict.problems.iter().map(|p| p.message.as_str()).collect();
    for (message, words) in
        messages
            .iter()
            .zip(["from 1h to 30d", "members of the group", "deadline has passed"])
    {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn other_fields_do_not_ride_along_with_the_retention() {
    let old = fresh();
    let object = with(
        old.clone(),
        json!({"spec": {"retention": "8d", "duration": "3m"}}),
    );
    let verdict = must_refuse(
        &rules(),
        &as_administrator(update(old, object)),
        "spec.duration",
        "immutable",
    );
    assert_eq!(verdict.action, Some(Action::RetentionChange));
}

#[test]
fn a_shortened_retention_that_deletes_at_once_is_a_warning() {
    for (retention, warned) in [("23h", true), ("24h", true), ("24h1s", false), ("30d", false)] {
        let verdict = must_admit(&rules(), &changed_to(fresh(), retention));
        assert_eq!(
            verdict.warnings.iter().any(|w| w.contains("at once")),
            warned,
            "{retention}"
        );
    }
}

#[test]
fn only_the_stored_status_counts() {
    let old = kept_since("2026-08-01T00:00:00Z", "2026-08-08T00:00:00Z");
    let mut request = changed_to(old, "30d");
    let object = request.object.as_mut().expect("object");
    object["status"] = json!({"phase": "Completed", "retentionDeadline": "2099-01-01T00:00:00Z"});
    must_refuse(&rules(), &request, FIELD, "deadline has passed");
}

#[test]
fn the_ceiling_binds_new_captures_and_policies_too() {
    for sample in ["capturejob-manual", "capturepolicy-hubble"] {
        for (retention, holds) in [("10d", true), ("240h1s", false), ("30d", false)] {
            let request = create(with(stored(sample), json!({"spec": {"retention": retention}})));
            if holds {
                must_admit(&ceiling(240), &request);
            } else {
                must_refuse(&ceiling(240), &request, FIELD, "from 1h to 10d");
            }
        }
    }
}
