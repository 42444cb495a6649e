//! Routes, and how a decision becomes a response and a line in the log.

use std::{
    ops::Range,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, State, rejection::PathRejection},
    response::{IntoResponse, Response},
    routing::get,
};
use futures::stream::BoxStream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use crate::{
    decision_log,
    limits::Limits,
    range::{Wanted, wanted},
    refusal::{Code, Refusal},
    request::{BearerToken, Part, Target},
    request_id,
    sequence::{Grant, World, decide},
};

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub const SHA256: HeaderName = HeaderName::from_static("x-trawl-sha256");

/// How granted bytes reach the caller. An `Err` is an outage in words for the log.
pub trait Delivery: World {
    /// A URL of the store that is valid for `ttl`; `None` when the store has no URLs and the gateway sends the bytes.
    fn presign(
        &self,
        key: &str,
        ttl: Duration,
    ) -> impl Future<Output = Result<Option<String>, String>> + Send;
    fn read(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> impl Future<Output = Result<BoxStream<'static, Result<Bytes, std::io::Error>>, String>> + Send;
}

/// What every request shares.
pub struct App<W> {
    world: W,
    limits: Mutex<Limits>,
    /// The one namespace that is served.
    namespace: String,
    /// Name of the store in `status.artifact.profile`.
    profile: String,
}

impl<W: Delivery> App<W> {
    pub fn new(world: W, namespace: impl Into<String>, profile: impl Into<String>) -> Self {
        let limits = Mutex::new(Limits::new(Instant::now()));
        Self {
            world,
            limits,
            namespace: namespace.into(),
            profile: profile.into(),
        }
    }

    pub fn router(self) -> Router {
        Router::new()
            .route(
                "/api/v1/namespaces/{namespace}/capturejobs/{name}/download",
                get(download::<W>),
            )
            .route(
                "/api/v1/namespaces/{namespace}/capturejobs/{name}/manifest",
                get(manifest::<W>),
            )
            .fallback(async || {
                finish(
                    &request_id::next(),
                    Err(Refusal::new(Code::NotFound, "no such path")),
                )
            })
            .method_not_allowed_fallback(method_not_allowed)
            .with_state(Arc::new(self))
    }
}

type Names = Result<Path<(String, String)>, PathRejection>;

async fn download<W: Delivery>(
    State(app): State<Arc<App<W>>>,
    names: Names,
    method: Method,
    headers: HeaderMap,
) -> Response {
    answer(&app, names, Part::Capture, &method, &headers).await
}

async fn manifest<W: Delivery>(
    State(app): State<Arc<App<W>>>,
    names: Names,
    method: Method,
    headers: HeaderMap,
) -> Response {
    answer(&app, names, Part::Manifest, &method, &headers).await
}

async fn method_not_allowed() -> Response {
    let id = request_id::next();
    let mut response = finish(
        &id,
        Err(Refusal::new(
            Code::BadRequest,
            "only GET and HEAD are answered here",
        )),
    );
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

async fn answer<W: Delivery>(
    app: &App<W>,
    names: Names,
    part: Part,
    method: &Method,
    headers: &HeaderMap,
) -> Response {
    let id = request_id::next();
    let target = match names {
        Ok(Path((namespace, name))) => Target::parse(&app.namespace, &namespace, &name, part),
        Err(_) => Err(Refusal::new(Code::BadRequest, "the path is not valid UTF-8")),
    };
    let target = match target {
        Ok(target) => target,
        Err(refusal) => {
            decision_log::refused(&id, None, None, &refusal);
            return finish(&id, Err(refusal));
        }
    };
    let decision = decide(&app.world, &app.limits, &app.profile, &target, || {
        BearerToken::from_headers(headers)
    })
    .await;
    let (who, outcome) = match decision.verdict {
        Err(refusal) => (decision.who, Err(refusal)),
        Ok(grant) => {
            let sent = hand_over(app, &id, &target, &grant, method, headers).await;
            (decision.who, sent.map(|(how, response)| (how, grant, response)))
        }
    };
    match outcome {
        Err(refusal) => {
            decision_log::refused(&id, who.as_ref(), Some(&target), &refusal);
            finish(&id, Err(refusal))
        }
        Ok((how, grant, response)) => {
            decision_log::allowed(&id, who.as_ref(), &target, &grant, how);
            finish(&id, Ok(response))
        }
    }
}

/// Either a redirect to the store or the bytes. The word returned says which, for the log.
async fn hand_over<W: Delivery>(
    app: &App<W>,
    request_id: &str,
    target: &Target,
    grant: &Grant,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(&'static str, Response), Refusal> {
    let outage = |cause: String| Refusal::unavailable("the artifact store", cause);
    if let Some(url) = app
        .world
        .presign(&grant.artifact.key, grant.ttl)
        .await
        .map_err(outage)?
    {
        let location =
            HeaderValue::from_str(&url).map_err(|_| outage("the presigned URL is no header value".into()))?;
        let response = (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response();
        return Ok(("redirect", with_hash(response, grant)?));
    }
    let etag = grant.artifact.sha256.as_ref().map(|hash| format!("\"{hash}\""));
    let (status, range) = match wanted(headers, grant.size, etag.as_deref()) {
        Wanted::Whole => (StatusCode::OK, 0..grant.size),
        Wanted::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Wanted::Unsatisfiable => return Ok(("range not satisfiable", unsatisfiable(request_id, grant.size))),
    };
    let body = if *method == Method::HEAD || range.is_empty() {
        Body::empty()
    } else {
        Body::from_stream(
            app.world
                .read(&grant.artifact.key, range.clone())
                .await
                .map_err(outage)?,
        )
    };
    let mut response = (status, body).into_response();
    let out = response.headers_mut();
    let (kind, suffix) = match target.part() {
        Part::Capture => ("application/x-pcapng", "pcapng"),
        Part::Manifest => ("application/json", "manifest.json"),
    };
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    out.insert(header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    out.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    out.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    out.insert(
        header::CONTENT_DISPOSITION,
        text(&format!("attachment; filename=\"{}.{suffix}\"", target.name()))?,
    );
    if status == StatusCode::PARTIAL_CONTENT {
        out.insert(
            header::CONTENT_RANGE,
            text(&format!("bytes {}-{}/{}", range.start, range.end - 1, grant.size))?,
        );
    }
    if let Some(etag) = etag {
        out.insert(header::ETAG, text(&etag)?);
    }
    Ok(("stream", with_hash(response, grant)?))
}

fn unsatisfiable(request_id: &str, size: u64) -> Response {
    let refusal = Refusal::new(Code::BadRequest, "range: it begins behind the end of the object");
    let mut response = refusal.response(request_id);
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    if let Ok(value) = text(&format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, value);
    }
    response
}

fn with_hash(mut response: Response, grant: &Grant) -> Result<Response, Refusal> {
    if let Some(hash) = &grant.artifact.sha256 {
        response.headers_mut().insert(SHA256, text(hash)?);
    }
    Ok(response)
}

fn text(value: &str) -> Result<HeaderValue, Refusal> {
    HeaderValue::from_str(value)
        .map_err(|_| Refusal::unavailable("the gateway", "a value is no header value"))
}

/// What every answer carries.
fn finish(request_id: &str, outcome: Result<Response, Refusal>) -> Response {
    let mut response = outcome.unwrap_or_else(|refusal| refusal.response(request_id));
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
