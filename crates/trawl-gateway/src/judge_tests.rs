use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("timestamp")
}

const NOW: &str = "2026-03-01T12:00:00Z";
const HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A job that may be downloaded, with `change` merged into its status.
fn job(change: Value) -> CaptureJob {
    let mut status = json!({
        "phase": "Completed",
        "sha256": HASH,
        "retentionDeadline": "2026-03-02T12:00:00Z",
        "artifact": {"profile": "main", "key": "captures/trawl-system/u-1/capture.pcapng", "verifiedAt": NOW},
        "conditions": [{"type": "Downloadable", "status": "True", "reason": "Downloadable", "message": "",
                        "observedGeneration": 3, "lastTransitionTime": NOW}],
    });
    for (key, value) in change.as_object().expect("object") {
        status[key] = value.clone();
    }
    serde_json::from_value(json!({
        "apiVersion": "trawl.cloud/v1alpha1", "kind": "CaptureJob",
        "metadata": {"name": "j", "namespace": "trawl-system", "uid": "u-1", "generation": 3},
        "spec": {"tapRef": {"name": "t"}, "duration": "10s", "maxSize": "1Mi"},
        "status": status,
    }))
    .expect("job")
}

fn downloadable(status: &str, reason: &str, generation: i64) -> Value {
    json!({"conditions": [{"type": "Downloadable", "status": status, "reason": reason, "message": "",
                           "observedGeneration": generation, "lastTransitionTime": NOW}]})
}

#[test]
fn a_job_is_downloadable_only_when_every_fact_says_so() {
    let table: Vec<(Value, Result<(), Code>)> = vec![
        (json!({}), Ok(())),
        (json!({"phase": "Expired"}), Err(Code::Expired)),
        (
            json!({"retentionDeadline": "2026-03-01T12:00:00Z"}),
            Err(Code::Expired),
        ),
        (json!({"retentionDeadline": "2026-03-01T12:00:00.001Z"}), Ok(())),
        (downloadable("False", "Expired", 3), Err(Code::Expired)),
        (json!({"phase": "Pending"}), Err(Code::NotDownloadable)),
        (json!({"phase": "Capturing"}), Err(Code::NotDownloadable)),
        (json!({"phase": "Storing"}), Err(Code::NotDownloadable)),
        (json!({"phase": "Failed"}), Err(Code::NotDownloadable)),
        (json!({"phase": null}), Err(Code::NotDownloadable)),
        (
            downloadable("False", "NotDownloadable", 3),
            Err(Code::NotDownloadable),
        ),
        (downloadable("Unknown", "Pending", 3), Err(Code::NotDownloadable)),
        (
            downloadable("True", "Downloadable", 2),
            Err(Code::NotDownloadable),
        ),
        (json!({"conditions": []}), Err(Code::NotDownloadable)),
        (json!({"artifact": null}), Err(Code::NotDownloadable)),
        (json!({"sha256": null}), Err(Code::NotDownloadable)),
        (json!({"sha256": HASH.to_uppercase()}), Err(Code::NotDownloadable)),
        (json!({"retentionDeadline": null}), Err(Code::NotDownloadable)),
    ];
    for (change, expected) in table {
        let verdict = artifact(&job(change.clone()), "main", Part::Capture, at(NOW));
        assert_eq!(verdict.map(|_| ()).map_err(|r| r.code), expected, "{change}");
    }
}

#[test]
fn a_status_that_points_at_the_evidence_of_another_job_is_refused() {
    for (key, profile) in [
        ("captures/trawl-system/u-2/capture.pcapng", "main"),
        ("captures/trawl-system/u-1/../u-2/capture.pcapng", "main"),
        ("captures/trawl-system/u-1/capture.pcapng", "other"),
    ] {
        let change = json!({"artifact": {"profile": profile, "key": key, "verifiedAt": NOW}});
        let refusal = artifact(&job(change), "main", Part::Capture, at(NOW)).expect_err("refused");
        assert_eq!(refusal.code, Code::NotDownloadable, "{key} {profile}");
        assert!(!refusal.message.contains("u-2"), "the foreign key is not echoed");
    }
}

#[test]
fn the_manifest_lies_beside_the_capture_and_claims_no_hash() {
    let found = artifact(&job(json!({})), "main", Part::Manifest, at(NOW)).expect("artifact");
    assert_eq!(found.key, "captures/trawl-system/u-1/manifest.json");
    assert_eq!(found.sha256, None);
}

#[test]
fn a_job_without_status_is_not_downloadable() {
    let mut bare = job(json!({}));
    bare.status = None;
    assert_eq!(
        artifact(&bare, "main", Part::Capture, at(NOW))
            .expect_err("refused")
            .code,
        Code::NotDownloadable
    );
}

#[test]
fn a_grant_lasts_five_minutes_at_most_and_never_past_the_deadline() {
    let table = [
        ("2026-03-02T12:00:00Z", Some(300)),
        ("2026-03-01T12:05:00Z", Some(300)),
        ("2026-03-01T12:04:59.9Z", Some(299)),
        ("2026-03-01T12:00:01Z", Some(1)),
        ("2026-03-01T12:00:00.9Z", None),
        ("2026-03-01T12:00:00Z", None),
        ("2026-03-01T11:00:00Z", None),
    ];
    for (deadline, seconds) in table {
        assert_eq!(
            ttl(at(deadline), at(NOW)).ok(),
            seconds.map(Duration::from_secs),
            "{deadline}"
        );
    }
    let late = ttl(at("2026-03-01T12:00:02.1Z"), at("2026-03-01T12:00:00.5Z"));
    assert_eq!(late.ok(), Some(Duration::from_secs(1)));
    assert_eq!(Time(at(NOW)).0, at(NOW));
}

fn review(authenticated: bool, audiences: Option<&[&str]>, username: &str) -> TokenReviewStatus {
    TokenReviewStatus {
        authenticated: Some(authenticated),
        audiences: audiences.map(|list| list.iter().map(ToString::to_string).collect()),
        user: Some(UserInfo {
            username: Some(username.into()),
            ..UserInfo::default()
        }),
        error: None,
    }
}

#[test]
fn a_token_counts_only_when_it_is_valid_for_the_audience_of_the_gateway() {
    let ours = &["trawl-artifact-gateway"][..];
    assert_eq!(
        identity(review(true, Some(ours), "ana"))
            .expect("identity")
            .username,
        "ana"
    );
    for status in [
        review(false, Some(ours), "ana"),
        review(true, None, "ana"),
        review(true, Some(&[]), "ana"),
        review(true, Some(&["https://kubernetes.default.svc"]), "ana"),
        review(true, Some(ours), ""),
        TokenReviewStatus {
            user: None,
            ..review(true, Some(ours), "ana")
        },
        TokenReviewStatus::default(),
    ] {
        assert_eq!(
            identity(status.clone()).expect_err("refused").code,
            Code::Unauthenticated,
            "{status:?}"
        );
    }
}

#[test]
fn access_needs_allowed_and_no_denial() {
    let status = |allowed, denied| SubjectAccessReviewStatus {
        allowed,
        denied,
        ..Default::default()
    };
    assert!(access(&status(true, None)).is_ok());
    assert!(access(&status(true, Some(false))).is_ok());
    for refused in [
        status(false, None),
        status(true, Some(true)),
        status(false, Some(true)),
    ] {
        assert_eq!(access(&refused).expect_err("refused").code, Code::Forbidden);
    }
}
