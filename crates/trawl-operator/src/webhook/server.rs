//! The HTTPS server that the API server asks.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request};
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
/// A request must have arrived by then: the API server gives up after ten seconds.
const ARRIVAL: Duration = Duration::from_secs(10);
/// What is being answered may finish when the operator stops.
const GRACE: Duration = Duration::from_secs(8);

/// Every path of the two configurations.
pub fn router(webhooks: Arc<Webhooks>) -> Router {
    let mut router = Router::new();
    for hooked in &HOOKED {
        for purpose in [Purpose::Mutate, Purpose::Validate] {
            if purpose == Purpose::Validate || hooked.mutated {
                let webhooks = webhooks.clone();
                let answer = move |request| answer(webhooks, hooked, purpose, request);
                router = router.route(&hooked.path(purpose), post(answer));
            }
        }
    }
    router.layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

async fn answer(
    webhooks: Arc<Webhooks>,
    hooked: &'static Hooked,
    purpose: Purpose,
    request: Request,
) -> Response {
    let body = match received(request, ARRIVAL).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    match webhooks.review(hooked, purpose, &body).await {
        Ok(review) => Json(review).into_response(),
        Err(malformed) => (StatusCode::BAD_REQUEST, malformed.to_string()).into_response(),
    }
}

/// The body, unless it is too long or too slow: whoever sends it byte by byte holds no memory for long.
async fn received(request: Request, patience: Duration) -> Result<Bytes, Response> {
    match tokio::time::timeout(patience, Bytes::from_request(request, &())).await {
        Ok(body) => body.map_err(IntoResponse::into_response),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time").into_response()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let never = futures::stream::pending::<Result<Bytes, std::io::Error>>();
        let request = Request::new(axum::body::Body::from_stream(never));
        let refused = received(request, Duration::from_millis(10)).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::REQUEST_TIMEOUT);
        let whole = Request::new(axum::body::Body::from("{}"));
        assert_eq!(received(whole, ARRIVAL).await.unwrap(), "{}");
    }
}
