//! The per-node capture daemon, the one privileged program of Trawl. It has no API token, no bucket credential and
//! no parser for the traffic it records.
#![forbid(unsafe_code)]

mod attachment;
mod capture;
mod check;
mod cli;
mod daemon;
mod feed;
mod generate;
mod open;
mod places;
mod privileges;
mod quantity;
mod record;
mod registry;
mod serve;
mod session;
mod stall;
mod status;
mod tell;
mod view;
mod watch;

use std::process::ExitCode;

pub use cli::Cli;
use cli::Command;

/// A mistake on the command line that is only found beyond its grammar: the exit code is 2, as for the others.
#[derive(Debug)]
pub struct WrongUsage(&'static str);

impl std::fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for WrongUsage {}

/// Runs the program.
///
/// # Errors
/// Whatever stops it, in words for the terminal.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    // Threads inherit capabilities, so what each command does not need goes before the runtime starts some.
    match cli.command {
        Command::Serve(args) => {
            let bound = serve::prepare(&args)?;
            on_runtime(serve::run(args, bound))
        }
        Command::Record(args) => {
            let prepared = record::prepare(args)?;
            on_runtime(record::run(prepared))
        }
        Command::Watch(args) => {
            privileges::keep_needed()?;
            on_runtime(watch::run(args))
        }
        Command::Status(args) => on_runtime(status::run(args)),
        Command::Check(args) => check::run(&args),
        Command::Completion { shell } => generate::completion(shell),
        Command::Man { directory } => generate::man(directory.as_deref()),
    }
}

fn on_runtime(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let code = runtime.block_on(command);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    code
}
