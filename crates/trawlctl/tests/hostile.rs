//! Gateways and stores that lie: the token stays where it belongs, and no wrong file appears. Files that were made to
//! harm: they are refused where they are read.

mod line;
mod offline;

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Response, Uri},
};
use axum_server::tls_rustls::RustlsConfig;
use futures::StreamExt;
use line::{Done, capture_file, trawlctl};
use rcgen::{CertificateParams, KeyPair};
use trawl_artifact::verify::hex;

const TOKEN: &str = "hush-hush-token";

type Asked = Arc<Mutex<Vec<(Uri, HeaderMap)>>>;

/// An https server that answers as it is told and notes what it was asked.
struct Liar {
    address: SocketAddr,
    ca: PathBuf,
    asked: Asked,
    _dir: tempfile::TempDir,
}

impl Liar {
    async fn start(answer: impl Fn(usize) -> Response<Body> + Clone + Send + Sync + 'static) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().expect("directory");
        let key = KeyPair::generate().expect("key");
        let names = vec!["127.0.0.1".to_owned()];
        let cert = CertificateParams::new(names)
            .expect("parameters")
            .self_signed(&key)
            .expect("certificate");
        let ca = dir.path().join("ca.crt");
        std::fs::write(&ca, cert.pem()).expect("ca.crt");
        let tls = RustlsConfig::from_pem(cert.pem().into(), key.serialize_pem().into())
            .await
            .expect("TLS");
        let asked = Asked::default();
        let notes = asked.clone();
        let app = Router::new().fallback(move |uri: Uri, headers: HeaderMap| {
            let mut notes = notes.lock().expect("notes");
            notes.push((uri, headers));
            let response = answer(notes.len());
            async move { response }
        });
        let handle = axum_server::Handle::new();
        let server =
            axum_server::bind_rustls(SocketAddr::from(([127, 0, 0, 1], 0)), tls).handle(handle.clone());
        tokio::spawn(server.serve(app.into_make_service()));
        let address = handle.listening().await.expect("address");
        Self {
            address,
            ca,
            asked,
            _dir: dir,
        }
    }

    fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    fn asked(&self) -> Vec<(Uri, HeaderMap)> {
        self.asked.lock().expect("notes").clone()
    }
}

fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).expect("response")
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    hex(&sha2::Sha256::digest(bytes))
}

struct Attempt {
    dir: tempfile::TempDir,
    done: Done,
}

impl Attempt {
    fn output(&self) -> PathBuf {
        self.dir.path().join("x.pcapng")
    }

    /// Refused, without a file, and without the token in what is shown.
    fn must_fail(&self, words: &str) {
        assert_ne!(self.done.code, 0, "{:?}", self.done);
        assert!(self.done.err.contains(words), "{words}: {}", self.done.err);
        assert!(!self.done.err.contains(TOKEN), "{}", self.done.err);
        assert!(!self.output().exists());
    }
}

async fn download(gateway: &str, ca: &std::path::Path) -> Attempt {
    let dir = tempfile::tempdir().expect("directory");
    let mut command = trawlctl();
    command.args([
        "-n",
        "trawl-system",
        "capture",
        "download",
        "x",
        "--token-stdin",
        "--gateway",
        gateway,
    ]);
    command
        .arg("--ca")
        .arg(ca)
        .arg("-o")
        .arg(dir.path().join("x.pcapng"));
    let done = line::run_with_input(command, TOKEN).await;
    Attempt { dir, done }
}

