//! Start, serve, stop.

use std::{future::Future, net::SocketAddr, path::PathBuf, time::Duration};

use axum_server::{Handle, tls_rustls::RustlsConfig};
use kube::Client;
use trawl_config::{
    installation::{ConfigError, Installation},
    store::StoreConfig,
};
use trawl_kube::{
    health::{self, Readiness},
    startup, tls,
};
use trawl_store::Store;

use crate::{
    cluster::{Cluster, patiently},
    http::App,
    world::Real,
};

/// What the command line says.
#[derive(Clone, Debug)]
pub struct Options {
    pub config: PathBuf,
    pub credentials_dir: PathBuf,
    pub tls: tls::Files,
    pub listen: SocketAddr,
    pub health_listen: Option<SocketAddr>,
}

/// Why the gateway does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("--config: {0}")]
    Config(#[from] ConfigError),
    #[error("store: {0}")]
    Store(#[from] trawl_store::StoreError),
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
    #[error(transparent)]
    Startup(#[from] startup::StartupError),
    #[error("cannot serve on {listen}: {source}")]
    Serve {
        listen: SocketAddr,
        source: std::io::Error,
    },
}

/// Connections that are still open at the end get this long: less than a pod's usual 30 s grace.
const GRACE: Duration = Duration::from_secs(25);
/// A connection on which nothing is asked for this long is closed.
const SILENCE: Duration = Duration::from_secs(30);
/// Requests at once on one HTTP/2 connection.
const MAX_STREAMS: u32 = 32;
/// How often readiness is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Runs until SIGTERM or SIGINT.
pub async fn run(options: Options) -> Result<(), RunError> {
    startup::install_crypto();
    let installation = Installation::load(&options.config)?;
    let store = Store::open(&installation.store, &options.credentials_dir)?;
    let client = startup::client().await?;
    let tls = tls::load(options.tls).await?;
    let real = Real {
        cluster: Cluster::new(client),
        store,
    };
    if let Some(listen) = options.health_listen {
        let readiness = Readiness::waiting_for(&["cluster API", "store"]);
        tokio::spawn(watch_readiness(real.clone(), readiness.clone()));
        let stop = async { startup::terminated().await.unwrap_or_default() };
        tokio::spawn(async move {
            if let Err(error) = health::serve(listen, readiness, stop).await {
                tracing::error!(%listen, %error, "health endpoints cannot be served");
            }
        });
    }
    let app = App::new(real, installation.namespace, installation.store.profile);
    let stop = async { startup::terminated().await.unwrap_or_default() };
    serve(
        app,
        tls,
        options.listen,
        |address| tracing::info!(%address, "listening"),
        stop,
    )
    .await
}

/// A gateway inside another program: the same one, with what the caller has already built.
pub fn app(client: Client, store: Store, namespace: &str, config: &StoreConfig) -> App<Real> {
    App::new(
        Real {
            cluster: Cluster::new(client),
            store,
        },
        namespace,
        &config.profile,
    )
}

/// Serves `app` until `stop` resolves; open downloads may finish within the grace time. `listening` is told the
/// address once connections are accepted.
pub async fn serve(
    app: App<Real>,
    tls: RustlsConfig,
    listen: SocketAddr,
    listening: impl FnOnce(SocketAddr) + Send + 'static,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), RunError> {
    let handle = Handle::new();
    let control = handle.clone();
    tokio::spawn(async move {
        stop.await;
        tracing::info!("stopping");
        control.graceful_shutdown(Some(GRACE));
    });
    let bound = handle.clone();
    tokio::spawn(async move {
        if let Some(address) = bound.listening().await {
            listening(address);
        }
    });
    let mut server = axum_server::bind_rustls(listen, tls)
        .handle(handle)
        .first_request_timeout(SILENCE);
    server.http_builder().http2().max_concurrent_streams(MAX_STREAMS);
    server
        .serve(app.router().into_make_service())
        .await
        .map_err(|source| RunError::Serve { listen, source })
}

/// Readiness is whether both dependencies answer; a request that meets an outage is still answered with 503.
async fn watch_readiness(real: Real, readiness: Readiness) {
    loop {
        readiness.set("cluster API", real.cluster.ready().await);
        let probe = async {
            match real.store.head("captures/readiness-probe").await {
                Ok(_) | Err(trawl_store::StoreError::NotFound { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        };
        readiness.set("store", patiently("store", probe).await);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
