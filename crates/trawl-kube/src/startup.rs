//! What every program does first: one crypto provider, JSON logs, a client, and ears for SIGTERM.

use kube::{Client, Config};
use tracing_subscriber::EnvFilter;

/// Why a program could not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    #[error("no Kubernetes configuration: mount a service account token, or set KUBECONFIG: {0}")]
    Infer(#[from] kube::config::InferConfigError),
    #[error("cannot build a Kubernetes client: {0}")]
    Client(#[from] Box<kube::Error>),
    #[error("cannot listen for signals: {0}")]
    Signals(#[from] std::io::Error),
}

/// Makes ring the process's TLS provider. Calling it twice is fine.
pub fn install_crypto() {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// JSON lines on stderr; the level comes from `RUST_LOG` and is `info` without it.
pub fn init_logs() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // An error means that the embedding program (a test) has its own subscriber.
    let _ = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .try_init();
}

/// A client from the pod's service account or the kubeconfig.
pub async fn client() -> Result<Client, StartupError> {
    let config = Config::infer().await?;
    Ok(Client::try_from(config).map_err(Box::new)?)
}

/// Resolves at the first SIGTERM or SIGINT.
pub async fn terminated() -> Result<(), StartupError> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    Ok(())
}
