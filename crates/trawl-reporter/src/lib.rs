//! The capture Job's sidecar: progress records become status.
//!
//! It holds a token that reaches one CaptureJob's status, and believes nothing in the progress directory that
//! the reader of `trawl-artifact` does not vouch for.
#![forbid(unsafe_code)]

mod api;
mod derive;
mod ears;
mod watch;

use std::path::PathBuf;

pub use api::ReportError;
pub use derive::{OwnedStatus, derive};
pub use watch::{Tempo, run, run_at};

/// Command line of the reporter.
#[derive(Clone, Debug, clap::Parser)]
#[command(
    name = "trawl-reporter",
    version,
    about = "Turns progress records into the status of one CaptureJob."
)]
pub struct Arguments {
    /// Namespace of the CaptureJob.
    #[arg(long)]
    pub namespace: String,
    /// Name of the CaptureJob.
    #[arg(long)]
    pub job: String,
    /// UID of the CaptureJob; a job of the same name with another UID is left alone.
    #[arg(long)]
    pub job_uid: String,
    /// Directory of the runner's progress records.
    #[arg(long, value_name = "DIR")]
    pub progress_dir: PathBuf,
}
