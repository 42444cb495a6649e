//! Servers that lack versions, or lie about them, spoken to over real connections.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use trawl_config::store::{S3Config, StoreBackend, StoreConfig};

use super::*;
use crate::Store;

const KEY: &str = "captures/ns/uid/capture.pcapng";

/// A server that answers by `script` from the request line, and what it was asked.
struct Server {
    store: Store,
    asked: Arc<Mutex<Vec<String>>>,
    _credentials: tempfile::TempDir,
}

impl Server {
    async fn start(script: impl Fn(&str, usize) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(vec![]));
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that leaves in the middle of an answer is part of the tests.
                let _ = answer(stream, &script, &log).await;
            }
        });
        let credentials = tempfile::tempdir().unwrap();
        for file in ["access-key-id", "secret-access-key"] {
            std::fs::write(credentials.path().join(file), "test").unwrap();
        }
        let config = StoreConfig {
            profile: "test".into(),
            backend: StoreBackend::S3(S3Config {
                endpoint,
                bucket: "bucket".into(),
                region: "us-east-1".into(),
                path_style: true,
                allow_http: true,
                ca_pem: None,
            }),
        };
        Self {
            store: Store::open(&config, credentials.path()).unwrap(),
            asked,
            _credentials: credentials,
        }
    }

    fn asked(&self, method: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|r| r.starts_with(method)).cloned().collect()
    }
}

async fn answer(
    mut stream: TcpStream,
    script: &impl Fn(&str, usize) -> (u16, String),
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    let line = head
        .lines()
        .next()
        .unwrap_or_default()
        .trim_end_matches(" HTTP/1.1")
        .to_owned();
    let before = {
        let mut log = log.lock().unwrap();
        log.push(line.clone());
        log.len() - 1
    };
    let (status, body) = script(&line, before);
    let head = format!(
        "HTTP/1.1 {status} x\r\nContent-Length: {}\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    if !line.starts_with("HEAD") {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}

fn list(inner: &str) -> (u16, String) {
    (200, format!("<ListVersionsResult>{inner}</ListVersionsResult>"))
}

fn entry(name: &str, id: &str) -> String {
    format!("<{name}><Key>{KEY}</Key><VersionId>{id}</VersionId></{name}>")
}

fn plain() -> Vec<String> {
    vec![format!("DELETE /bucket/{KEY}")]
}

fn by_id(ids: &[&str]) -> Vec<String> {
    ids.iter()
        .map(|id| format!("DELETE /bucket/{KEY}?versionId={id}"))
        .collect()
}

#[tokio::test]
async fn a_server_that_does_not_list_versions_gets_a_plain_delete() {
    let error = |code| format!("<Error><Code>{code}</Code></Error>");
    let objects = "<ListBucketResult></ListBucketResult>".to_owned();
    for (status, body) in [
        (501, error("NotImplemented")),
        (400, error("NotImplemented")),
        (200, objects),
    ] {
        let server = Server::start(move |line, _| match line.starts_with("GET") {
            true => (status, body.clone()),
            false => (204, String::new()),
        })
        .await;
        server.store.delete(KEY).await.unwrap();
        assert_eq!(server.asked("DELETE"), plain());
    }
}

#[tokio::test]
async fn a_server_that_lists_none_of_what_it_holds_gets_a_plain_delete() {
    let held = Arc::new(Mutex::new(true));
    let server = Server::start(move |line, _| {
        let mut held = held.lock().unwrap();
        match line.split(' ').next() {
            Some("GET") => list(""),
            Some("HEAD") => (if *held { 200 } else { 404 }, String::new()),
            _ => {
                *held = false;
                (204, String::new())
            }
        }
    })
    .await;
    server.store.delete(KEY).await.unwrap();
    assert_eq!(server.asked("DELETE"), plain());
}

#[tokio::test]
async fn every_page_is_read_and_the_oldest_version_goes_first_and_the_marker_last() {
    let server = Server::start(|line, _| {
        let next = |id: &str| {
            format!(
                "<IsTruncated>true</IsTruncated><NextKeyMarker>{KEY}</NextKeyMarker>\
                 <NextVersionIdMarker>{id}</NextVersionIdMarker>"
            )
        };
        match line.split(' ').next() {
            Some("GET") if line.contains("&version-id-marker=v%2B2") => {
                list(&[entry("Version", "v+2"), entry("Version", "v1")].concat())
            }
            Some("GET") if line.contains("marker") => (400, String::new()),
            Some("GET") => list(&(entry("DeleteMarker", "m") + &entry("Version", "v+2") + &next("v+2"))),
            Some("HEAD") => (404, String::new()),
            _ => (404, String::new()),
        }
    })
    .await;
    // The list never becomes empty, so the deletion is not believed.
    let error = server.store.delete(KEY).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert_eq!(server.asked("DELETE")[..3], by_id(&["v1", "v%2B2", "m"]));
    let pages = server.asked("GET");
    assert_eq!(
        pages[1],
        "GET /bucket?versions=&prefix=captures%2Fns%2Fuid%2Fcapture.pcapng\
         &key-marker=captures%2Fns%2Fuid%2Fcapture.pcapng&version-id-marker=v%2B2"
    );
}

#[tokio::test]
async fn a_list_without_end_is_refused() {
    let same = format!("<IsTruncated>true</IsTruncated><NextKeyMarker>{KEY}</NextKeyMarker>");
    let other = |n: usize| same.clone() + &format!("<NextVersionIdMarker>{n}</NextVersionIdMarker>");
    let pages: Vec<_> = (0..200).map(other).collect();
    let servers = [
        Server::start(move |_, _| list(&same)).await,
        Server::start(move |_, n| list(&pages[n])).await,
    ];
    for server in servers {
        let error = server.store.delete(KEY).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
        assert_eq!(server.asked("DELETE"), [""; 0]);
    }
}

#[tokio::test]
async fn what_the_server_keeps_is_named_and_its_delete_marker_stays() {
    let server = Server::start(|line, _| match line.split(' ').next() {
        Some("GET") => list(
            &[
                entry("DeleteMarker", "m"),
                entry("Version", "v2"),
                entry("Version", "v1"),
            ]
            .concat(),
        ),
        _ if line.ends_with("=v1") => (403, "<Error><Code>AccessDenied</Code></Error>".into()),
        _ => (204, String::new()),
    })
    .await;
    match server.store.delete(KEY).await {
        Err(StoreError::Remains { key, versions, .. }) => {
            assert_eq!((key.as_str(), versions), (KEY, vec!["v1".to_owned(), "m".into()]));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(server.asked("DELETE"), by_id(&["v1", "v2"]));
}

#[tokio::test]
async fn an_answer_without_measure_is_not_read_to_its_end() {
    let server = Server::start(|_, _| list(&" ".repeat(MAX_ANSWER))).await;
    let error = server.store.delete(KEY).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
}

#[tokio::test]
async fn a_busy_server_is_asked_again_later() {
    for status in [429, 500, 503] {
        let server = Server::start(move |line, _| match line.starts_with("GET") {
            true => list(&entry("Version", "v1")),
            false => (status, String::new()),
        })
        .await;
        let error = server.store.delete(KEY).await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
    }
}
