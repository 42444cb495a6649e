//! S3 and its likenesses.
//!
//! Everything goes by object_store but the upload and the deletion of versions: object_store holds the body of a
//! conditional PUT in memory, so the request is signed with its authorizer and the file streamed into it. Payload hash
//! and checksum are signed and checked by the server; `If-None-Match: *` makes the create atomic.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use object_store::aws::{AmazonS3, AmazonS3Builder, AwsAuthorizer};
use object_store::client::HttpRequestBody;
use object_store::signer::Signer;
use object_store::{BackoffConfig, Certificate, ClientOptions, ObjectStore, RetryConfig};
use trawl_config::store::S3Config;

use crate::credentials::CredentialsDirectory;
use crate::upload::Source;
use crate::{Key, ObjectInfo, StoreError, error};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest silence of the server while a body or answer is under way.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a server that broke an upload off may take to say why, before the rest of the body follows.
const BODY_DELAY: Duration = Duration::from_secs(2);
/// How often a create that met another one under way (409) is repeated.
const CONFLICT_ATTEMPTS: u32 = 6;

pub(crate) struct S3 {
    objects: AmazonS3,
    web: reqwest::Client,
    credentials: Arc<CredentialsDirectory>,
    region: String,
    /// `scheme://host[/bucket]`, without trailing slash.
    base: String,
}

impl std::fmt::Debug for S3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

impl S3 {
    pub(crate) fn open(config: &S3Config, credentials: &Path) -> Result<Self, StoreError> {
        // Another part of the program may have installed it before: that is the same provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let credentials = Arc::new(CredentialsDirectory::new(credentials));
        let base = base_url(config)?;
        let mut builder = AmazonS3Builder::new()
            .with_endpoint(if config.path_style {
                config.endpoint.trim_end_matches('/')
            } else {
                &base
            })
            .with_bucket_name(&config.bucket)
            .with_region(&config.region)
            .with_virtual_hosted_style_request(!config.path_style)
            .with_allow_http(config.allow_http)
            .with_disable_bulk_delete(true)
            .with_credentials(Arc::clone(&credentials) as _)
            .with_retry(RetryConfig {
                backoff: BackoffConfig::default(),
                max_retries: 2,
                retry_timeout: Duration::from_secs(15),
            });
        builder = builder.with_client_options(client_options(config)?);
        let invalid = |what: &str| StoreError::Invalid {
            what: what.into(),
            problem: "cannot build a client".into(),
        };
        Ok(Self {
            objects: builder.build().map_err(|_| invalid("store.backend.s3"))?,
            web: web_client(config).map_err(|_| invalid("store.backend.s3.caPem"))?,
            credentials,
            region: config.region.clone(),
            base,
        })
    }

    pub(crate) fn objects(&self) -> &dyn ObjectStore {
        &self.objects
    }

    pub(crate) fn web(&self) -> &reqwest::Client {
        &self.web
    }

    pub(crate) fn url(&self, key: Option<&Key>, query: &[(&str, &str)]) -> Result<reqwest::Url, StoreError> {
        let url = match key {
            Some(key) => format!("{}/{}", self.base, key.as_str()),
            None => self.base.clone(),
        };
        reqwest::Url::parse_with_params(&url, query).map_err(|_| unsigned())
    }

    pub(crate) async fn presign_get(&self, key: &Key, ttl: Duration) -> Result<String, StoreError> {
        let ttl = ttl.clamp(Duration::from_secs(1), Duration::from_secs(7 * 86_400));
        let url = self.objects.signed_url(Method::GET, &key.path(), ttl).await;
        url.map(String::from).map_err(|e| error::from(key, &e))
    }

    pub(crate) async fn create(&self, key: &Key, source: &Source) -> Result<ObjectInfo, StoreError> {
        let mut wait = Duration::from_millis(50);
        for _ in 1..CONFLICT_ATTEMPTS {
            match self.create_once(key, source).await? {
                Some(info) => return Ok(info),
                None => tokio::time::sleep(wait).await,
            }
            wait *= 2;
        }
        let problem = "other uploads of the same object are under way".into();
        self.create_once(key, source)
            .await?
            .ok_or(StoreError::Unreachable { problem })
    }

    /// `None` when another create of the same key was under way, which may yet fail.
    async fn create_once(&self, key: &Key, source: &Source) -> Result<Option<ObjectInfo>, StoreError> {
        let mut answer = self.send(key, source, Duration::ZERO).await?;
        if answer.as_ref().is_err_and(|e| !e.is_connect() && !e.is_timeout()) {
            // A server that refuses without reading the body closes while it is still being sent, and its answer
            // is lost with the connection. The second time it gets the chance to be heard.
            answer = self.send(key, source, BODY_DELAY).await?;
        }
        let answer = answer.map_err(|e| StoreError::Unreachable {
            problem: broken(&e).into(),
        })?;
        let status = answer.status();
        let header = |name: &str| Some(answer.headers().get(name)?.to_str().ok()?.to_owned());
        if status.is_success() {
            return Ok(Some(ObjectInfo {
                key: key.as_str().into(),
                size: source.size,
                etag: header("etag"),
                version_id: header("x-amz-version-id"),
            }));
        }
        match status {
            StatusCode::CONFLICT => Ok(None),
            _ => Err(refusal(key, status, &answer.text().await.unwrap_or_default())),
        }
    }

