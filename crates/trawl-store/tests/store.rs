//! One conformance suite, run on the local directory and on a real S3 server (environment of `dev/s3 env`).

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use trawl_config::store::{DirectoryConfig, S3Config, StoreBackend, StoreConfig};
use trawl_store::{Store, StoreError};

#[path = "store/versions.rs"]
mod versions;

/// A store as its three users see it, and a prefix that no other test uses.
struct World {
    runner: Store,
    operator: Store,
    gateway: Store,
    prefix: String,
    _directory: Option<tempfile::TempDir>,
}

impl World {
    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run dev/test store"))
}

fn s3_config() -> S3Config {
    let ca = std::fs::read_to_string(env("S3_CA"))
        .expect("S3_CA must name a readable PEM file: run dev/test store");
    S3Config {
        endpoint: env("S3_ENDPOINT"),
        bucket: env("S3_BUCKET"),
        region: env("S3_REGION"),
        path_style: true,
        allow_http: false,
        ca_pem: Some(ca),
    }
}

fn s3_store(config: S3Config, credentials: PathBuf) -> Store {
    let config = StoreConfig {
        profile: "test".into(),
        backend: StoreBackend::S3(config),
    };
    Store::open(&config, &credentials).expect("a client needs no server")
}

fn credentials_of(who: &str) -> PathBuf {
    PathBuf::from(env("S3_CREDENTIALS")).join(who)
}

fn prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let time = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    format!(
        "captures/test/{}-{time}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

fn s3() -> World {
    let open = |who| s3_store(s3_config(), credentials_of(who));
    World {
        runner: open("runner"),
        operator: open("operator"),
        gateway: open("gateway"),
        prefix: prefix(),
        _directory: None,
    }
}

fn directory() -> World {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap().to_owned();
    let config = StoreConfig {
        profile: "test".into(),
        backend: StoreBackend::Directory(DirectoryConfig { path }),
    };
    let store = Store::open(&config, std::path::Path::new("/nonexistent")).unwrap();
    World {
        runner: store.clone(),
        operator: store.clone(),
        gateway: store,
        prefix: prefix(),
        _directory: Some(directory),
    }
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    trawl_artifact::verify::hex(&sha2::Sha256::digest(bytes))
}

async fn content(store: &Store, key: &str) -> Vec<u8> {
    store.get(key).await.unwrap().into_bytes(u64::MAX).await.unwrap()
}

/// Bytes that differ everywhere, so that a misplaced chunk shows.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

async fn a_stored_file_comes_back_byte_for_byte(world: World) {
    let bytes = pattern(3 * 1024 * 1024 + 17);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let key = world.key("capture.pcapng");
    let size = bytes.len() as u64;
    let put = world
        .runner
        .put_file_if_absent(&key, file.path(), size, &sha256(&bytes))
        .await
        .unwrap();
    assert_eq!((put.key.as_str(), put.size), (key.as_str(), size));
    assert!(content(&world.operator, &key).await == bytes, "content differs");
    assert_eq!(world.gateway.head(&key).await.unwrap().size, size);
}

async fn only_the_announced_bytes_of_a_file_are_stored(world: World) {
    let bytes = pattern(10_000);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let key = world.key("capture.pcapng");
    world
        .runner
        .put_file_if_absent(&key, file.path(), 9_000, &sha256(&bytes[..9_000]))
        .await
        .unwrap();
    assert!(content(&world.operator, &key).await == bytes[..9_000]);
}

async fn a_file_with_another_hash_than_announced_is_not_stored(world: World) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"not what was announced").unwrap();
    let key = world.key("capture.pcapng");
    let put = world
        .runner
        .put_file_if_absent(&key, file.path(), 22, &sha256(b"something else"))
        .await;
    assert!(
        matches!(
            put,
            Err(StoreError::Invalid { .. } | StoreError::Unreachable { .. })
        ),
        "{put:?}"
    );
    assert_eq!(world.operator.head(&key).await, Err(StoreError::NotFound { key }));
    assert_eq!(world.operator.list(&world.prefix).await.unwrap(), []);
}

async fn one_of_sixteen_concurrent_creators_wins_and_its_bytes_stay(world: World) {
    let key = world.key("capture.pcapng");
    let attempts = (0..16u8).map(|i| {
        let (store, key) = (world.runner.clone(), key.clone());
        tokio::spawn(async move { (i, store.put_if_absent(&key, Bytes::from(vec![i; 300_000])).await) })
    });
    let mut winners = vec![];
    for attempt in attempts.collect::<Vec<_>>() {
        match attempt.await.unwrap() {
            (i, Ok(_)) => winners.push(i),
            (_, Err(StoreError::AlreadyExists { .. })) => {}
            (i, Err(other)) => panic!("creator {i}: {other}"),
        }
    }
    assert_eq!(winners.len(), 1, "winners: {winners:?}");
    assert!(content(&world.operator, &key).await == vec![winners[0]; 300_000]);
}

