//! The gateway between a real API server and a real S3 server.

mod support;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use support::{jobs::sha256, s3::S3};

fn location(response: &reqwest::Response) -> reqwest::Url {
    let text = response.headers()["location"].to_str().expect("text");
    reqwest::Url::parse(text).expect("URL")
}

fn expires(url: &reqwest::Url) -> u64 {
    let pair = url
        .query_pairs()
        .find(|(name, _)| name == "X-Amz-Expires")
        .expect("X-Amz-Expires");
    pair.1.parse().expect("seconds")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_download_is_a_short_link_that_works_without_the_token() {
    let s3 = S3::from_env(None);
    let site = s3.site().await;
    site.analyst("ana").await;
    let ana = site.token("ana").await;
    let content = vec![7_u8; 100_000];
    s3.ready(&site, "good", &content).await;

    let granted = site.ask("good", &ana).await;
    assert_eq!(granted.status(), 303);
    assert_eq!(granted.headers()["x-trawl-sha256"], sha256(&content).as_str());
    assert_eq!(granted.headers()["cache-control"], "no-store");
    assert!(granted.headers().contains_key("x-request-id"));
    let url = location(&granted);
    assert_eq!(url.scheme(), "https");
    assert!(!url.as_str().contains(&ana));
    assert_eq!(expires(&url), 300);
    let fetched = site.http().get(url.clone()).send().await.expect("answer");
    assert_eq!(fetched.status(), 200);
    assert!(fetched.bytes().await.expect("body") == content);
    let part = site
        .http()
        .get(url.clone())
        .header("range", "bytes=99990-")
        .send()
        .await
        .expect("answer");
    assert_eq!(
        (part.status().as_u16(), part.bytes().await.expect("body").len()),
        (206, 10)
    );
    let mut forged = url.clone();
    forged.set_path(&url.path().replace("capture.pcapng", "manifest.json"));
    assert_eq!(
        site.http().get(forged).send().await.expect("answer").status(),
        403,
        "the link is for one object"
    );

    let mut soon = site.completed(
        &site
            .jobs()
            .get("good")
            .await
            .expect("job")
            .metadata
            .uid
            .expect("uid"),
        &content,
    );
    soon["retentionDeadline"] = json!((Timestamp::now() + SignedDuration::from_secs(60)).to_string());
    site.status("good", soon).await;
    let last = expires(&location(&site.ask("good", &ana).await));
    assert!((50..=60).contains(&last), "never past the deadline: {last}");

    let signature = url
        .query_pairs()
        .find(|(name, _)| name == "X-Amz-Signature")
        .expect("signature")
        .1
        .into_owned();
    let log = site.end().await;
    assert!(log.contains(r#""delivery":"redirect""#), "{log}");
    assert!(
        !log.contains(&signature) && !log.contains("X-Amz-"),
        "the link is in the log"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_not_there_is_not_found_with_the_credential_of_the_gateway() {
    let s3 = S3::from_env(None);
    let site = s3.site().await;
    site.analyst("ana").await;
    let ana = site.token("ana").await;
    let uid = site.job("lost").await;
    site.status("lost", site.completed(&uid, b"bytes")).await;
    let response = site.ask("lost", &ana).await;
    assert_eq!(response.status(), 404);
    let body: Value = response.json().await.expect("JSON");
    assert_eq!(body["code"], "NotFound");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_or_refuses_is_an_outage_with_a_time_to_come_back() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("port")
        .local_addr()
        .expect("address");
    for (endpoint, duty) in [(Some(format!("https://{gone}")), "gateway"), (None, "runner")] {
        let s3 = S3::from_env(endpoint.clone());
        let dir = tempfile::tempdir().expect("directory");
        let site = support::Site::on(dir, s3.config.clone(), &s3.credentials(duty), None).await;
        site.analyst("ana").await;
        let ana = site.token("ana").await;
        let uid = site.job("good").await;
        site.status("good", site.completed(&uid, b"bytes")).await;
        let response = site.ask("good", &ana).await;
        assert_eq!(response.status(), 503, "{endpoint:?} {duty}");
        assert!(response.headers().contains_key("retry-after"));
        let body: Value = response.json().await.expect("JSON");
        assert_eq!(body["code"], "Unavailable");
        assert!(
            !body.to_string().contains(&gone.to_string()),
            "no internal address for the caller: {body}"
        );
        site.end().await;
    }
}
