use std::sync::Arc;

use base64::Engine as _;
use proptest::prelude::*;
use serde_json::{Value, json};
use trawl_api::FieldProblem;
use trawl_api::webhooks::{HOOKED, Purpose};
use trawl_audit::LedgerError;

use super::refusal;
use super::review::{Answer, Asked};

fn review(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "0c9a8d74-9cb7-44dd-b98e-09fd62def2f4",
            "kind": {"group": "trawl.cloud", "version": "v1alpha1", "kind": "NetworkTap"},
            "resource": {"group": "trawl.cloud", "version": "v1alpha1", "resource": "networktaps"},
            "name": "mirror", "namespace": "trawl-system", "operation": "CREATE",
            "userInfo": {"username": "alice", "groups": ["g"], "extra": {"k": ["v"]}},
            "object": {"spec": {}}, "oldObject": null, "dryRun": false, "options": null,
        },
    });
    change(&mut review);
    review.to_string().into_bytes()
}

#[test]
fn a_body_that_is_no_request_for_admission_is_named_without_being_repeated() {
    let bodies = [
        b"hunter2".to_vec(),
        review(|r| r["apiVersion"] = "admission.k8s.io/v1beta1".into()),
        review(|r| r["kind"] = "Pod".into()),
        review(|r| r["request"] = Value::Null),
        review(|r| r["request"]["uid"] = "".into()),
        review(|r| r["request"]["uid"] = "hunter2\n".into()),
        review(|r| r["request"]["userInfo"] = "hunter2".into()),
        review(|r| r["request"]["operation"] = json!(7)),
    ];
    for body in bodies {
        let why = Asked::read(&body).unwrap_err().to_string();
        assert!(why.contains("AdmissionReview"), "{why}");
        assert!(!why.contains("hunter2"), "{why}");
    }
}

#[test]
fn a_request_of_another_kind_version_subresource_or_operation_does_not_belong_to_a_path() {
    let belongs = |change: fn(&mut Value), purpose| {
        let asked = Asked::read(&review(change)).unwrap();
        asked.misplaced(&HOOKED[0], purpose).is_none()
    };
    assert!(belongs(|_| (), Purpose::Validate));
    assert!(belongs(|_| (), Purpose::Mutate));
    assert!(belongs(
        |r| r["request"]["operation"] = "DELETE".into(),
        Purpose::Validate
    ));
    assert!(!belongs(
        |r| r["request"]["operation"] = "DELETE".into(),
        Purpose::Mutate
    ));
    assert!(!belongs(
        |r| r["request"]["operation"] = "CONNECT".into(),
        Purpose::Validate
    ));
    assert!(!belongs(
        |r| r["request"]["kind"]["kind"] = "CaptureJob".into(),
        Purpose::Validate
    ));
    assert!(!belongs(
        |r| r["request"]["kind"]["version"] = "v1".into(),
        Purpose::Validate
    ));
    assert!(!belongs(
        |r| r["request"]["subResource"] = "status".into(),
        Purpose::Validate
    ));
    assert!(!belongs(
        |r| r["request"]["resource"]["group"] = "apps".into(),
        Purpose::Validate
    ));
}

#[test]
fn a_refusal_tells_every_problem_in_its_message_and_by_field() {
    let problem = |field: &str, message: &str| FieldProblem {
        field: field.into(),
        message: message.into(),
    };
    let problems = vec![problem("spec.filter", "a"), problem("spec.maxSize", "b")];
    let asked = Asked::read(&review(|_| ())).unwrap();
    let answer = Answer::Refused(refusal::of_verdict(problems, vec!["w".into()], false));
    let told = &answer.to_review(&asked)["response"];
    assert_eq!(told["uid"], "0c9a8d74-9cb7-44dd-b98e-09fd62def2f4");
    assert_eq!(
        (&told["allowed"], &told["warnings"]),
        (&json!(false), &json!(["w"]))
    );
    let status = &told["status"];
    assert_eq!(
        (&status["code"], &status["reason"]),
        (&json!(422), &json!("Invalid"))
    );
    assert_eq!(status["message"], "spec.filter: a; spec.maxSize: b");
    assert_eq!(status["details"]["causes"][1]["field"], "spec.maxSize");
    assert_eq!(status["details"]["name"], "mirror");
}