/// A bundle with both authorities.
fn bundle(dir: &std::path::Path, liars: &[&Liar]) -> PathBuf {
    let path = dir.join("bundle.crt");
    let pems: Vec<String> = liars
        .iter()
        .map(|liar| std::fs::read_to_string(&liar.ca).expect("ca.crt"))
        .collect();
    std::fs::write(&path, pems.concat()).expect("bundle");
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_goes_to_the_gateway_and_never_to_the_store() {
    let content = capture_file(10);
    let (body, hash) = (content.clone(), sha256(&content));
    let store = Liar::start(move |_| answer(200, &[], body.clone())).await;
    let link = format!("{}/bucket/key?X-Amz-Signature=abc", store.url());
    let gateway =
        Liar::start(move |_| answer(303, &[("location", &link), ("x-trawl-sha256", &hash)], "")).await;
    let dir = tempfile::tempdir().expect("directory");
    let attempt = download(&gateway.url(), &bundle(dir.path(), &[&gateway, &store])).await;
    assert_eq!(attempt.done.code, 0, "{:?}", attempt.done);
    assert_eq!(std::fs::read(attempt.output()).expect("file"), content);
    let (asked, given) = (gateway.asked(), store.asked());
    assert_eq!((asked.len(), given.len()), (1, 1));
    assert_eq!(asked[0].1["authorization"], format!("Bearer {TOKEN}").as_str());
    assert_eq!(
        asked[0].0.path(),
        "/api/v1/namespaces/trawl-system/capturejobs/x/download"
    );
    let (uri, headers) = &given[0];
    assert!(!uri.to_string().contains(TOKEN));
    for (name, value) in headers {
        assert!(!value.to_str().unwrap_or_default().contains(TOKEN), "{name}");
    }
    assert!(!headers.contains_key("authorization") && !headers.contains_key("referer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_followed_once_and_only_to_https() {
    let plain = std::net::TcpListener::bind("127.0.0.1:0").expect("port");
    plain.set_nonblocking(true).expect("nonblocking");
    let link = format!("http://{}/key", plain.local_addr().expect("address"));
    let hash = "0".repeat(64);
    let gateway =
        Liar::start(move |_| answer(303, &[("location", &link), ("x-trawl-sha256", &hash)], "")).await;
    download(&gateway.url(), &gateway.ca)
        .await
        .must_fail("without https");
    assert!(plain.accept().is_err(), "nobody came");

    let hash = "0".repeat(64);
    let store = Liar::start(|_| answer(302, &[("location", "https://127.0.0.1:1/")], "")).await;
    let link = store.url();
    let gateway =
        Liar::start(move |_| answer(303, &[("location", &link), ("x-trawl-sha256", &hash)], "")).await;
    let dir = tempfile::tempdir().expect("directory");
    download(&gateway.url(), &bundle(dir.path(), &[&gateway, &store]))
        .await
        .must_fail("the store answered 302");
    assert_eq!(store.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_not_trusted_is_told_nothing() {
    let gateway = Liar::start(|_| answer(200, &[], "")).await;
    let other = Liar::start(|_| answer(200, &[], "")).await;
    download(&gateway.url(), &other.ca).await.must_fail("--ca");
    download(&gateway.url().replace("https:", "http:"), &gateway.ca)
        .await
        .must_fail("must begin with https://");
    assert!(gateway.asked().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_without_their_announced_hash_are_never_a_file() {
    let hash = sha256(b"other bytes");
    let table: Vec<(Vec<(&str, &str)>, &str)> = vec![
        (vec![], "announced no hash"),
        (vec![("x-trawl-sha256", "abc")], "no SHA-256"),
        (vec![("x-trawl-sha256", &hash)], "is not the capture"),
    ];
    for (headers, words) in table {
        let headers: Vec<(String, String)> = headers
            .iter()
            .map(|(n, v)| (n.to_string(), v.to_string()))
            .collect();
        let gateway = Liar::start(move |_| {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            answer(200, &headers, "bytes")
        })
        .await;
        let attempt = download(&gateway.url(), &gateway.ca).await;
        attempt.must_fail(words);
        assert!(!attempt.dir.path().join("x.pcapng.part").exists() || words != "is not the capture");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_a_capture_can_hold_is_refused_before_the_disk_is_full() {
    let hash = "0".repeat(64);
    let gateway = Liar::start(move |_| {
        let endless = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![0_u8; 65_536]));
        let headers = [
            ("x-trawl-sha256", hash.as_str()),
            ("content-length", "9000000000"),
        ];
        answer(200, &headers, Body::from_stream(endless))
    })
    .await;
    let attempt = download(&gateway.url(), &gateway.ca).await;
    attempt.must_fail("1 GiB");
    let left = attempt
        .dir
        .path()
        .join("x.pcapng.part")
        .metadata()
        .map_or(0, |meta| meta.len());
    assert_eq!(left, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_does_not_join_on_is_refused() {
    let content = capture_file(1000);
    let (hash, whole) = (sha256(&content), content.len());
    let range = format!("bytes 7-{}/{whole}", whole - 1);
    let gateway = Liar::start(move |attempt| match attempt {
        1 => {
            // Half of what was announced, and then the line breaks.
            let half = content[..whole / 2].to_vec();
            let broken = async || {
                tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                Err(std::io::Error::other("broken"))
            };
            let broken = futures::stream::iter([Ok(half)]).chain(futures::stream::once(broken()));
            let length = whole.to_string();
            answer(
                200,
                &[("x-trawl-sha256", &hash), ("content-length", &length)],
                Body::from_stream(broken),
            )
        }
        _ => answer(
            206,
            &[("x-trawl-sha256", &hash), ("content-range", &range)],
            content[7..].to_vec(),
        ),
    })
    .await;
    download(&gateway.url(), &gateway.ca)
        .await
        .must_fail("another part");
    assert_eq!(
        gateway.asked()[1].1["range"],
        format!("bytes={}-", whole / 2).as_str()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn outages_are_waited_out_as_told_but_not_for_ever() {
    let content = capture_file(5);
    let (body, hash) = (content.clone(), sha256(&content));
    let gateway = Liar::start(move |attempt| match attempt {
        1 => answer(
            503,
            &[("retry-after", "0")],
            r#"{"code":"Unavailable","message":"m","request_id":"r"}"#,
        ),
        2 => answer(429, &[("retry-after", "1")], "{}"),
        _ => answer(200, &[("x-trawl-sha256", &hash)], body.clone()),
    })
    .await;
    let attempt = download(&gateway.url(), &gateway.ca).await;
    assert_eq!(attempt.done.code, 0, "{:?}", attempt.done);
    assert_eq!(gateway.asked().len(), 3);

    let gateway =
        Liar::start(|_| answer(503, &[("retry-after", "0")], "\u{1b}[31m<html>".repeat(100_000))).await;
    let attempt = download(&gateway.url(), &gateway.ca).await;
    attempt.must_fail("503");
    assert!(
        attempt.done.err.len() < 4096 && !attempt.done.err.contains('\u{1b}'),
        "{}",
        attempt.done.err.len()
    );
    assert_eq!(gateway.asked().len(), 5);
}
