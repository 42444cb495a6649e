//! `dev/bench line`: how long a whole installation takes from a request to the first packet in the file, and from the
//! end of the capture to the download; and what memory it takes meanwhile.
//!
//! Every point of a job's life is taken from the one who knows it best, all on this machine's one clock: the client's
//! own clock before `create`, arrival of watch events at the client, containerd's events, and the manifest.

mod containers;
mod memory;
mod report;
mod rounds;
mod watches;

use std::path::PathBuf;

use anyhow::{Context, Result};
use trawl_testbed::line::{Line, var};

#[tokio::main]
async fn main() -> Result<()> {
    let output: PathBuf = std::env::args()
        .nth(1)
        .context("usage: line OUTPUT.json; run it with `dev/bench line`")?
        .into();
    let line = Line::from_env().await?;
    let conditions = report::conditions(&var("BENCH_PROGRAMS")?);
    let measured = rounds::run(&line).await?;
    let document = report::document(conditions, &measured)?;
    report::print(&document, &measured);
    if let Some(directory) = output.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(&output, serde_json::to_string_pretty(&document)? + "\n")
        .with_context(|| format!("cannot write {}", output.display()))?;
    println!("\nwritten: {}", output.display());
    Ok(())
}
