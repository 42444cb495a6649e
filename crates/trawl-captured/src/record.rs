//! `trawl-captured record`: one capture on one machine, by its daemon or by an interface opened for it.

mod asked;
mod own;
mod report;
mod trigger;

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use trawl_control::limits;
use trawl_control::{Capture, Client, Ended, StopReason, TapIdentity};
use trawl_dataplane::ring::device;
use trawl_filter::Compiled;

use crate::cli::RecordArgs;
use crate::tell::tell;
use crate::{WrongUsage, daemon, open, privileges, watch};

/// What stands before anything is opened.
pub(crate) struct Prepared {
    args: RecordArgs,
    file: File,
    compiled: Compiled,
}

/// What came of a recording.
struct Outcome {
    ended: Ended,
    /// Nanoseconds before the trigger that the file was to begin with, and does.
    pre_asked_ns: u64,
    pre_covered_ns: u64,
    /// What to do for more of it.
    advice: &'static str,
}

/// What comes before the first thread: mistakes are told, the file is made with all the rights of the user, and rights
/// that recording does not need are given up.
pub(crate) fn prepare(args: RecordArgs) -> anyhow::Result<Prepared> {
    check(&args)?;
    let compiled = open::compile(args.filter.as_deref().unwrap_or_default(), args.tunnels)
        .context(WrongUsage("--filter"))?;
    for sentence in compiled.expansion.sentences() {
        tell!("filter: {sentence}");
    }
    for warning in &compiled.warnings {
        tell!("warning: {warning}");
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).open(&args.output);
    let file = file.with_context(|| {
        format!(
            "cannot create {}; its directory must exist and be writable",
            args.output.display()
        )
    })?;
    let prepared = Prepared { args, file, compiled };
    if let Err(e) = privileges::keep_needed() {
        remove(&prepared.args.output);
        return Err(e);
    }
    Ok(prepared)
}

pub(crate) async fn run(prepared: Prepared) -> anyhow::Result<ExitCode> {
    let output = prepared.args.output.clone();
    let recorded = record(prepared).await;
    match recorded {
        Ok((args, outcome)) => {
            report::print(&args, &outcome);
            Ok(match outcome.ended.stop_reason {
                StopReason::Error => ExitCode::from(1),
                _ => ExitCode::SUCCESS,
            })
        }
        Err(e) => {
            remove(&output);
            Err(e)
        }
    }
}

async fn record(prepared: Prepared) -> anyhow::Result<(RecordArgs, Outcome)> {
    let args = &prepared.args;
    let client = Client::new(&args.daemon.socket);
    let found = match args.alone {
        true => None,
        false => daemon::attachment_on(&client, &args.interface).await,
    };
    match found {
        Some(attachment) => asked::record(prepared, &client, &attachment).await,
        None => own::record(prepared).await,
    }
}

/// A file that nothing was written into is none. One with packets stays, whatever happened.
fn remove(output: &Path) {
    let empty = output
        .symlink_metadata()
        .is_ok_and(|m| m.is_file() && m.len() == 0);
    if empty && let Err(e) = std::fs::remove_file(output) {
        tell!("note: {} stays, empty: {e}", output.display());
    }
}

fn check(args: &RecordArgs) -> anyhow::Result<()> {
    if args.output == Path::new("-") {
        bail!(WrongUsage(
            "--output: `-` is no file, and a recording is finished in its file; name one"
        ));
    }
    limits::check(&request(args, watch::own_identity())).map_err(|refused| {
        let flag = match refused.field.as_deref() {
            Some("durationMs") => "--duration must be 1ms to 1h",
            Some("maxSizeBytes") => "--max-size must be 1Mi to 1Gi",
            Some("preTriggerMs") => "--pre must be at most 5m",
            _ => "--snaplen must be 0 for whole packets, or 64 to 262144",
        };
        WrongUsage(flag)
    })?;
    if args.output.symlink_metadata().is_ok() {
        bail!(
            "{} exists already and is left alone; choose another --output",
            args.output.display()
        );
    }
    let name = &args.interface;
    if device::link(name)
        .with_context(|| format!("cannot look at {name}"))?
        .is_none()
    {
        bail!("interface {name} does not exist here; check the name with `ip link`");
    }
    Ok(())
}

/// The capture that the command line means.
fn request(args: &RecordArgs, tap: TapIdentity) -> Capture {
    let milliseconds = |d: std::time::Duration| d.as_millis().try_into().unwrap_or(u64::MAX);
    Capture {
        tap,
        filter: args.filter.clone(),
        filter_tunnels: args.tunnels,
        duration_ms: milliseconds(args.duration),
        max_size_bytes: args.max_size,
        snaplen: args.snaplen,
        trigger_ns: None,
        pre_trigger_ms: milliseconds(args.pre),
        comments: vec![],
    }
}
