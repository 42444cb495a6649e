//! The Trawl command line: ask for captures, watch them, fetch them and prove what they hold; check manifests and
//! filters without a cluster.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

mod capture;
pub mod cli;
mod connect;
pub mod download;
mod failure;
mod filter;
mod generate;
mod lint;
mod output;
mod packets;
mod progress;
mod table;
mod tap;
mod verify;
mod warnings;

pub use failure::Failure;

use cli::{CaptureCommand, Cli, Command, FilterCommand, TapCommand};

/// Parses the arguments, runs, and says what went wrong. 0: done; 1: it was tried and failed; 2: wrong usage.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    // A second installation in one process is the only error, and there is none before this line.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return Failure::new(format!("cannot start: {error}")).report(),
    };
    match runtime.block_on(run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

async fn run(cli: Cli) -> Result<(), Failure> {
    let place = &cli.place;
    match cli.command {
        Command::Capture(command) => match command {
            CaptureCommand::Create(args) => capture::create(place, *args).await,
            CaptureCommand::List(args) => capture::list(place, args).await,
            CaptureCommand::Describe(args) => capture::describe(place, args).await,
            CaptureCommand::Watch(args) => capture::watch(place, &args.name).await,
            CaptureCommand::Download(args) => download::run(place, *args).await,
            CaptureCommand::Verify(args) => verify::run(place, args).await,
        },
        Command::Tap(TapCommand::List(args)) => tap::list(place, args).await,
        Command::Lint(args) => lint::run(place, args),
        Command::Filter(FilterCommand::Explain(args)) => filter::explain(&args),
        Command::Filter(FilterCommand::Test(args)) => filter::test(&args),
        Command::Completion { shell } => generate::completion(shell),
        Command::Man { directory } => generate::man(directory.as_deref()),
    }
}
