//! Who may do what, and what the ledger says about it: exactly one record for each act, allowed or denied.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use trawl_audit::{Action, Decision, Record};

use crate::support::hooks::{ADMINISTRATORS, Hooks, named};

fn told(records: &[Record]) -> Vec<(Action, Decision, &str, &str)> {
    let told = |r: &'_ Record| (r.entry.action, r.entry.decision);
    records
        .iter()
        .map(|r| {
            (
                told(r).0,
                told(r).1,
                r.entry.reason.as_str(),
                r.entry.actor.username.as_str(),
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policys_job_is_for_the_worker_alone_whatever_the_object_says() {
    let hooks = Hooks::new().await;
    let worker = format!("system:serviceaccount:{}:trawl-worker", hooks.namespace);
    let mut object = named("by-worker/capturejob-policy", "by-policy");
    object["metadata"]["annotations"] = json!({"trawl.cloud/requester": worker});
    let spoof = hooks.user("mallory", &["system:serviceaccounts"]);
    let refusal = spoof
        .create(&object)
        .await
        .expect_err("mallory is not the worker");
    assert_eq!(
        (refusal.code, refusal.causes[0].0.as_str()),
        (403, "spec.requestType"),
        "{refusal:?}"
    );
    let elsewhere = hooks.user("system:serviceaccount:default:trawl-worker", &[]);
    elsewhere
        .create(&object)
        .await
        .expect_err("another namespace's account");
    let stored = hooks.worker().create(&object).await.expect("the worker may");
    assert_eq!(
        stored["metadata"]["annotations"]["trawl.cloud/requester"],
        worker.as_str()
    );
    let records = hooks.records_of("by-policy");
    let denied = (Action::CaptureJobPolicyCreate, Decision::Denied, "Forbidden");
    assert_eq!(
        told(&records),
        [
            (denied.0, denied.1, denied.2, "mallory"),
            (
                denied.0,
                denied.1,
                denied.2,
                "system:serviceaccount:default:trawl-worker"
            ),
            (
                Action::CaptureJobPolicyCreate,
                Decision::Allowed,
                "Accepted",
                worker.as_str()
            ),
        ]
    );
    for record in &records {
        assert_eq!(
            record.entry.stable_key,
            format!("admission/{}", record.entry.request_id)
        );
        assert_eq!(record.entry.initiated_by, "trawl-operator");
    }
    hooks.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_is_never_changed_afterwards_not_even_by_an_administrator() {
    let hooks = Hooks::new().await;
    let stored = hooks
        .analyst()
        .create(&named("capturejob-manual", "mine"))
        .await
        .unwrap();
    for value in [json!("mallory"), Value::Null] {
        let mut changed = stored.clone();
        changed["metadata"]["annotations"]["trawl.cloud/requester"] = value.clone();
        if value.is_null() {
            changed["metadata"]["annotations"] = json!({});
        }
        let refusal = hooks
            .administrator()
            .replace(&changed)
            .await
            .expect_err("immutable");
        assert_eq!(refusal.code, 403, "{refusal:?}");
        assert!(
            refusal.message.contains("trawl.cloud/requester"),
            "{}",
            refusal.message
        );
    }
    let mut owned = stored.clone();
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}]);
    let refusal = hooks.administrator().replace(&owned).await.expect_err("an owner");
    assert!(
        refusal.message.contains("metadata.ownerReferences"),
        "{}",
        refusal.message
    );
    // What controllers do is neither judged nor recorded.
    let mut labelled = stored.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    labelled["metadata"]["finalizers"] = json!(["trawl.cloud/capturejob-cleanup"]);
    let mut labelled = hooks
        .analyst()
        .replace(&labelled)
        .await
        .expect("labels and finalizers");
    labelled["metadata"]["finalizers"] = json!([]);
    let labelled = hooks.analyst().replace(&labelled).await.expect("and back");
    hooks
        .analyst()
        .delete(&labelled)
        .await
        .expect("RBAC decides about deletion");
    let records = hooks.records_of("mine");
    assert_eq!(
        told(&records),
        [(
            Action::CaptureJobManualCreate,
            Decision::Allowed,
            "Accepted",
            "alice"
        )]
    );
    hooks.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_is_changed_by_its_administrators_before_the_deadline_only() {
    let hooks = Hooks::new().await;
    let stored = hooks
        .analyst()
        .create(&named("capturejob-manual", "kept"))
        .await
        .unwrap();
    let with = |object: &Value, retention: &str| {
        let mut object = object.clone();
        object["spec"]["retention"] = retention.into();
        object
    };
    let refusal = hooks
        .analyst()
        .replace(&with(&stored, "3d"))
        .await
        .expect_err("alice is none");
    assert_eq!(
        (refusal.code, refusal.causes[0].0.as_str()),
        (403, "spec.retention"),
        "{refusal:?}"
    );
    assert!(refusal.message.contains(ADMINISTRATORS), "{}", refusal.message);
    let changed = hooks
        .administrator()
        .replace(&with(&stored, "3d"))
        .await
        .expect("ada may");
    assert_eq!(changed["spec"]["retention"], "3d");
    let refusal = hooks
        .administrator()
        .replace(&with(&changed, "31d"))
        .await
        .expect_err("too long");
    assert!(refusal.message.contains("30d"), "{}", refusal.message);

    let now = Timestamp::now();
    let status = |deadline: Timestamp, phase: &str| {
        json!({"phase": phase, "completedAt": (now - SignedDuration::from_hours(1)).to_string(),
            "retentionDeadline": deadline.to_string()})
    };
    let ended = hooks
        .admin()
        .report(&changed, status(now - SignedDuration::from_secs(1), "Completed"))
        .await;
    let refusal = hooks
        .administrator()
        .replace(&with(&ended, "5d"))
        .await
        .expect_err("the deadline is over");
    assert!(refusal.message.contains("spec.retention"), "{}", refusal.message);
    let expired = hooks
        .admin()
        .report(&ended, status(now + SignedDuration::from_hours(1), "Expired"))
        .await;
    let refusal = hooks
        .administrator()
        .replace(&with(&expired, "5d"))
        .await
        .expect_err("Expired");
    assert!(refusal.message.contains("spec.retention"), "{}", refusal.message);

    let records = hooks.records_of("kept");
    let (change, denied) = (Action::RetentionChange, Decision::Denied);
    let wanted = [
        (Action::CaptureJobManualCreate, Decision::Allowed, "alice"),
        (change, denied, "alice"),
        (change, Decision::Allowed, "ada"),
        (change, denied, "ada"),
        (change, denied, "ada"),
    ];
    let found: Vec<_> = told(&records)
        .into_iter()
        .map(|(a, d, _, who)| (a, d, who))
        .collect();
    assert_eq!(found, wanted, "the one above the limit never got past the schema");
    assert!(
        records[2].entry.message.contains("from 7d to 3d"),
        "{}",
        records[2].entry.message
    );
    hooks.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arming_and_disarming_are_acts_of_their_own() {
    let hooks = Hooks::new().await;
    let mut object = named("capturepolicy-suricata", "watch");
    object["spec"]["armed"] = false.into();
    let mut stored = hooks.analyst().create(&object).await.unwrap();
    for armed in [true, false] {
        stored["spec"]["armed"] = armed.into();
        stored = hooks.analyst().replace(&stored).await.unwrap();
    }
    stored["spec"]["rateLimit"]["cooldown"] = "2m".into();
    let stored = hooks.analyst().replace(&stored).await.unwrap();
    hooks.analyst().delete(&stored).await.unwrap();
    let actions: Vec<_> = hooks.records_of("watch").iter().map(|r| r.entry.action).collect();
    assert_eq!(
        actions,
        [
            Action::CapturePolicyCreate,
            Action::CapturePolicyArm,
            Action::CapturePolicyDisarm,
            Action::CapturePolicyUpdate,
            Action::CapturePolicyDelete
        ]
    );
    hooks.end().await;
}
