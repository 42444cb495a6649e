use std::sync::atomic::{AtomicI64, Ordering};

use http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::UserInfo;
use serde_json::json;

use super::*;
use crate::request::Part;

/// A world of named answers that notes what it was asked.
struct Told {
    asked: Mutex<Vec<&'static str>>,
    token: Result<bool, ()>,
    access: Result<bool, ()>,
    phase: Result<Option<&'static str>, ()>,
    size: Result<Option<u64>, ()>,
    clock: AtomicI64,
    seconds_per_question: i64,
}

fn all_well() -> Told {
    Told {
        asked: Mutex::default(),
        token: Ok(true),
        access: Ok(true),
        phase: Ok(Some("Completed")),
        size: Ok(Some(1000)),
        clock: AtomicI64::new(0),
        seconds_per_question: 0,
    }
}

const DEADLINE: i64 = 400;

impl Told {
    fn note(&self, what: &'static str) {
        self.asked.lock().expect("lock").push(what);
        self.clock.fetch_add(self.seconds_per_question, Ordering::Relaxed);
    }
}

fn out<T>(answer: &Result<T, ()>) -> Result<&T, String> {
    answer
        .as_ref()
        .map_err(|()| "connection refused by 10.1.2.3".to_owned())
}

impl World for Told {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.clock.load(Ordering::Relaxed)).expect("time")
    }

    async fn review_token(&self, _: &BearerToken) -> Result<TokenReviewStatus, String> {
        self.note("token");
        let user = UserInfo {
            username: Some("ana".into()),
            ..UserInfo::default()
        };
        Ok(TokenReviewStatus {
            authenticated: Some(*out(&self.token)?),
            audiences: Some(vec!["trawl-artifact-gateway".into()]),
            user: Some(user),
            error: None,
        })
    }

    async fn review_access(&self, who: &Identity, _: &Target) -> Result<SubjectAccessReviewStatus, String> {
        self.note("access");
        assert_eq!(who.username, "ana");
        Ok(SubjectAccessReviewStatus {
            allowed: *out(&self.access)?,
            ..Default::default()
        })
    }

    async fn read_job(&self, target: &Target) -> Result<Option<CaptureJob>, String> {
        self.note("job");
        let Some(phase) = out(&self.phase)? else {
            return Ok(None);
        };
        let key = trawl_artifact::keys::capture_key(target.namespace(), "u-1");
        let job = json!({
            "apiVersion": "trawl.cloud/v1alpha1", "kind": "CaptureJob",
            "metadata": {"name": target.name(), "namespace": target.namespace(), "uid": "u-1", "generation": 1},
            "spec": {"tapRef": {"name": "t"}, "duration": "10s", "maxSize": "1Mi"},
            "status": {
                "phase": phase, "sha256": "0".repeat(64),
                "retentionDeadline": Timestamp::from_second(DEADLINE).expect("time").to_string(),
                "artifact": {"profile": "main", "key": key, "verifiedAt": "1970-01-01T00:00:00Z"},
                "conditions": [{"type": "Downloadable", "status": "True", "reason": "Downloadable", "message": "",
                                "observedGeneration": 1, "lastTransitionTime": "1970-01-01T00:00:00Z"}],
            },
        });
        Ok(Some(serde_json::from_value(job).expect("job")))
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, String> {
        self.note("head");
        assert_eq!(key, "captures/trawl-system/u-1/capture.pcapng");
        Ok(*out(&self.size)?)
    }
}

fn target() -> Target {
    Target::parse("trawl-system", "trawl-system", "j", Part::Capture).expect("target")
}

fn token(header_value: Option<&str>) -> Result<BearerToken, Refusal> {
    let mut headers = HeaderMap::new();
    if let Some(value) = header_value {
        headers.insert(header::AUTHORIZATION, value.parse().expect("header"));
    }
    BearerToken::from_headers(&headers)
}

fn fresh() -> Mutex<Limits> {
    Mutex::new(Limits::new(Instant::now()))
}

async fn ask(world: &Told, limits: &Mutex<Limits>) -> Result<Grant, Refusal> {
    decide(world, limits, "main", &target(), || token(Some("Bearer t")))
        .await
        .verdict
}