#[test]
fn a_patch_is_a_base64_document_and_an_empty_one_is_left_out() {
    let asked = Asked::read(&review(|_| ())).unwrap();
    let admitted = |patch| Answer::Admitted {
        patch,
        warnings: Vec::new(),
    };
    let told = admitted(vec![json!({"op": "add", "path": "/a", "value": 1})]).to_review(&asked);
    let patch = told["response"]["patch"].as_str().unwrap();
    let patch = base64::engine::general_purpose::STANDARD.decode(patch).unwrap();
    assert_eq!(patch, br#"[{"op":"add","path":"/a","value":1}]"#);
    assert_eq!(told["response"]["patchType"], "JSONPatch");
    assert!(
        admitted(Vec::new()).to_review(&asked)["response"]
            .get("patch")
            .is_none()
    );
}

#[test]
fn a_ledger_that_is_down_is_told_with_what_to_do_and_without_secrets() {
    let error = LedgerError::Unavailable("password=hunter2: No space left on device".into());
    let refusal = refusal::unrecorded(&error);
    assert!(
        refusal.message.starts_with("AuditUnavailable: "),
        "{}",
        refusal.message
    );
    assert!(refusal.message.contains("docs/audit.md"), "{}", refusal.message);
    assert!(!refusal.message.contains("hunter2"), "{}", refusal.message);
}

/// A ledger that keeps nothing.
struct Down;

#[async_trait::async_trait]
impl trawl_audit::Ledger for Down {
    async fn commit(&self, _: trawl_audit::Entry) -> Result<trawl_audit::Record, LedgerError> {
        Err(LedgerError::Unavailable("down".into()))
    }
}

fn webhooks() -> super::Webhooks {
    let rules = trawl_admission::Rules {
        namespace: "trawl-system".into(),
        worker: "w".into(),
        retention_administrators: Vec::new(),
        retention_ceiling: std::time::Duration::from_secs(3600),
        providers: Vec::new(),
        filter: Default::default(),
    };
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    trawl_kube::startup::install_crypto();
    let client = kube::Client::try_from(config).unwrap();
    let taps = super::Taps::new(kube::Api::namespaced(client, "trawl-system"));
    super::Webhooks::new(rules, Arc::new(Down), taps, jiff::Timestamp::now)
}

#[tokio::test]
async fn a_misplaced_request_is_refused_and_neither_judged_nor_recorded() {
    let body = review(|_| ());
    let told = webhooks()
        .review(&HOOKED[3], Purpose::Validate, &body)
        .await
        .unwrap();
    assert_eq!(told["response"]["allowed"], false);
    assert_eq!(told["response"]["status"]["code"], 400);
}

#[tokio::test]
async fn without_a_ledger_what_would_be_admitted_is_refused_and_what_is_refused_stays_so_for_its_own_reason()
{
    let deletion = |namespace: &'static str| {
        review(move |r| {
            r["request"]["operation"] = "DELETE".into();
            r["request"]["namespace"] = namespace.into();
        })
    };
    let told = async |body: Vec<u8>| {
        webhooks()
            .review(&HOOKED[0], Purpose::Validate, &body)
            .await
            .unwrap()
    };
    let unrecorded = told(deletion("trawl-system")).await;
    assert_eq!(unrecorded["response"]["status"]["code"], 500);
    let text = unrecorded["response"]["status"]["message"].as_str().unwrap();
    assert!(text.starts_with("AuditUnavailable"), "{text}");
    let refused = told(review(|_| ())).await;
    assert_eq!(refused["response"]["status"]["code"], 422, "{refused}");
    let dry = told(review(|r| {
        r["request"]["operation"] = "DELETE".into();
        r["request"]["dryRun"] = true.into();
    }));
    assert_eq!(
        dry.await["response"]["allowed"],
        true,
        "what is not done is not recorded"
    );
}

#[tokio::test]
async fn what_is_no_name_of_a_tap_is_not_asked_for() {
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = asked.clone();
    let server = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        seen.lock().unwrap().push(request.uri().to_string());
        let body =
            br#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}"#;
        let answer = http::Response::builder().status(404);
        let answer = answer.body(kube::client::Body::from(body.to_vec())).unwrap();
        async { Ok::<_, std::convert::Infallible>(answer) }
    });
    let client = kube::Client::new(server, "trawl-system");
    let taps = super::Taps::new(kube::Api::namespaced(client, "trawl-system"));
    for name in ["../../secrets/x", "mirror?watch=true", "", "mirror/status"] {
        assert_eq!(
            taps.look(name).await,
            trawl_admission::TapReference::Unknown,
            "{name}"
        );
    }
    assert_eq!(taps.look("mirror").await, trawl_admission::TapReference::Missing);
    let asked = asked.lock().unwrap();
    assert!(
        matches!(asked.as_slice(), [one] if one.ends_with("/networktaps/mirror")),
        "{asked:?}"
    );
}