    /// One signed PUT that pauses for `delay` after the first piece of the body.
    async fn send(
        &self,
        key: &Key,
        source: &Source,
        delay: Duration,
    ) -> Result<reqwest::Result<reqwest::Response>, StoreError> {
        let url = format!("{}/{}", self.base, key.as_str());
        let stream = source.stream().await?;
        let paced = stream.enumerate().then(move |(index, chunk)| async move {
            if index == 1 {
                tokio::time::sleep(delay).await;
            }
            chunk
        });
        let body = reqwest::Body::wrap_stream(paced);
        let headers = self.signed_headers(&url, source)?;
        Ok(self.web.put(&url).headers(headers).body(body).send().await)
    }

    fn signed_headers(&self, url: &str, source: &Source) -> Result<HeaderMap, StoreError> {
        let request = http::Request::builder()
            .method(Method::PUT)
            .uri(url)
            .header("content-length", source.size)
            .header("if-none-match", HeaderValue::from_static("*"))
            .header("x-amz-checksum-sha256", STANDARD.encode(source.sha256))
            .header("x-amz-sdk-checksum-algorithm", HeaderValue::from_static("SHA256"));
        self.sign(request, Some(&source.sha256))
    }

    /// The headers of `request` with those that sign it. Without `sha256` it has no body.
    pub(crate) fn sign(
        &self,
        request: http::request::Builder,
        sha256: Option<&[u8]>,
    ) -> Result<HeaderMap, StoreError> {
        let mut request = request.body(HttpRequestBody::empty()).map_err(|_| unsigned())?;
        let credential = self.credentials.read()?;
        AwsAuthorizer::new(&credential, "s3", &self.region)
            .try_authorize(&mut request, sha256)
            .map_err(|_| unsigned())?;
        Ok(std::mem::take(request.headers_mut()))
    }
}

fn unsigned() -> StoreError {
    StoreError::Invalid {
        what: "request".into(),
        problem: "cannot be signed".into(),
    }
}

fn base_url(config: &S3Config) -> Result<String, StoreError> {
    let endpoint = config.endpoint.trim_end_matches('/');
    if config.path_style {
        return Ok(format!("{endpoint}/{}", config.bucket));
    }
    let (scheme, host) = endpoint.split_once("://").ok_or_else(|| StoreError::Invalid {
        what: "store.backend.s3.endpoint".into(),
        problem: "must be https://host[:port]".into(),
    })?;
    Ok(format!("{scheme}://{}.{host}", config.bucket))
}

fn client_options(config: &S3Config) -> Result<ClientOptions, StoreError> {
    let mut options = ClientOptions::new()
        .with_allow_http(config.allow_http)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_timeout_disabled()
        .with_read_timeout(READ_TIMEOUT);
    if let Some(pem) = &config.ca_pem {
        let roots = Certificate::from_pem_bundle(pem.as_bytes()).map_err(|_| StoreError::Invalid {
            what: "store.backend.s3.caPem".into(),
            problem: "is not a PEM bundle of certificates".into(),
        })?;
        options = options.with_no_system_certificates(true);
        for root in roots {
            options = options.with_root_certificate(root);
        }
    }
    Ok(options)
}

fn web_client(config: &S3Config) -> reqwest::Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .http1_only()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .https_only(!config.allow_http);
    if let Some(pem) = &config.ca_pem {
        builder = builder.tls_certs_only(reqwest::Certificate::from_pem_bundle(pem.as_bytes())?);
    }
    builder.build()
}

/// What a refused upload means. Only the error code is read from the server's text, never shown.
fn refusal(key: &Key, status: StatusCode, body: &str) -> StoreError {
    let what = key.as_str().to_owned();
    match status {
        StatusCode::PRECONDITION_FAILED => StoreError::AlreadyExists { key: what },
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => StoreError::Denied { what },
        StatusCode::NOT_FOUND => error::no_such_bucket(),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => busy(status),
        // A body damaged on its way is worth another attempt.
        StatusCode::BAD_REQUEST
            if ["BadDigest", "SHA256Mismatch", "IncompleteBody"]
                .iter()
                .any(|c| body.contains(c)) =>
        {
            StoreError::Unreachable {
                problem: "the upload arrived damaged".into(),
            }
        }
        _ if status.is_server_error() => busy(status),
        _ => StoreError::Invalid {
            what,
            problem: format!("the store refuses the upload (HTTP {})", status.as_u16()),
        },
    }
}

pub(crate) fn busy(status: StatusCode) -> StoreError {
    StoreError::Unreachable {
        problem: format!("it answered with HTTP {}", status.as_u16()),
    }
}

pub(crate) fn broken(error: &reqwest::Error) -> &'static str {
    if error.is_connect() {
        "no connection (network, TLS trust or endpoint)"
    } else if error.is_timeout() {
        "no answer in time"
    } else {
        "the connection broke"
    }
}