#[tokio::test]
async fn each_refusal_ends_the_sequence_at_its_own_step() {
    let table: Vec<(Told, Option<Code>, &[&str])> = vec![
        (all_well(), None, &["token", "access", "job", "head"]),
        (
            Told {
                token: Ok(false),
                ..all_well()
            },
            Some(Code::Unauthenticated),
            &["token"],
        ),
        (
            Told {
                token: Err(()),
                ..all_well()
            },
            Some(Code::Unavailable),
            &["token"],
        ),
        (
            Told {
                access: Ok(false),
                ..all_well()
            },
            Some(Code::Forbidden),
            &["token", "access"],
        ),
        (
            Told {
                access: Err(()),
                ..all_well()
            },
            Some(Code::Unavailable),
            &["token", "access"],
        ),
        (
            Told {
                phase: Ok(None),
                ..all_well()
            },
            Some(Code::NotFound),
            &["token", "access", "job"],
        ),
        (
            Told {
                phase: Err(()),
                ..all_well()
            },
            Some(Code::Unavailable),
            &["token", "access", "job"],
        ),
        (
            Told {
                phase: Ok(Some("Storing")),
                ..all_well()
            },
            Some(Code::NotDownloadable),
            &["token", "access", "job"],
        ),
        (
            Told {
                phase: Ok(Some("Expired")),
                ..all_well()
            },
            Some(Code::Expired),
            &["token", "access", "job"],
        ),
        (
            Told {
                size: Ok(None),
                ..all_well()
            },
            Some(Code::NotFound),
            &["token", "access", "job", "head"],
        ),
        (
            Told {
                size: Err(()),
                ..all_well()
            },
            Some(Code::Unavailable),
            &["token", "access", "job", "head"],
        ),
    ];
    for (world, code, asked) in table {
        let verdict = ask(&world, &fresh()).await;
        assert_eq!(verdict.as_ref().err().map(|r| r.code), code, "{verdict:?}");
        assert_eq!(*world.asked.lock().expect("lock"), asked, "{code:?}");
        if let Err(refusal) = verdict {
            assert!(!refusal.message.contains("10.1.2.3"), "{}", refusal.message);
        }
    }
}

#[tokio::test]
async fn without_a_token_the_cluster_is_not_asked() {
    let world = all_well();
    let decision = decide(&world, &fresh(), "main", &target(), || token(None)).await;
    assert_eq!(decision.verdict.expect_err("refused").code, Code::Unauthenticated);
    assert!(decision.who.is_none());
    assert!(world.asked.lock().expect("lock").is_empty());
}

#[tokio::test]
async fn the_global_limit_stands_before_the_token_and_the_personal_one_before_the_access_review() {
    let limits = fresh();
    let world = all_well();
    for _ in 0..10 {
        ask(&world, &limits).await.expect("within the burst");
    }
    world.asked.lock().expect("lock").clear();
    let refusal = ask(&world, &limits).await.expect_err("limited");
    assert_eq!(refusal.code, Code::RateLimited);
    assert!(refusal.retry_after.is_some());
    assert_eq!(
        *world.asked.lock().expect("lock"),
        ["token"],
        "recognised, and no more"
    );

    // Far in the future the bucket would refill, so what drains it must outrun the clock of this test.
    while lock(&limits).attempt(Instant::now()).is_ok() {}
    world.asked.lock().expect("lock").clear();
    assert_eq!(
        ask(&world, &limits).await.expect_err("limited").code,
        Code::RateLimited
    );
    assert!(world.asked.lock().expect("lock").is_empty(), "nobody was asked");
}

#[tokio::test]
async fn the_lifetime_of_a_grant_is_computed_after_the_store_answered() {
    let brisk = Told {
        seconds_per_question: 50,
        ..all_well()
    };
    assert_eq!(
        ask(&brisk, &fresh()).await.expect("grant").ttl,
        Duration::from_secs(200)
    );
    let slow = Told {
        seconds_per_question: 100,
        ..all_well()
    };
    assert_eq!(
        ask(&slow, &fresh()).await.expect_err("too late").code,
        Code::Expired
    );
}
