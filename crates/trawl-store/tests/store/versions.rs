//! Deletion in buckets that keep versions, hold them, hide them or have none.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::HttpRequestBody;

use super::*;

/// One signed request as `who`: status and answer.
async fn ask(who: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    ask_by(&web(), who, method, path, body, &[]).await
}

async fn ask_by(
    web: &reqwest::Client,
    who: &str,
    method: &str,
    path: &str,
    body: &str,
    headers: &[(&str, &str)],
) -> (u16, String) {
    use sha2::Digest;
    let read = |name| std::fs::read_to_string(credentials_of(who).join(name)).unwrap();
    let credential = AwsCredential {
        key_id: read("access-key-id"),
        secret_key: read("secret-access-key"),
        token: None,
    };
    let url = format!("{}{path}", env("S3_ENDPOINT"));
    let digest = sha2::Sha256::digest(body.as_bytes());
    let mut request = http::Request::builder()
        .method(method)
        .uri(&url)
        .header("x-amz-checksum-sha256", STANDARD.encode(digest));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(HttpRequestBody::empty()).unwrap();
    AwsAuthorizer::new(&credential, "s3", &env("S3_REGION"))
        .try_authorize(&mut request, Some(&digest))
        .unwrap();
    let answer = web
        .request(request.method().clone(), &url)
        .headers(request.headers().clone())
        .body(body.to_owned())
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn expect(status: u16, who: &str, method: &str, path: &str, body: &str) {
    let (got, text) = ask(who, method, path, body).await;
    assert_eq!(got, status, "{method} {path} as {who}: {text}");
}

/// A bucket of its own, made by the administrator, with what the operator may do there.
struct Bucket {
    name: String,
    operator: Store,
    web: reqwest::Client,
}

impl Bucket {
    async fn make(headers: &[(&str, &str)], on_objects: &str) -> Self {
        let name = prefix().replace("captures/test/", "test-");
        let web = web();
        let (status, text) = ask_by(&web, "admin", "PUT", &format!("/{name}"), "", headers).await;
        assert_eq!(status, 200, "{text}");
        let operator = std::fs::read_to_string(credentials_of("operator").join("access-key-id")).unwrap();
        let policy = format!(
            r#"{{"Version":"2012-10-17","Statement":[
            {{"Effect":"Allow","Principal":{{"AWS":["{operator}"]}},"Action":[{on_objects}],"Resource":"arn:aws:s3:::{name}/*"}},
            {{"Effect":"Allow","Principal":{{"AWS":["{operator}"]}},"Action":["s3:ListBucket","s3:ListBucketVersions"],"Resource":"arn:aws:s3:::{name}"}}]}}"#
        );
        expect(204, "admin", "PUT", &format!("/{name}?policy="), &policy).await;
        let config = S3Config {
            bucket: name.clone(),
            ..s3_config()
        };
        let operator = s3_store(config, credentials_of("operator"));
        Self { name, operator, web }
    }

    async fn versioning(&self, status: &str) {
        let body = format!(
            "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <Status>{status}</Status></VersioningConfiguration>"
        );
        expect(200, "admin", "PUT", &format!("/{}?versioning=", self.name), &body).await;
    }

    async fn put(&self, key: &str, body: &str) {
        let path = format!("/{}/{key}", self.name);
        let (status, text) = ask_by(&self.web, "admin", "PUT", &path, body, &[]).await;
        assert_eq!(status, 200, "{text}");
    }

    /// Versions and delete markers of exactly this key, newest first within each kind.
    async fn versions(&self, key: &str) -> Vec<String> {
        versions(&self.name, key).await
    }

    async fn remove(self) {
        expect(204, "admin", "DELETE", &format!("/{}", self.name), "").await;
    }
}

async fn versions(bucket: &str, key: &str) -> Vec<String> {
    let query = key.replace('/', "%2F");
    let (status, text) = ask("admin", "GET", &format!("/{bucket}?prefix={query}&versions="), "").await;
    assert_eq!(status, 200, "{text}");
    let entries = text.split("<Key>").skip(1);
    let of_key = entries.filter(|entry| entry.starts_with(&format!("{key}<")));
    of_key
        .map(|entry| {
            let id = entry
                .split("<VersionId>")
                .nth(1)
                .expect("an entry has a version id");
            id.split('<').next().unwrap().to_owned()
        })
        .collect()
}

const ALL_RIGHTS: &str = r#""s3:GetObject","s3:GetObjectVersion","s3:DeleteObject","s3:DeleteObjectVersion""#;

