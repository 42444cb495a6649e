//! `/healthz` (the process answers) and `/readyz` (it can do its work), over plain HTTP for the kubelet.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, RwLock};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

/// What readiness waits for: every named part must be ready. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    parts: Arc<RwLock<BTreeMap<&'static str, Result<(), String>>>>,
}

impl Readiness {
    /// Names the parts; none is ready yet.
    pub fn waiting_for(parts: &[&'static str]) -> Self {
        let waiting = parts.iter().map(|p| (*p, Err("not ready yet".to_owned()))).collect();
        Self { parts: Arc::new(RwLock::new(waiting)) }
    }

    /// Says how a part is now.
    pub fn set(&self, part: &'static str, state: Result<(), String>) {
        self.parts.write().unwrap_or_else(|e| e.into_inner()).insert(part, state);
    }

    /// Everything that is not ready, or nothing.
    pub fn problems(&self) -> Vec<String> {
        let parts = self.parts.read().unwrap_or_else(|e| e.into_inner());
        parts.iter().filter_map(|(part, state)| Some(format!("{part}: {}", state.as_ref().err()?))).collect()
    }
}

/// Serves both endpoints until `stop` resolves.
///
/// # Errors
/// When the address cannot be bound.
pub async fn serve(
    listen: SocketAddr,
    readiness: Readiness,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(listen).await?;
    axum::serve(listener, router(readiness)).with_graceful_shutdown(stop).await
}

fn router(readiness: Readiness) -> Router {
    Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(ready)).with_state(readiness)
}

async fn ready(State(readiness): State<Readiness>) -> (StatusCode, String) {
    let problems = readiness.problems();
    if problems.is_empty() {
        (StatusCode::OK, "ok".into())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, problems.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn readyz_names_the_part_that_is_missing_until_all_are_there() {
        let readiness = Readiness::waiting_for(&["store", "watch"]);
        readiness.set("watch", Ok(()));
        let (code, body) = ready(State(readiness.clone())).await;
        assert_eq!((code, body.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "store: not ready yet"));
        readiness.set("store", Ok(()));
        assert_eq!(ready(State(readiness)).await.0, StatusCode::OK);
    }
}