async fn posted(router: &axum::Router, length: Option<usize>, body: axum::body::Body) -> u16 {
    let path = HOOKED[0].path(Purpose::Validate);
    let mut request = axum::http::Request::post(path);
    if let Some(length) = length {
        request = request.header("content-length", length);
    }
    let answer = tower::ServiceExt::oneshot(router.clone(), request.body(body).unwrap());
    answer.await.unwrap().status().as_u16()
}

#[tokio::test]
async fn bodies_that_are_too_large_or_too_slow_are_let_go_and_keep_nobody_waiting_for_ever() {
    let router = super::server::router(Arc::new(webhooks()));
    let never =
        || axum::body::Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let large = 6 << 20;
    assert_eq!(posted(&router, Some(large + 1), never()).await, 413);
    assert_eq!(
        posted(&router, Some(10), vec![b'x'; 70_000].into()).await,
        400,
        "longer than said"
    );
    // Two that never end hold all the room; the third is served when they are let go.
    let third = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        posted(&router, None, review(|_| ()).into()).await
    };
    let (one, two, third) = tokio::join!(
        posted(&router, None, never()),
        posted(&router, None, never()),
        third
    );
    assert_eq!((one, two, third), (408, 408, 200));
}

#[tokio::test]
async fn what_compiles_nothing_waits_for_no_filter() {
    let webhooks = webhooks();
    let every = webhooks.places.available_permits() as u32;
    let _compiling = webhooks.places.clone().acquire_many_owned(every).await.unwrap();
    let about = |n: usize, operation: &str, old: Value, new: Value| {
        let hooked = &HOOKED[n];
        review(|r| {
            r["request"]["kind"]["kind"] = hooked.kind.as_str().into();
            r["request"]["resource"]["resource"] = hooked.plural.into();
            r["request"]["operation"] = operation.into();
            r["request"]["dryRun"] = true.into();
            (r["request"]["oldObject"], r["request"]["object"]) = (old, new);
        })
    };
    let policy = HOOKED
        .iter()
        .position(|h| h.kind == trawl_api::Kind::CapturePolicy)
        .unwrap();
    let armed = |armed: bool| json!({"spec": {"armed": armed}});
    let finalized = json!({"metadata": {"finalizers": ["a/b"]}, "spec": {"armed": true}});
    let quick = [
        about(policy, "UPDATE", armed(true), armed(false)),
        about(policy, "UPDATE", armed(true), finalized),
        about(policy, "DELETE", armed(true), Value::Null),
    ];
    for body in quick {
        let told = webhooks.review(&HOOKED[policy], Purpose::Validate, &body);
        let told = tokio::time::timeout(std::time::Duration::from_secs(2), told);
        let told = told.await.expect("it waits for no place").unwrap();
        assert_eq!(told["response"]["allowed"], true, "{told}");
    }
    let slow = about(policy, "CREATE", Value::Null, armed(false));
    let told = webhooks
        .review(&HOOKED[policy], Purpose::Mutate, &slow)
        .await
        .unwrap();
    assert_eq!(told["response"]["allowed"], true, "{told}");
    let told = webhooks.review(&HOOKED[policy], Purpose::Validate, &slow);
    let told = tokio::time::timeout(std::time::Duration::from_millis(200), told);
    told.await.expect_err("it waits for a place");
}

proptest! {
    #[test]
    fn no_body_whatever_makes_the_webhooks_fail(
        cut in 0usize..700, at in 0usize..700, byte: u8, noise in proptest::collection::vec(any::<u8>(), 0..200)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut body = review(|r| r["request"]["dryRun"] = true.into());
        let (cut, at) = (cut.min(body.len()), at.min(body.len() - 1));
        body[at] = byte;
        runtime.block_on(async {
            let webhooks = webhooks();
            for body in [&body[..], &body[..cut], &noise[..]] {
                for purpose in [Purpose::Mutate, Purpose::Validate] {
                    if let Ok(told) = webhooks.review(&HOOKED[0], purpose, body).await {
                        assert!(told["response"]["allowed"].is_boolean());
                        let message = told["response"]["status"]["message"].as_str().unwrap_or_default();
                        assert!(!message.contains("deciding failed"), "{message}");
                    }
                }
            }
        });
    }
}
