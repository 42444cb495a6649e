//! The gateway in front of a real API server: real TokenReviews, real SubjectAccessReviews, real tokens.

mod support;

use serde_json::{Value, json};
use support::{Site, jobs::sha256};

/// Status, code and headers that every refusal must have.
async fn refusal(response: reqwest::Response) -> (u16, String, Option<String>) {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let header = |name: &str| {
        headers
            .get(name)
            .map(|value| value.to_str().expect("text").to_owned())
    };
    let body: Value = response.json().await.expect("JSON body");
    assert_eq!(header("cache-control").as_deref(), Some("no-store"));
    let id = header("x-request-id").expect("request id");
    assert_eq!(body["request_id"], id.as_str());
    assert!(
        body["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty())
    );
    assert_eq!(body.as_object().expect("object").len(), 3, "{body}");
    assert!(header("location").is_none());
    (
        status,
        body["code"].as_str().expect("code").to_owned(),
        header("retry-after"),
    )
}

/// What the kubelet is told, once the first look was taken.
async fn health(site: &Site, leaf: &str) -> (u16, String) {
    let url = format!("http://{}/{leaf}", site.gateway.health.expect("health endpoints"));
    for _ in 0..100 {
        if let Ok(answer) = reqwest::get(&url).await {
            let (status, text) = (answer.status().as_u16(), answer.text().await.expect("text"));
            if !text.contains("not ready yet") {
                return (status, text);
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("no word from {url}");
}

fn plain(status: u16, code: &str) -> (u16, String, Option<String>) {
    (status, code.to_owned(), None)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refusal_of_the_contract_meets_a_real_token() {
    let site = Site::new().await;
    // One caller per few questions, so that nobody meets the limiter here.
    site.analyst("ana").await;
    site.analyst("ben").await;
    site.stranger("eve").await;
    let (ana, ben, eve) = (
        site.token("ana").await,
        site.token("ben").await,
        site.token("eve").await,
    );
    let wrong = site.token_for("ana", None).await;
    let other = site.token_for("ana", Some("somebody-else")).await;
    site.ready("good", b"bytes").await;
    site.job("fresh").await;

    let nobody = site
        .http()
        .get(site.url("good", "download"))
        .send()
        .await
        .expect("answer");
    assert_eq!(nobody.headers()["www-authenticate"], "Bearer");
    assert_eq!(refusal(nobody).await, plain(401, "Unauthenticated"));
    for token in ["garbage", "a.b.c", &wrong, &other, &format!("{ana}x")] {
        assert_eq!(
            refusal(site.ask("good", token).await).await,
            plain(401, "Unauthenticated"),
            "{token}"
        );
    }
    assert_eq!(
        refusal(site.ask("good", &eve).await).await,
        plain(403, "Forbidden")
    );
    assert_eq!(
        refusal(site.ask("absent", &ana).await).await,
        plain(404, "NotFound")
    );
    assert_eq!(
        refusal(site.ask("fresh", &ana).await).await,
        plain(409, "NotDownloadable")
    );
    for phase in ["Pending", "Capturing", "Storing", "Failed"] {
        site.status("fresh", json!({"phase": phase})).await;
        assert_eq!(
            refusal(site.ask("fresh", &ana).await).await,
            plain(409, "NotDownloadable"),
            "{phase}"
        );
    }

    let uid = site.job("lost").await;
    site.status("lost", site.completed(&uid, b"bytes")).await;
    assert_eq!(
        refusal(site.ask("lost", &ben).await).await,
        plain(404, "NotFound"),
        "no object"
    );

    let uid = site.ready("old", b"bytes").await;
    let mut over = site.completed(&uid, b"bytes");
    over["retentionDeadline"] = json!("2020-01-01T00:00:00Z");
    site.status("old", over).await;
    assert_eq!(
        refusal(site.ask("old", &ben).await).await,
        plain(410, "Expired"),
        "deadline"
    );
    site.status("old", json!({"phase": "Expired"})).await;
    assert_eq!(
        refusal(site.ask("old", &ben).await).await,
        plain(410, "Expired"),
        "phase"
    );

    for name in ["UPPER", "a_b", "..%2F..%2Fsecrets", "%ff"] {
        assert_eq!(
            refusal(site.ask(name, &ben).await).await,
            plain(400, "BadRequest"),
            "{name}"
        );
    }
    let elsewhere = site
        .url("good", "download")
        .replace(&site.namespace, "kube-system");
    let elsewhere = site
        .http()
        .get(elsewhere)
        .bearer_auth(&ben)
        .send()
        .await
        .expect("answer");
    assert_eq!(refusal(elsewhere).await, plain(400, "BadRequest"));
    assert_eq!(
        site.ask("good", &ben).await.status(),
        200,
        "and the good one is given"
    );

    let log = site.end().await;
    let decisions: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("every line of the log is JSON"))
        .filter(|line| line["target"] == "trawl_gateway::decision")
        .collect();
    let count = |decision: &str| {
        decisions
            .iter()
            .filter(|line| line["decision"] == decision)
            .count()
    };
    assert_eq!(
        (count("allowed"), count("denied"), count("failed")),
        (1, 21, 0),
        "{log}"
    );
    let forbidden = decisions
        .iter()
        .find(|line| line["code"] == "Forbidden")
        .expect("the refusal of eve");
    assert!(
        forbidden["username"]
            .as_str()
            .is_some_and(|name| name.ends_with(":eve")),
        "{forbidden}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_the_right_cannot_tell_a_job_that_exists_from_one_that_does_not() {
    let site = Site::new().await;
    site.stranger("eve").await;
    site.may_ask_for_captures("eve").await;
    let eve = site.token("eve").await;
    site.ready("good", b"bytes").await;
    for leaf in ["download", "manifest"] {
        let mut answers = Vec::new();
        for name in ["good", "absent"] {
            let response = site
                .http()
                .get(site.url(name, leaf))
                .bearer_auth(&eve)
                .send()
                .await
                .expect("answer");
            let status = response.status();
            let mut body: Value = response.json().await.expect("JSON");
            body["request_id"].take();
            answers.push((status, body));
        }
        assert_eq!(answers[0].0, 403, "listing jobs is not downloading them");
        assert_eq!(answers[0], answers[1], "{leaf}");
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_asks_too_often_is_told_when_to_come_back_and_holds_up_nobody_else() {
    let site = Site::new().await;
    site.analyst("ana").await;
    site.analyst("ben").await;
    let (ana, again, ben) = (
        site.token("ana").await,
        site.token("ana").await,
        site.token("ben").await,
    );
    let mut limited = None;
    for attempt in 0..40 {
        // Two tokens of one account are one identity.
        let token = if attempt % 2 == 0 { &ana } else { &again };
        let response = site.ask("absent", token).await;
        if response.status() == 429 {
            limited = Some((attempt, refusal(response).await));
            break;
        }
        assert_eq!(response.status(), 404);
    }
    let (attempt, (_, code, wait)) = limited.expect("a limit");
    assert!(attempt >= 10, "the burst is ten: {attempt}");
    assert_eq!(code, "RateLimited");
    assert!(matches!(wait.expect("Retry-After").as_str(), "1" | "2"));
    assert_eq!(site.ask("absent", &ben).await.status(), 404);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_away_is_an_outage_and_not_a_refusal() {
    use trawl_config::store::{DirectoryConfig, StoreBackend, StoreConfig};
    let gone = support::serving::free_address();
    let dir = tempfile::tempdir().expect("directory");
    let backend = StoreBackend::Directory(DirectoryConfig {
        path: dir.path().display().to_string(),
    });
    let store = StoreConfig {
        profile: support::PROFILE.into(),
        backend,
    };
    let server = format!("https://{gone}");
    let site = Site::on(dir, store, std::path::Path::new("/nonexistent"), Some(&server)).await;
    site.analyst("ana").await;
    let ana = site.token("ana").await;
    let (status, code, wait) = refusal(site.ask("good", &ana).await).await;
    assert_eq!((status, code.as_str()), (503, "Unavailable"));
    assert!(wait.is_some(), "Retry-After");
    let (code, problems) = health(&site, "readyz").await;
    assert_eq!(code, 503);
    assert!(problems.contains("cluster API"), "{problems}");
    assert_eq!(
        health(&site, "healthz").await.0,
        200,
        "an outage elsewhere is no reason to be restarted"
    );
    let log = site.end().await;
    assert!(log.contains(r#""decision":"failed""#), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_directory_store_is_streamed_whole_and_in_ranges() {
    let site = Site::new().await;
    site.analyst("ana").await;
    site.analyst("ben").await;
    let (ana, ben) = (site.token("ana").await, site.token("ben").await);
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let uid = site.ready("good", &content).await;
    let manifest = site.object_path(&uid).with_file_name("manifest.json");
    std::fs::write(manifest, b"{\"schema\":\"x\"}").expect("manifest");

    let whole = site.ask("good", &ana).await;
    assert_eq!(whole.status(), 200);
    let headers = whole.headers().clone();
    assert_eq!(headers["x-trawl-sha256"], sha256(&content).as_str());
    assert_eq!(headers["etag"], format!("\"{}\"", sha256(&content)).as_str());
    assert_eq!(headers["cache-control"], "no-store");
    assert_eq!(headers["accept-ranges"], "bytes");
    assert_eq!(headers["content-length"], "3000000");
    assert!(headers.contains_key("x-request-id"));
    assert!(whole.bytes().await.expect("body") == content);

    let ranged = async |range: &str, condition: Option<&str>| {
        let mut request = site
            .http()
            .get(site.url("good", "download"))
            .bearer_auth(&ana)
            .header("range", range);
        if let Some(etag) = condition {
            request = request.header("if-range", etag);
        }
        request.send().await.expect("answer")
    };
    let tail = ranged("bytes=2999990-", None).await;
    assert_eq!(tail.status(), 206);
    assert_eq!(tail.headers()["content-range"], "bytes 2999990-2999999/3000000");
    assert_eq!(tail.headers()["x-trawl-sha256"], sha256(&content).as_str());
    assert_eq!(tail.bytes().await.expect("body"), content[2_999_990..]);
    let middle = ranged("bytes=1000-1999", Some(&format!("\"{}\"", sha256(&content)))).await;
    assert_eq!(
        (
            middle.status().as_u16(),
            middle.bytes().await.expect("body").to_vec()
        ),
        (206, content[1000..2000].to_vec())
    );
    assert_eq!(ranged("bytes=10-", Some("\"another\"")).await.status(), 200);
    let beyond = ranged("bytes=3000000-", None).await;
    assert_eq!(beyond.status(), 416);
    assert_eq!(beyond.headers()["content-range"], "bytes */3000000");

    let head = site
        .http()
        .head(site.url("good", "download"))
        .bearer_auth(&ben)
        .send()
        .await
        .expect("answer");
    assert_eq!(head.status(), 200);
    assert_eq!(head.headers()["content-length"], "3000000");
    let manifest = site
        .http()
        .get(site.url("good", "manifest"))
        .bearer_auth(&ben)
        .send()
        .await
        .expect("answer");
    assert_eq!(manifest.headers()["content-type"], "application/json");
    assert_eq!(manifest.text().await.expect("body"), "{\"schema\":\"x\"}");

    let post = site
        .http()
        .post(site.url("good", "download"))
        .bearer_auth(&ben)
        .send()
        .await
        .expect("answer");
    assert_eq!(post.status(), 405);
    let path = site
        .http()
        .get(format!("{}/metrics", site.gateway.url()))
        .send()
        .await
        .expect("answer");
    assert_eq!(refusal(path).await, plain(404, "NotFound"));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_one_job_cannot_point_at_the_evidence_of_another() {
    let site = Site::new().await;
    site.analyst("ana").await;
    let ana = site.token("ana").await;
    let secret = site.ready("secret", b"secret bytes").await;
    let uid = site.ready("mine", b"my bytes").await;
    let mut forged = site.completed(&uid, b"secret bytes");
    forged["artifact"]["key"] = json!(trawl_artifact::keys::capture_key(&site.namespace, &secret));
    site.status("mine", forged).await;
    assert_eq!(
        refusal(site.ask("mine", &ana).await).await,
        plain(409, "NotDownloadable")
    );
    site.end().await;
}
