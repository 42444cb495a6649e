//! The Job from its first to its last word.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use trawl_artifact::keys;
use trawl_artifact::outcome::{FailureReason, Outcome, StopReason};
use trawl_artifact::pcapng::Summary;
use trawl_artifact::progress::{CaptureEnded, CaptureResult, ProgressBody, ProgressWriter};
use trawl_artifact::verify::timestamp;
use trawl_artifact::{Measured, text};
use trawl_config::pods::RunnerSpec;
use trawl_store::Store;

use crate::capture::{self, Finish, Recording};
use crate::manifest::{self, End};
use crate::progress::Records;
use crate::upload::{Content, upload};
use crate::{Arguments, Failure, inspect, spec};

/// Name of the capture file in the work directory.
const CAPTURE_FILE: &str = "capture.pcapng";

/// Where the Job finds things, and how patient it is.
#[derive(Clone, Debug)]
pub struct Settings {
    pub socket: PathBuf,
    pub work_dir: PathBuf,
    pub progress_dir: PathBuf,
    pub credentials_dir: PathBuf,
    /// How long captured may be out of reach before the capture begins.
    pub start_budget: Duration,
}

impl Settings {
    /// The command line's paths, and a start budget of a minute.
    pub fn new(arguments: Arguments) -> Self {
        Self {
            socket: arguments.socket,
            work_dir: arguments.work_dir,
            progress_dir: arguments.progress_dir,
            credentials_dir: arguments.credentials_dir,
            start_budget: Duration::from_secs(60),
        }
    }
}

/// What is known of the file when the Job ends.
#[derive(Clone, Debug, Default)]
struct Figures {
    stop_reason: Option<StopReason>,
    packet_count: Option<u64>,
    size_bytes: Option<u64>,
    sha256: Option<String>,
}

/// Runs the Job, writes its last record and returns the exit code that says the same. `stopped` turning true cancels a
/// capture under way; an upload under way is finished.
pub async fn run(job: RunnerSpec, settings: Settings, stopped: watch::Receiver<bool>) -> i32 {
    let records = Records::new(ProgressWriter::new(&settings.progress_dir, &job.job.uid));
    let records = std::sync::Arc::new(records);
    let steps = {
        let records = std::sync::Arc::clone(&records);
        tokio::spawn(async move {
            let mut figures = Figures::default();
            let outcome = steps(&job, &settings, &records, stopped, &mut figures).await;
            (outcome, figures)
        })
    };
    // A panic is a bug, but not one that may leave the job without a last word.
    let (outcome, figures) = match steps.await {
        Ok(ended) => ended,
        Err(_) => (
            Err(Failure::internal("the runner stopped unexpectedly; see its log")),
            Figures::default(),
        ),
    };
    let result = result(outcome, figures);
    let code = result.exit_code;
    tracing::info!(outcome = ?result.outcome, reason = ?result.reason, message = result.message, code, "result");
    records.write(ProgressBody::Result(result));
    code
}

fn result(outcome: Result<(), Failure>, figures: Figures) -> CaptureResult {
    let failure = outcome.err();
    CaptureResult {
        outcome: if failure.is_none() {
            Outcome::Succeeded
        } else {
            Outcome::Failed
        },
        reason: failure.as_ref().map(|f| f.reason),
        stop_reason: figures.stop_reason,
        packet_count: figures.packet_count,
        size_bytes: figures.size_bytes,
        sha256: figures.sha256,
        exit_code: failure.as_ref().map_or(0, |f| f.reason.exit_code()),
        message: failure.map(|f| f.message),
    }
}

async fn steps(
    job: &RunnerSpec,
    settings: &Settings,
    records: &Records,
    stopped: watch::Receiver<bool>,
    figures: &mut Figures,
) -> Result<(), Failure> {
    spec::check(job)?;
    let store = Store::open(&job.store, &settings.credentials_dir)?;
    let path = settings.work_dir.join(CAPTURE_FILE);
    let file = create(&path)?;
    let recording = capture::capture(job, settings, &file, records, stopped).await?;
    let file = inspect::reader(&path).map_err(|e| {
        Failure::internal(format!(
            "cannot open {CAPTURE_FILE} in the work directory again: {}",
            e.kind()
        ))
    })?;
    let examined = examine(&recording, file, records).await?;
    let (end, measured, found) = (&examined.end, &examined.measured, &examined.found);
    *figures = Figures {
        stop_reason: Some(end.stop_reason),
        packet_count: Some(found.packets),
        size_bytes: Some(measured.size_bytes),
        sha256: Some(measured.sha256.clone()),
    };
    if measured.size_bytes > job.max_size_bytes {
        let message = format!(
            "the file has {} bytes, the bound was {}",
            measured.size_bytes, job.max_size_bytes
        );
        return Err(Failure::new(FailureReason::SizeExceeded, message));
    }
    let manifest = manifest::build(
        job,
        &recording.started,
        end,
        measured,
        found,
        &recording.captured_version,
    );
    let manifest = manifest.to_json().map_err(|e| Failure::internal(e.to_string()))?;
    let deadline = Instant::now() + Duration::from_millis(job.upload_budget_ms);
    let stored = async {
        let (namespace, uid) = (&job.job.namespace, &job.job.uid);
        let capture = Content::File {
            path: &path,
            size: measured.size_bytes,
            sha256: &measured.sha256,
        };
        upload(&store, &keys::capture_key(namespace, uid), &capture, deadline).await?;
        let manifest = Content::Bytes(manifest.into());
        upload(&store, &keys::manifest_key(namespace, uid), &manifest, deadline).await
    };
    let stored = stored.await;
    let Some(problem) = examined.problem else {
        return stored;
    };
    let message = match stored {
        Ok(()) => format!(
            "{problem}; {} whole packets are stored as a partial artifact",
            found.packets
        ),
        Err(failure) => format!("{problem}; the partial artifact could not be stored: {failure}"),
    };
    Err(Failure::new(FailureReason::CaptureFailed, message))
}

