//! The capture Job: asks captured, checks what it got, uploads, writes the manifest.
//!
//! It holds no capability and no API token; the bucket credential is read only here. However it ends, the last
//! progress record and the exit code say the same.
#![forbid(unsafe_code)]

mod capture;
mod failure;
mod inspect;
mod manifest;
mod progress;
mod run;
#[cfg(test)]
mod scenarios;
mod spec;
mod upload;

use std::path::PathBuf;
use std::process::ExitCode;

pub use failure::{Failure, reason_of};
pub use run::{Settings, run};

use trawl_artifact::outcome::FailureReason;

/// Command line of the runner.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "trawl-runner", version, about = "Runs one capture and stores it.")]
pub struct Arguments {
    /// What to capture and where to store it: a RunnerSpec as JSON.
    #[arg(long, value_name = "JSON")]
    pub spec: String,
    /// Control socket of captured.
    #[arg(long, default_value = trawl_control::DEFAULT_SOCKET, value_name = "PATH")]
    pub socket: PathBuf,
    /// Directory for the capture file.
    #[arg(long, value_name = "DIR")]
    pub work_dir: PathBuf,
    /// Directory for progress records, shared with the reporter.
    #[arg(long, value_name = "DIR")]
    pub progress_dir: PathBuf,
    /// Directory with access-key-id and secret-access-key.
    #[arg(long, value_name = "DIR")]
    pub credentials_dir: PathBuf,
}

/// Runs the Job to its end and turns the result into the exit code.
pub fn main(arguments: Arguments) -> ExitCode {
    let code = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime.block_on(start(arguments)),
        Err(error) => {
            tracing::error!(%error, "cannot start the async runtime");
            FailureReason::InternalError.exit_code()
        }
    };
    ExitCode::from(u8::try_from(code).unwrap_or(16))
}

async fn start(arguments: Arguments) -> i32 {
    let spec = match serde_json::from_str(&arguments.spec) {
        Ok(spec) => spec,
        Err(error) => {
            // Without the job's UID no record can be written; the exit code says what is known.
            tracing::error!(
                line = error.line(),
                column = error.column(),
                "--spec is not a RunnerSpec"
            );
            return FailureReason::InternalError.exit_code();
        }
    };
    let (stop, stopped) = tokio::sync::watch::channel(false);
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::spawn(async move {
                while terminate.recv().await.is_some() {
                    tracing::info!("SIGTERM: finishing what can be finished");
                    let _ = stop.send(true);
                }
            });
        }
        Err(error) => tracing::warn!(%error, "cannot listen for SIGTERM"),
    }
    let settings = Settings::new(arguments);
    run(spec, settings, stopped).await
}
