//! The HTTPS server that the API server asks.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use trawl_api::webhooks::{HOOKED, Hooked, Purpose};

use super::decide::Webhooks;

/// An update carries the object twice, and the API server takes objects of up to 3 MiB.
const MAX_BODY_BYTES: usize = 8 << 20;
/// A connection on which nothing is asked for this long is closed.
const SILENCE: Duration = Duration::from_secs(30);
/// Requests at once on one HTTP/2 connection; the API server queues the rest.
const MAX_STREAMS: u32 = 256;
/// What is being answered may finish when the operator stops.
const GRACE: Duration = Duration::from_secs(8);

/// Every path of the two configurations.
pub fn router(webhooks: Arc<Webhooks>) -> Router {
    let mut router = Router::new();
    for hooked in &HOOKED {
        for purpose in [Purpose::Mutate, Purpose::Validate] {
            if purpose == Purpose::Validate || hooked.mutated {
                let webhooks = webhooks.clone();
                let answer = move |body| answer(webhooks, hooked, purpose, body);
                router = router.route(&hooked.path(purpose), post(answer));
            }
        }
    }
    router.layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

async fn answer(webhooks: Arc<Webhooks>, hooked: &'static Hooked, purpose: Purpose, body: Bytes) -> Response {
    match webhooks.review(hooked, purpose, &body).await {
        Ok(review) => Json(review).into_response(),
        Err(malformed) => (StatusCode::BAD_REQUEST, malformed.to_string()).into_response(),
    }
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