async fn a_second_create_is_refused_whatever_its_size(world: World) {
    let key = world.key("capture.pcapng");
    world
        .runner
        .put_if_absent(&key, Bytes::from_static(b"first"))
        .await
        .unwrap();
    let big = tempfile::NamedTempFile::new().unwrap();
    let bytes = pattern(24 * 1024 * 1024);
    std::fs::write(big.path(), &bytes).unwrap();
    for again in [
        world
            .runner
            .put_if_absent(&key, Bytes::from_static(b"second"))
            .await,
        world
            .runner
            .put_file_if_absent(&key, big.path(), bytes.len() as u64, &sha256(&bytes))
            .await,
    ] {
        assert_eq!(again, Err(StoreError::AlreadyExists { key: key.clone() }));
    }
    assert_eq!(content(&world.operator, &key).await, b"first");
}

async fn a_range_is_exact_and_one_beyond_the_end_is_refused(world: World) {
    let bytes = pattern(100_000);
    let key = world.key("capture.pcapng");
    world
        .runner
        .put_if_absent(&key, Bytes::from(bytes.clone()))
        .await
        .unwrap();
    for (range, expected) in [
        (0..1, 0..1),
        (4_096..65_537, 4_096..65_537),
        (99_990..200_000, 99_990..100_000),
    ] {
        let part = world.gateway.get_range(&key, range).await.unwrap();
        assert_eq!(
            (part.range.clone(), part.info.size),
            (expected.start as u64..expected.end as u64, 100_000)
        );
        assert!(part.into_bytes(u64::MAX).await.unwrap() == bytes[expected]);
    }
    let beyond = world
        .gateway
        .get_range(&key, 100_000..100_001)
        .await
        .map(|part| part.range);
    assert!(matches!(beyond, Err(StoreError::Invalid { .. })), "{beyond:?}");
}

async fn what_is_not_there_is_not_found_and_deleting_it_is_no_error(world: World) {
    let key = world.key("capture.pcapng");
    let absent = StoreError::NotFound { key: key.clone() };
    assert_eq!(world.operator.head(&key).await, Err(absent.clone()));
    assert_eq!(
        world.operator.get(&key).await.map(|o| o.range).unwrap_err(),
        absent
    );
    world.operator.delete(&key).await.unwrap();
    world
        .runner
        .put_if_absent(&key, Bytes::from_static(b"x"))
        .await
        .unwrap();
    world.operator.delete(&key).await.unwrap();
    world.operator.delete(&key).await.unwrap();
    assert_eq!(world.operator.head(&key).await, Err(absent));
}

async fn a_listing_holds_what_lies_below_the_prefix_and_nothing_else(world: World) {
    for name in [
        "one/capture.pcapng",
        "one/manifest.json",
        "two/capture.pcapng",
        "one-more/capture.pcapng",
    ] {
        world
            .runner
            .put_if_absent(&world.key(name), Bytes::from_static(b"12345"))
            .await
            .unwrap();
    }
    let mut listed = world.operator.list(&world.key("one")).await.unwrap();
    listed.sort_by(|a, b| a.key.cmp(&b.key));
    let found: Vec<_> = listed.iter().map(|o| (o.key.clone(), o.size)).collect();
    let expected = ["one/capture.pcapng", "one/manifest.json"].map(|name| (world.key(name), 5));
    assert_eq!(found, expected);
    assert_eq!(world.operator.list(&world.key("three")).await.unwrap(), []);
}

async fn an_empty_object_can_be_stored_and_read(world: World) {
    let key = world.key("manifest.json");
    world.runner.put_if_absent(&key, Bytes::new()).await.unwrap();
    assert_eq!(content(&world.operator, &key).await, b"");
}

async fn keys_that_could_escape_or_hide_are_refused(world: World) {
    for key in [
        "", "/a", "a//b", "../a", "a/../b", "a/.b", "a b", "a\nb", "a#1", "a%2Fb", "ä",
    ] {
        let refused = world.runner.put_if_absent(key, Bytes::new()).await;
        assert!(
            matches!(refused, Err(StoreError::Invalid { .. })),
            "{key:?}: {refused:?}"
        );
    }
}