fn create(path: &std::path::Path) -> Result<File, Failure> {
    let created = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    created.map_err(|e| {
        Failure::internal(format!(
            "cannot create {CAPTURE_FILE} in the work directory: {}",
            e.kind()
        ))
    })
}

/// A file that is worth storing.
struct Examined {
    end: End,
    measured: Measured,
    found: Summary,
    /// Why it is only part of what was asked.
    problem: Option<String>,
}

async fn examine(recording: &Recording, file: File, records: &Records) -> Result<Examined, Failure> {
    match &recording.finish {
        Finish::Ended(ended) if ended.stop_reason != trawl_control::StopReason::Error => {
            let end = End {
                stop_reason: stop_reason(ended.stop_reason),
                ended_at: timestamp(ended.ended_at_ns).unwrap_or_else(Timestamp::now),
                summary: Some(ended.as_ref().clone()),
                salvaged: false,
            };
            records.write(ended_record(&end, ended.packets, ended.bytes, &ended.sha256));
            let measured = blocking(file, inspect::measure).await?;
            let found = agree(ended, &measured)?;
            let cancelled = end.stop_reason == StopReason::Cancelled;
            let problem = cancelled.then(|| "the capture was cancelled".to_owned());
            Ok(Examined {
                end,
                measured,
                found,
                problem,
            })
        }
        Finish::Ended(ended) => {
            let problem = ended.message.as_deref().unwrap_or("captured gave no reason");
            let problem = format!("the capture broke: {}", text::clean(problem, 256));
            salvage(file, records, problem, Some(ended)).await
        }
        Finish::Broken(problem) => salvage(file, records, text::clean(problem, 256), None).await,
    }
}

async fn salvage(
    file: File,
    records: &Records,
    problem: String,
    ended: Option<&trawl_control::Ended>,
) -> Result<Examined, Failure> {
    let lost = |why: &str| Failure::new(FailureReason::CaptureFailed, format!("{problem}; {why}"));
    let measured = blocking(file, inspect::salvage)
        .await?
        .ok_or_else(|| lost("no whole packet could be salvaged"))?;
    let found = measured.walk.clone().map_err(|e| lost(&e.to_string()))?;
    // The writer's own summary counts only when it speaks of this very file.
    let whole = ended.is_some_and(|ended| ended.sha256 == measured.sha256);
    let end = End {
        stop_reason: StopReason::Error,
        ended_at: ended
            .and_then(|e| timestamp(e.ended_at_ns))
            .unwrap_or_else(Timestamp::now),
        summary: ended.filter(|_| whole).cloned(),
        salvaged: !whole,
    };
    records.write(ended_record(
        &end,
        found.packets,
        measured.size_bytes,
        &measured.sha256,
    ));
    Ok(Examined {
        end,
        measured,
        found,
        problem: Some(problem),
    })
}

fn ended_record(end: &End, packet_count: u64, size_bytes: u64, sha256: &str) -> ProgressBody {
    ProgressBody::Ended(CaptureEnded {
        stop_reason: end.stop_reason,
        ended_at: end.ended_at,
        packet_count,
        size_bytes,
        sha256: sha256.into(),
    })
}

/// Whether the file is what its writer said. If not, neither is believed.
fn agree(ended: &trawl_control::Ended, measured: &Measured) -> Result<Summary, Failure> {
    let refuse = |message: String| Err(Failure::new(FailureReason::CaptureFailed, message));
    if measured.size_bytes != ended.bytes {
        return refuse(format!(
            "captured reports {} bytes, the file has {}",
            ended.bytes, measured.size_bytes
        ));
    }
    if measured.sha256 != ended.sha256 {
        return refuse("the file does not have the sha256 that captured reports".into());
    }
    match &measured.walk {
        Err(error) => refuse(format!("the capture file cannot be read as pcapng: {error}")),
        Ok(found) if found.packets != ended.packets => refuse(format!(
            "captured reports {} packets, the file holds {}",
            ended.packets, found.packets
        )),
        Ok(found) => Ok(found.clone()),
    }
}

fn stop_reason(reason: trawl_control::StopReason) -> StopReason {
    match reason {
        trawl_control::StopReason::Duration => StopReason::Duration,
        trawl_control::StopReason::Size => StopReason::Size,
        trawl_control::StopReason::Cancelled => StopReason::Cancelled,
        trawl_control::StopReason::Error => StopReason::Error,
    }
}

async fn blocking<T: Send + 'static>(
    mut file: File,
    work: impl FnOnce(&mut File) -> std::io::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(move || work(&mut file)).await;
    let done = done.map_err(|_| Failure::internal("reading the capture file stopped unexpectedly"))?;
    done.map_err(|e| {
        Failure::new(
            FailureReason::CaptureFailed,
            format!("cannot read the capture file: {}", e.kind()),
        )
    })
}
