//! Flags, and the way from flags to the watching loop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use trawl_config::pods::SensorSpec;
use trawl_kube::health::{self, Readiness};
use trawl_kube::startup;

use crate::report::Reporter;
use crate::tally::Tally;
use crate::watch::{READY, Watch};

/// Holds one interface of this node open for a tap and reports what arrives on it.
#[derive(Debug, Parser)]
#[command(name = "trawl-sensor", version)]
pub struct Cli {
    /// Instructions of the operator, as JSON.
    #[arg(long)]
    spec: String,
    /// Socket of trawl-captured.
    #[arg(long, default_value = trawl_control::DEFAULT_SOCKET)]
    socket: PathBuf,
    /// Name of this node.
    #[arg(long, env = "NODE_NAME")]
    node_name: String,
    /// Name of this pod.
    #[arg(long, env = "POD_NAME")]
    pod_name: String,
    /// Where /healthz and /readyz are served.
    #[arg(long, default_value = "0.0.0.0:8081")]
    health_listen: SocketAddr,
}

/// Does what the flags say, until SIGTERM.
///
/// # Errors
/// What keeps the sensor from starting.
pub fn main(cli: Cli) -> anyhow::Result<()> {
    let spec: SensorSpec = serde_json::from_str(&cli.spec).context("--spec")?;
    startup::install_crypto();
    startup::init_logs();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(cli, spec))
}

async fn serve(cli: Cli, spec: SensorSpec) -> anyhow::Result<()> {
    let readiness = Readiness::waiting_for(&[READY]);
    let stop = CancellationToken::new();
    let (health_stop, work_stop, listen) = (stop.clone(), stop.clone(), cli.health_listen);
    let served = readiness.clone();
    let mut health =
        tokio::spawn(async move { health::serve(listen, served, async move { health_stop.cancelled().await }).await });

    let client = startup::client().await?;
    let captured = trawl_control::client::Client::new(&cli.socket).with_answer_timeout(Duration::from_secs(15));
    let reporter = Reporter::new(client, spec.clone(), cli.node_name, cli.pod_name, Timestamp::now());
    tracing::info!(tap = spec.tap.name, interface = spec.interface, "trawl-sensor starts");
    let work = async move {
        let tally = tokio::select! {
            tally = resume(&reporter) => tally,
            () = work_stop.cancelled() => return,
        };
        let watch = Watch::new(spec, captured, reporter, readiness, tally);
        watch.run(async move { work_stop.cancelled().await }).await;
    };
    let mut work = tokio::spawn(work);
    let ended = tokio::select! {
        signal = startup::terminated() => signal.map_err(Into::into),
        served = &mut health => Err(anyhow::anyhow!("the health endpoint at {listen} ended: {served:?}")),
        worked = &mut work => Err(anyhow::anyhow!("watching ended: {worked:?}")),
    };
    tracing::info!("trawl-sensor stops");
    stop.cancel();
    if !work.is_finished() {
        let _ = tokio::time::timeout(Duration::from_secs(8), work).await;
    }
    ended
}

/// The tally as the status shows it. Without an answer nothing may be reported, or totals would go back.
async fn resume(reporter: &Reporter) -> Tally {
    loop {
        match reporter.earlier().await {
            Ok(earlier) => return Tally::resume(earlier.as_ref()),
            Err(error) => tracing::warn!(%error, "cannot read the tap yet"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
