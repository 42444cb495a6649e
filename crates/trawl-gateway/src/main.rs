//! Authorised download of capture artifacts.

use std::{net::SocketAddr, path::PathBuf};

use clap::Parser;
use trawl_gateway::{logs, run, tls};

/// Hands capture artifacts to those who may have them.
#[derive(Debug, Parser)]
#[command(name = "trawl-gateway", version)]
struct Flags {
    /// The installation's configuration file
    #[arg(long, default_value = "/etc/trawl/trawl.yaml")]
    config: PathBuf,
    /// Directory with access-key-id and secret-access-key; not used by the directory store
    #[arg(long, default_value = "/credentials")]
    credentials_dir: PathBuf,
    /// PEM certificate chain to serve with; read again when it changes
    #[arg(long, default_value = "/tls/tls.crt")]
    tls_cert: PathBuf,
    /// PEM private key of the certificate
    #[arg(long, default_value = "/tls/tls.key")]
    tls_key: PathBuf,
    /// Address to serve downloads on, always with TLS
    #[arg(long, default_value = "0.0.0.0:8443")]
    listen: SocketAddr,
    /// Address to serve /healthz and /readyz on, plain HTTP
    #[arg(long)]
    health_listen: Option<SocketAddr>,
    /// Least level of this program's own log lines: error, warn, info, debug, trace
    #[arg(long, default_value_t = tracing::Level::INFO)]
    log_level: tracing::Level,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let flags = Flags::parse();
    logs::init(flags.log_level);
    run::run(run::Options {
        config: flags.config,
        credentials_dir: flags.credentials_dir,
        tls: tls::Files {
            cert: flags.tls_cert,
            key: flags.tls_key,
        },
        listen: flags.listen,
        health_listen: flags.health_listen,
    })
    .await?;
    Ok(())
}
