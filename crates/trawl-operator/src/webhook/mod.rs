//! The webhooks: what the API server asks before one of the four kinds is made, changed or deleted.
//!
//! [`trawl_admission`] decides. Here a request is decoded, decided away from the async workers, recorded in the audit
//! ledger, and only then answered.

pub mod certificates;
mod decide;
mod entry;
mod ledger;
mod refusal;
mod review;
mod server;
mod taps;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kube::{Api, Client};
use trawl_admission::Rules;
use trawl_api::MirrorProvider;
use trawl_api::webhooks::{CONFIGURATION, SERVICE};
use trawl_config::installation::Installation;
use trawl_kube::health::Readiness;
use trawl_kube::tls;

use certificates::managed::{Managed, Settings};
use certificates::{READY_CERTIFICATE, SECRET};
use decide::Webhooks;
use ledger::Reopening;
use taps::Taps;

/// Readiness parts besides [`READY_CERTIFICATE`].
pub const READY_LISTENER: &str = "webhook listener";
pub const READY_LEDGER: &str = "audit ledger";
/// All of them.
pub const READY: [&str; 3] = [READY_CERTIFICATE, READY_LISTENER, READY_LEDGER];

/// How often the certificate is looked after when nothing is to be done; a bundle that was lost is back by then.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Where the certificate comes from.
pub enum Certificates {
    /// The operator makes it.
    Managed(Settings),
    /// `tls.crt` and `tls.key` of this directory.
    Files(PathBuf),
}

impl Certificates {
    /// As the flags say: files, or else the operator's own for the Service of this namespace.
    pub fn from_flags(directory: Option<PathBuf>, namespace: &str) -> Self {
        match directory {
            Some(directory) => Self::Files(directory),
            None => Self::Managed(Settings {
                namespace: namespace.into(),
                secret: SECRET.into(),
                configuration: CONFIGURATION.into(),
                names: vec![format!("{SERVICE}.{namespace}.svc")],
                limits: Default::default(),
                look_every: LOOK_EVERY,
                now: jiff::Timestamp::now,
            }),
        }
    }
}

/// What an installation allows.
pub fn rules(config: &Installation) -> Rules {
    Rules {
        namespace: config.namespace.clone(),
        worker: config.worker_username(),
        retention_administrators: config.retention.administrators.clone(),
        retention_ceiling: config.retention.ceiling(),
        providers: MirrorProvider::ALL.into(),
        filter: trawl_filter::Options {
            tunnels: config.capture.filter_tunnels,
            ..trawl_filter::Options::default()
        },
    }
}

/// Why the webhooks cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error("--webhook-tls-dir: {0}")]
    Files(#[from] tls::TlsError),
    #[error("--webhook-listen: cannot serve the webhooks on {listen}: {source}")]
    Serve {
        listen: SocketAddr,
        source: std::io::Error,
    },
}

/// Serves the webhooks until `stop` resolves. `listening` is told the address.
///
/// # Errors
/// The certificate files cannot be used, or the address cannot be bound.
pub async fn serve(
    client: Client,
    config: &Installation,
    certificates: Certificates,
    listen: SocketAddr,
    readiness: Readiness,
    listening: impl FnOnce(SocketAddr) + Send + 'static,
    stop: impl Future<Output = ()> + Send + Sync + 'static,
) -> Result<(), WebhookError> {
    let ledger = Arc::new(Reopening::new(PathBuf::from(&config.audit.directory)));
    let taps = Taps::new(Api::namespaced(client.clone(), &config.namespace));
    let webhooks = Webhooks::new(rules(config), ledger.clone(), taps, jiff::Timestamp::now);
    let stop = stop.shared();
    let (serving, keeping) = match certificates {
        Certificates::Files(directory) => {
            let files = tls::Files {
                cert: directory.join("tls.crt"),
                key: directory.join("tls.key"),
            };
            let serving = tls::load(files).await?;
            readiness.set(READY_CERTIFICATE, Ok(()));
            (serving, None)
        }
        Certificates::Managed(settings) => {
            let mut managed = Managed::new(&client, settings, readiness.clone());
            tokio::select! {
                serving = managed.first() => (serving, Some(managed)),
                () = stop.clone() => return Ok(()),
            }
        }
    };
    let rotating = serving.clone();
    let keep = async move {
        match keeping {
            Some(managed) => managed.keep(rotating).await,
            None => std::future::pending().await,
        }
    };
    let watching = watch_ledger(ledger, readiness.clone());
    let up = move |address| {
        tracing::info!(%address, "the webhooks are served");
        readiness.set(READY_LISTENER, Ok(()));
        listening(address);
    };
    tokio::select! {
        served = server::serve(Arc::new(webhooks), serving, listen, up, stop) => {
            served.map_err(|source| WebhookError::Serve { listen, source })
        }
        () = keep => Ok(()),
        () = watching => Ok(()),
    }
}

/// Readiness says whether records are kept.
async fn watch_ledger(ledger: Arc<Reopening>, readiness: Readiness) {
    loop {
        let state = ledger.state().await.map_err(|e| e.to_string());
        readiness.set(READY_LEDGER, state);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