macro_rules! conformance {
    ($backend:ident: $($law:ident)*) => {
        mod $backend {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $law() {
                super::$law(super::$backend()).await;
            })*
        }
    };
    ($($law:ident)*) => {
        mod on_a_directory { conformance!(directory: $($law)*); use super::*; }
        mod on_s3 { conformance!(s3: $($law)*); use super::*; }
    };
}

conformance! {
    a_stored_file_comes_back_byte_for_byte
    only_the_announced_bytes_of_a_file_are_stored
    a_file_with_another_hash_than_announced_is_not_stored
    one_of_sixteen_concurrent_creators_wins_and_its_bytes_stay
    a_second_create_is_refused_whatever_its_size
    a_range_is_exact_and_one_beyond_the_end_is_refused
    what_is_not_there_is_not_found_and_deleting_it_is_no_error
    a_listing_holds_what_lies_below_the_prefix_and_nothing_else
    an_empty_object_can_be_stored_and_read
    keys_that_could_escape_or_hide_are_refused
}

fn web() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let ca = std::fs::read(env("S3_CA")).unwrap();
    let roots = reqwest::Certificate::from_pem_bundle(&ca).unwrap();
    reqwest::Client::builder().tls_certs_only(roots).build().unwrap()
}

#[tokio::test]
async fn a_presigned_link_reads_one_object_until_it_expires() {
    let world = s3();
    let (key, other) = (world.key("capture.pcapng"), world.key("manifest.json"));
    world
        .runner
        .put_if_absent(&key, Bytes::from_static(b"evidence"))
        .await
        .unwrap();
    world
        .runner
        .put_if_absent(&other, Bytes::from_static(b"other"))
        .await
        .unwrap();
    let link = world
        .gateway
        .presign_get(&key, Duration::from_secs(2))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(format!("{link:?}"), "PresignedUrl(..)");
    let answer = web().get(link.expose()).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.bytes().await.unwrap().as_ref()),
        (200, &b"evidence"[..])
    );
    let moved = link.expose().replace("capture.pcapng", "manifest.json");
    assert_eq!(web().get(moved).send().await.unwrap().status().as_u16(), 403);
    tokio::time::sleep(Duration::from_millis(3_200)).await;
    assert_eq!(
        web().get(link.expose()).send().await.unwrap().status().as_u16(),
        403
    );
}