#[tokio::test]
async fn deletion_leaves_no_version_and_no_delete_marker_of_the_key_and_touches_no_other() {
    let (world, bucket) = (s3(), env("S3_BUCKET"));
    let (key, other) = (world.key("capture.pcapng"), world.key("capture.pcapng.old"));
    for key in [&key, &other] {
        world
            .runner
            .put_if_absent(key, Bytes::from_static(b"first"))
            .await
            .unwrap();
        for body in ["second", "third"] {
            expect(200, "admin", "PUT", &format!("/{bucket}/{key}"), body).await;
        }
        expect(204, "admin", "DELETE", &format!("/{bucket}/{key}"), "").await;
        expect(200, "admin", "PUT", &format!("/{bucket}/{key}"), "fourth").await;
        let found = versions(&bucket, key).await;
        assert_eq!(found.len(), 5, "{found:?}");
    }
    world.operator.delete(&key).await.unwrap();
    assert_eq!(versions(&bucket, &key).await, [""; 0]);
    let absent = StoreError::NotFound { key: key.clone() };
    assert_eq!(world.operator.head(&key).await, Err(absent));
    world.operator.delete(&key).await.unwrap();
    assert_eq!(versions(&bucket, &key).await, [""; 0]);
    assert_eq!(versions(&bucket, &other).await.len(), 5);
    assert_eq!(content(&world.operator, &other).await, b"fourth");
    world
        .runner
        .put_if_absent(&key, Bytes::from_static(b"again"))
        .await
        .unwrap();
    assert_eq!(content(&world.operator, &key).await, b"again");
}

#[tokio::test]
async fn versions_that_a_delete_marker_hides_are_deleted() {
    let (world, bucket) = (s3(), env("S3_BUCKET"));
    let key = world.key("capture.pcapng");
    world
        .runner
        .put_if_absent(&key, Bytes::from_static(b"hidden"))
        .await
        .unwrap();
    expect(204, "operator", "DELETE", &format!("/{bucket}/{key}"), "").await;
    let absent = StoreError::NotFound { key: key.clone() };
    assert_eq!(world.operator.head(&key).await, Err(absent));
    assert_eq!(versions(&bucket, &key).await.len(), 2);
    world.operator.delete(&key).await.unwrap();
    assert_eq!(versions(&bucket, &key).await, [""; 0]);
}

#[tokio::test]
async fn more_versions_than_one_page_holds_are_all_deleted() {
    let bucket = Bucket::make(&[], ALL_RIGHTS).await;
    bucket.versioning("Enabled").await;
    let key = "captures/many/capture.pcapng";
    for n in 0..1003 {
        bucket.put(key, &n.to_string()).await;
    }
    bucket.operator.delete(key).await.unwrap();
    assert_eq!(bucket.versions(key).await, [""; 0]);
    bucket.remove().await;
}

#[tokio::test]
async fn a_bucket_without_versioning_or_with_it_suspended_is_left_as_empty() {
    let bucket = Bucket::make(&[], ALL_RIGHTS).await;
    let key = "captures/a/capture.pcapng";
    bucket.put(key, "never versioned").await;
    assert_eq!(bucket.versions(key).await, ["null"]);
    bucket.operator.delete(key).await.unwrap();
    assert_eq!(bucket.versions(key).await, [""; 0]);
    bucket.operator.delete(key).await.unwrap();

    bucket.put(key, "before").await;
    bucket.versioning("Enabled").await;
    bucket.put(key, "while").await;
    bucket.versioning("Suspended").await;
    assert_eq!(bucket.versions(key).await.len(), 2);
    bucket.operator.delete(key).await.unwrap();
    let absent = StoreError::NotFound { key: key.into() };
    assert_eq!(bucket.operator.head(key).await, Err(absent));
    assert_eq!(bucket.versions(key).await, [""; 0]);
    bucket.remove().await;
}

#[tokio::test]
async fn a_version_under_legal_hold_is_named_and_its_deletion_not_claimed() {
    let bucket = Bucket::make(&[("x-amz-bucket-object-lock-enabled", "true")], ALL_RIGHTS).await;
    let key = "captures/a/capture.pcapng";
    bucket.put(key, "held").await;
    let held = bucket.versions(key).await;
    let hold = format!("/{}/{key}?legal-hold=&versionId={}", bucket.name, held[0]);
    let body = |status| {
        format!(
            "<LegalHold xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Status>{status}</Status></LegalHold>"
        )
    };
    expect(200, "admin", "PUT", &hold, &body("ON")).await;
    bucket.put(key, "free").await;
    match bucket.operator.delete(key).await {
        Err(StoreError::Remains { versions, .. }) => assert_eq!(versions, held),
        other => panic!("{other:?}"),
    }
    assert_eq!(bucket.versions(key).await, held);
    expect(200, "admin", "PUT", &hold, &body("OFF")).await;
    bucket.operator.delete(key).await.unwrap();
    assert_eq!(bucket.versions(key).await, [""; 0]);
    bucket.remove().await;
}

#[tokio::test]
async fn without_the_right_to_delete_versions_nothing_goes_and_all_of_it_is_named() {
    let bucket = Bucket::make(&[], r#""s3:GetObject","s3:DeleteObject""#).await;
    bucket.versioning("Enabled").await;
    let key = "captures/a/capture.pcapng";
    bucket.put(key, "one").await;
    bucket.put(key, "two").await;
    let mut kept = bucket.versions(key).await;
    match bucket.operator.delete(key).await {
        Err(StoreError::Remains {
            versions, problem, ..
        }) => {
            kept.reverse();
            assert_eq!(versions, kept);
            assert!(problem.contains("s3:DeleteObjectVersion"), "{problem}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bucket.versions(key).await.len(), 2);
    for id in kept {
        let version = format!("/{}/{key}?versionId={id}", bucket.name);
        expect(204, "admin", "DELETE", &version, "").await;
    }
    bucket.remove().await;
}
