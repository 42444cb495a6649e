//! Flags, and the way from flags to running controllers.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use trawl_config::installation::Installation;
use trawl_kube::health::{self, Readiness};
use trawl_kube::startup;
use trawl_lifecycle::limits::Limits;
use trawl_store::{Store, StoreError};

use crate::context::Context;
use crate::run::{READY_CAPTURES, READY_TAPS, run};
use crate::webhook::{self, Certificates};

const READY_STORE: &str = "artifact store";

/// Carries out NetworkTaps and CaptureJobs in one namespace.
#[derive(Debug, Parser)]
#[command(name = "trawl-operator", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Configuration file of the installation.
    #[arg(long, default_value = "/etc/trawl/trawl.yaml")]
    config: PathBuf,
    /// Directory with the files access-key-id and secret-access-key; the directory store does not use it.
    #[arg(long, default_value = "/credentials")]
    credentials_dir: PathBuf,
    /// Where /healthz and /readyz are served.
    #[arg(long, default_value = "0.0.0.0:8081")]
    health_listen: SocketAddr,
    /// Where the API server reaches the webhooks, always with TLS.
    #[arg(long, default_value = "0.0.0.0:9443")]
    webhook_listen: SocketAddr,
    /// Directory with the files tls.crt and tls.key, read again when they change. Without it the operator makes and
    /// rotates its own certificate, and puts its authority into the webhook configurations.
    #[arg(long)]
    webhook_tls_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Work with configuration files.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Work with audit ledgers.
    #[command(subcommand)]
    Audit(AuditCommand),
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Check a local ledger from its first record to its last; another process may be writing to it.
    Verify {
        /// The file.
        #[arg(default_value = "/var/lib/trawl/audit/ledger.jsonl")]
        file: PathBuf,
        /// Also print the records, one JSON document a line.
        #[arg(long)]
        print: bool,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Validate a configuration file without starting anything; lists every problem.
    Check {
        /// The file.
        file: PathBuf,
    },
}

/// Does what the flags say.
///
/// # Errors
/// What keeps the operator from starting or working.
pub fn main(cli: Cli) -> anyhow::Result<()> {
    match &cli.command {
        None => {}
        Some(Command::Config(ConfigCommand::Check { file })) => {
            Installation::load(file)?;
            println!("{}: valid", file.display());
            return Ok(());
        }
        Some(Command::Audit(AuditCommand::Verify { file, print })) => return verify(file, *print),
    }
    let config = Installation::load(&cli.config)?;
    startup::install_crypto();
    startup::init_logs();
    let store = Store::open(&config.store, &cli.credentials_dir).context("store")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let certificates = Certificates::from_flags(cli.webhook_tls_dir, &config.namespace);
    runtime.block_on(serve(
        config,
        store,
        cli.health_listen,
        cli.webhook_listen,
        certificates,
    ))
}

/// Says what a ledger holds, after its records if they are wanted.
fn verify(file: &Path, print: bool) -> anyhow::Result<()> {
    let walk = trawl_audit::verify(file).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
    if print {
        let whole = std::fs::File::open(file)?.take(walk.bytes);
        std::io::copy(&mut { whole }, &mut std::io::stdout())?;
    }
    eprintln!("{}: {} records, whole", file.display(), walk.records);
    if walk.records > 0 {
        eprintln!("SHA-256 of the last line: {}", walk.last);
    }
    if walk.unfinished > 0 {
        eprintln!("{} bytes of an unfinished record follow", walk.unfinished);
    }
    Ok(())
}

async fn serve(
    config: Installation,
    store: Store,
    listen: SocketAddr,
    webhook_listen: SocketAddr,
    certificates: Certificates,
) -> anyhow::Result<()> {
    let client = startup::client().await?;
    let parts = [READY_STORE, READY_CAPTURES, READY_TAPS];
    let readiness = Readiness::waiting_for(&[&parts[..], &webhook::READY[..]].concat());
    let stop = tokio_util::sync::CancellationToken::new();
    let (health_stop, work_stop) = (stop.clone(), stop.clone());
    let mut health = tokio::spawn(health::serve(listen, readiness.clone(), async move {
        health_stop.cancelled().await
    }));
    let probe = tokio::spawn(watch_store(
        store.clone(),
        config.namespace.clone(),
        readiness.clone(),
    ));
    tracing::info!(
        namespace = config.namespace,
        version = env!("CARGO_PKG_VERSION"),
        "trawl-operator starts"
    );

    let hooks_stop = stop.clone();
    let (hooks_client, hooks_config, hooks_ready) = (client.clone(), config.clone(), readiness.clone());
    let mut hooks = tokio::spawn(async move {
        let stopped = async move { hooks_stop.cancelled().await };
        webhook::serve(
            hooks_client,
            &hooks_config,
            certificates,
            webhook_listen,
            hooks_ready,
            drop,
            stopped,
        )
        .await
    });
    let ctx = Arc::new(Context::new(client, config, store, Limits::default()));
    let mut work = tokio::spawn(run(ctx, readiness, async move { work_stop.cancelled().await }));
    let ended = tokio::select! {
        signal = startup::terminated() => signal.map_err(Into::into),
        served = &mut health => Err(anyhow::anyhow!("the health endpoint at {listen} ended: {served:?}")),
        served = &mut hooks => Err(match served {
            Ok(Err(error)) => error.into(),
            other => anyhow::anyhow!("the webhooks ended: {other:?}"),
        }),
        worked = &mut work => Err(anyhow::anyhow!("the controllers ended: {worked:?}")),
    };
    tracing::info!("trawl-operator stops");
    stop.cancel();
    probe.abort();
    let rest = async move {
        // One that has ended already must not be asked again.
        if !hooks.is_finished() {
            let _ = hooks.await;
        }
        if !work.is_finished() {
            let _ = work.await;
        }
    };
    // What is in flight may finish; what does not is done again by the next operator.
    let _ = tokio::time::timeout(Duration::from_secs(10), rest).await;
    ended
}

/// Readiness says whether the store answers. Work goes on meanwhile: captures hold until it does.
async fn watch_store(store: Store, namespace: String, readiness: Readiness) {
    let key = trawl_artifact::keys::manifest_key(&namespace, "00000000-0000-0000-0000-000000000000");
    loop {
        let state = match store.head(&key).await {
            Ok(_) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        let pause = Duration::from_secs(if state.is_ok() { 15 } else { 3 });
        readiness.set(READY_STORE, state);
        tokio::time::sleep(pause).await;
    }
}
