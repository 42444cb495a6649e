//! The per-node capture daemon, the one privileged program of Trawl. It has no API token, no bucket credential and
//! no parser for the traffic it records.
#![forbid(unsafe_code)]

mod cli;
mod open;
mod quantity;
mod record;
mod registry;
mod serve;
mod session;
mod status;

use std::process::ExitCode;

pub use cli::Cli;

/// Runs the program.
///
/// # Errors
/// Whatever stops it, in words for the terminal.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let code = runtime.block_on(async {
        match cli.command {
            cli::Command::Serve(args) => serve::run(args).await,
            cli::Command::Record(args) => record::run(args).await,
            cli::Command::Status(args) => status::run(args).await,
        }
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    code
}