#[tokio::test]
async fn a_directory_has_no_links() {
    let world = directory();
    let link = world
        .gateway
        .presign_get(&world.key("capture.pcapng"), Duration::from_secs(60))
        .await;
    assert_eq!(link, Ok(None));
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_unreachable_for_every_request() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let config = S3Config {
        endpoint: format!("https://127.0.0.1:{port}"),
        ..s3_config()
    };
    let store = s3_store(config, credentials_of("operator"));
    let key = "captures/test/uid/capture.pcapng";
    let answers = [
        store.put_if_absent(key, Bytes::from_static(b"x")).await.map(drop),
        store.head(key).await.map(drop),
        store.get(key).await.map(drop),
        store.list("captures/test/uid").await.map(drop),
        store.delete(key).await,
    ];
    for answer in answers {
        let error = answer.unwrap_err();
        assert!(
            error.is_retryable() && matches!(error, StoreError::Unreachable { .. }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_server_with_a_foreign_certificate_is_not_trusted() {
    let other = "-----BEGIN CERTIFICATE-----
MIIBfTCCASOgAwIBAgIUE7f1pS0eVnG8vT1b1d0m1d0m1d0wCgYIKoZIzj0EAwIw
-----END CERTIFICATE-----";
    let config = S3Config {
        ca_pem: Some(other.into()),
        ..s3_config()
    };
    let config = StoreConfig {
        profile: "test".into(),
        backend: StoreBackend::S3(config),
    };
    let opened = Store::open(&config, &credentials_of("operator"));
    assert!(
        matches!(opened, Err(StoreError::Invalid { .. })),
        "a damaged bundle must not open a store"
    );
    let config = S3Config {
        ca_pem: None,
        ..s3_config()
    };
    let error = s3_store(config, credentials_of("operator"))
        .head("captures/a")
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_wrong_credential_is_denied_and_never_shown() {
    let wrong = tempfile::tempdir().unwrap();
    std::fs::write(wrong.path().join("access-key-id"), "nobody").unwrap();
    std::fs::write(wrong.path().join("secret-access-key"), "hush-hush").unwrap();
    let store = s3_store(s3_config(), wrong.path().into());
    let key = "captures/test/uid/capture.pcapng";
    for answer in [
        store.put_if_absent(key, Bytes::from_static(b"x")).await.map(drop),
        store.head(key).await.map(drop),
        store.get(key).await.map(drop),
        store.delete(key).await,
    ] {
        let error = answer.unwrap_err();
        assert!(matches!(error, StoreError::Denied { .. }), "{error}");
        let shown = format!("{error} {error:?} {store:?}");
        assert!(
            !shown.contains("hush-hush") && !shown.contains("nobody"),
            "{shown}"
        );
    }
}

#[tokio::test]
async fn a_rotated_credential_takes_effect_without_a_new_client() {
    let directory = tempfile::tempdir().unwrap();
    let write = |id: &str, secret: &str| {
        std::fs::write(directory.path().join("access-key-id"), id).unwrap();
        std::fs::write(directory.path().join("secret-access-key"), secret).unwrap();
    };
    let runner = credentials_of("runner");
    let read = |name| std::fs::read_to_string(runner.join(name)).unwrap();
    write("nobody", "nothing");
    let store = s3_store(s3_config(), directory.path().into());
    let key = format!("{}/capture.pcapng", prefix());
    let before = store.put_if_absent(&key, Bytes::from_static(b"x")).await;
    assert!(matches!(before, Err(StoreError::Denied { .. })), "{before:?}");
    write(&read("access-key-id"), &read("secret-access-key"));
    store.put_if_absent(&key, Bytes::from_static(b"x")).await.unwrap();
}

#[tokio::test]
async fn the_runner_can_create_and_nothing_else() {
    let world = s3();
    let key = world.key("capture.pcapng");
    world
        .runner
        .put_if_absent(&key, Bytes::from_static(b"x"))
        .await
        .unwrap();
    for answer in [
        world.runner.get(&key).await.map(drop),
        world.runner.head(&key).await.map(drop),
        world.runner.list(&world.prefix).await.map(drop),
        world.runner.delete(&key).await,
    ] {
        assert!(matches!(answer, Err(StoreError::Denied { .. })), "{answer:?}");
    }
    assert_eq!(content(&world.operator, &key).await, b"x");
}

#[tokio::test]
async fn the_gateway_can_read_and_nothing_else() {
    let world = s3();
    let key = world.key("capture.pcapng");
    world
        .runner
        .put_if_absent(&key, Bytes::from_static(b"x"))
        .await
        .unwrap();
    assert_eq!(content(&world.gateway, &key).await, b"x");
    let new = world
        .gateway
        .put_if_absent(&world.key("manifest.json"), Bytes::from_static(b"y"))
        .await;
    assert!(matches!(new, Err(StoreError::Denied { .. })), "{new:?}");
    let deleted = world.gateway.delete(&key).await;
    assert!(matches!(deleted, Err(StoreError::Denied { .. })), "{deleted:?}");
    assert_eq!(content(&world.operator, &key).await, b"x");
}

#[tokio::test]
async fn a_bucket_that_does_not_exist_is_named_and_not_an_absent_object() {
    let config = S3Config {
        bucket: "no-such-bucket".into(),
        ..s3_config()
    };
    let store = s3_store(config, credentials_of("admin"));
    let answers = [
        store
            .put_if_absent("captures/a", Bytes::from_static(b"x"))
            .await
            .map(drop),
        store.get("captures/a").await.map(drop),
    ];
    for answer in answers {
        assert!(matches!(answer, Err(StoreError::Invalid { .. })), "{answer:?}");
    }
}

#[tokio::test]
async fn a_directory_never_shows_a_file_that_is_being_copied() {
    let world = directory();
    let root = world._directory.as_ref().unwrap().path().to_owned();
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes = pattern(64 * 1024 * 1024);
    std::fs::write(file.path(), &bytes).unwrap();
    let (key, hash) = (world.key("capture.pcapng"), sha256(&bytes));
    let put = {
        let (store, key, path) = (world.runner.clone(), key.clone(), file.path().to_owned());
        tokio::spawn(async move {
            store
                .put_file_if_absent(&key, &path, 64 * 1024 * 1024, &hash)
                .await
        })
    };
    let mut looks = 0;
    while !put.is_finished() {
        let listed = world.operator.list(&world.prefix).await.unwrap();
        assert!(
            listed.iter().all(|o| o.key == key && o.size == 64 * 1024 * 1024),
            "{listed:?}"
        );
        looks += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    put.await.unwrap().unwrap();
    assert!(looks > 3, "looked only {looks} times while the file was copied");
    let left: Vec<_> = std::fs::read_dir(root.join(&world.prefix))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, ["capture.pcapng"]);
}
