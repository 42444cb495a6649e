//! The HTTPS server that the API server asks.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use trawl_api::webhooks::{HOOKED, Hooked, Purpose};

use super::decide::Webhooks;

/// An update carries an object of up to 3 MiB and the stored one of up to 1.5 MiB.
const MAX_BODY_BYTES: usize = 6 << 20;
/// What the bodies under way may hold together; as JSON in memory they are up to sixteen times as large.
const BODIES_BYTES: usize = 2 * MAX_BODY_BYTES;
/// Bodies are counted in units of this, an ordinary one as one.
const UNIT: usize = 64 << 10;
/// The API server sends a body at once. Who does not, must not keep others waiting.
const READING: Duration = Duration::from_secs(3);
/// How long a body waits for room.
const WAITING: Duration = Duration::from_secs(5);
/// A connection on which nothing is asked for this long is closed.
const SILENCE: Duration = Duration::from_secs(30);
/// Requests at once on one HTTP/2 connection; the API server queues the rest.
const MAX_STREAMS: u32 = 256;
/// What is being answered may finish when the operator stops.
const GRACE: Duration = Duration::from_secs(8);

/// Every path of the two configurations.
pub fn router(webhooks: Arc<Webhooks>) -> Router {
    let room = Arc::new(Semaphore::new(BODIES_BYTES / UNIT));
    let mut router = Router::new();
    for hooked in &HOOKED {
        for purpose in [Purpose::Mutate, Purpose::Validate] {
            if purpose == Purpose::Validate || hooked.mutated {
                let (webhooks, room) = (webhooks.clone(), room.clone());
                let answer = move |request| answer(webhooks, room, hooked, purpose, request);
                router = router.route(&hooked.path(purpose), post(answer));
            }
        }
    }
    router
}

async fn answer(
    webhooks: Arc<Webhooks>,
    room: Arc<Semaphore>,
    hooked: &'static Hooked,
    purpose: Purpose,
    request: Request,
) -> Response {
    let Some(units) = units(request.headers()) else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 6 MiB").into_response();
    };
    let Ok(Ok(_held)) = timeout(WAITING, room.acquire_many_owned(units)).await else {
        let why = "too many requests are under way; try again";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    // The body may be shorter than it was said to be, never longer.
    let most = (units as usize * UNIT).min(MAX_BODY_BYTES);
    let body = match timeout(READING, axum::body::to_bytes(request.into_body(), most)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return (StatusCode::BAD_REQUEST, "the body cannot be read").into_response(),
        Err(_) => return (StatusCode::REQUEST_TIMEOUT, "the body came too slowly").into_response(),
    };
    match webhooks.review(hooked, purpose, &body).await {
        Ok(review) => Json(review).into_response(),
        Err(malformed) => (StatusCode::BAD_REQUEST, malformed.to_string()).into_response(),
    }
}

/// What a body counts as; the most when its length is not said, `None` when it is too long.
fn units(headers: &HeaderMap) -> Option<u32> {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.map_or(Some(MAX_BODY_BYTES), |value| value.to_str().ok()?.parse().ok())?;
    (length <= MAX_BODY_BYTES)
        .then(|| length.div_ceil(UNIT).max(1))?
        .try_into()
        .ok()
}

/// Serves until `stop` resolves. `listening` is told the address once connections are accepted.
///
/// # Errors
/// The address cannot be bound.
pub async fn serve(
    webhooks: Arc<Webhooks>,
    tls: RustlsConfig,
    listen: SocketAddr,
    listening: impl FnOnce(SocketAddr) + Send + 'static,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let handle = Handle::new();
    let (control, bound) = (handle.clone(), handle.clone());
    tokio::spawn(async move {
        stop.await;
        control.graceful_shutdown(Some(GRACE));
    });
    tokio::spawn(async move {
        if let Some(address) = bound.listening().await {
            listening(address);
        }
    });
    let mut server = axum_server::bind_rustls(listen, tls)
        .handle(handle)
        .first_request_timeout(SILENCE);
    server.http_builder().http2().max_concurrent_streams(MAX_STREAMS);
    server.serve(router(webhooks).into_make_service()).await
}
