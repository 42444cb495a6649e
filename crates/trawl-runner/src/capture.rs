//! The conversation with captured: patient until the capture has begun, strict from then on.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use trawl_artifact::outcome::FailureReason;
use trawl_artifact::progress::{CaptureStarted, FilterVerdict, ProgressBody};
use trawl_artifact::text::{MAX_MESSAGE_BYTES, clean};
use trawl_artifact::verify::timestamp;
use trawl_config::pods::RunnerSpec;
use trawl_control::{CancelHandle, Client, ClientError, Ended, ErrorCode, Replies, Reply, Started};

use crate::progress::Records;
use crate::{Failure, Settings, spec};

/// Pause between two attempts to begin.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How long captured may take beyond the capture's own duration, and to finish a cancelled one: more than the 60 s
/// that it gives its own writer, so that a finished file is never taken for a broken one.
const FINISH_GRACE: Duration = Duration::from_secs(75);

/// A capture that began.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) started: Started,
    pub(crate) finish: Finish,
    pub(crate) captured_version: String,
}

#[derive(Debug)]
pub(crate) enum Finish {
    /// captured finished the file and summed it up.
    Ended(Box<Ended>),
    /// captured went away or fell silent; the file is as it left it.
    Broken(String),
}

/// One attempt that did not begin.
enum NotBegun {
    Final(Failure),
    /// Try again; the time says until when.
    Again(Failure, Duration),
}

/// Has `file` filled. Returns once the capture has ended in any way after it began.
pub(crate) async fn capture(
    job: &RunnerSpec,
    settings: &Settings,
    file: &File,
    records: &Records,
    mut stopped: watch::Receiver<bool>,
) -> Result<Recording, Failure> {
    let client = Client::new(&settings.socket);
    let begun = Instant::now();
    loop {
        if *stopped.borrow() {
            return Err(Failure::new(
                FailureReason::CaptureFailed,
                "cancelled before the capture began",
            ));
        }
        let (failure, patience) = match attempt(&client, job, file, records, &mut stopped).await {
            Ok(recording) => return Ok(recording),
            Err(NotBegun::Final(failure)) => return Err(failure),
            Err(NotBegun::Again(failure, patience)) => (failure, patience.min(settings.start_budget)),
        };
        if begun.elapsed() + RETRY_PAUSE >= patience {
            return Err(failure);
        }
        tracing::warn!(%failure, "the capture has not begun; trying again");
        tokio::select! {
            () = sleep(RETRY_PAUSE) => {}
            Ok(_) = stopped.wait_for(|stop| *stop) => {}
        }
    }
}

async fn attempt(
    client: &Client,
    job: &RunnerSpec,
    mut file: &File,
    records: &Records,
    stopped: &mut watch::Receiver<bool>,
) -> Result<Recording, NotBegun> {
    let captured_version = match client.status().await {
        Ok(status) => status.daemon_version,
        Err(error @ ClientError::Unreachable { .. }) => return Err(again(&error)),
        Err(_) => "unknown".into(),
    };
    // Whatever an attempt that never began left behind.
    file.set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .map_err(|e| NotBegun::Final(Failure::internal(format!("capture file: {}", e.kind()))))?;
    let (mut replies, cancel) = client
        .capture(spec::request(job), file)
        .await
        .map_err(|e| again(&e))?;
    let started = begin(&mut replies, &cancel, records, stopped).await?;
    let finish = follow(
        &mut replies,
        &cancel,
        stopped,
        Duration::from_millis(job.duration_ms),
    )
    .await;
    Ok(Recording {
        started,
        finish,
        captured_version,
    })
}

/// Waits for `Started`.
async fn begin(
    replies: &mut Replies,
    cancel: &CancelHandle,
    records: &Records,
    stopped: &mut watch::Receiver<bool>,
) -> Result<Started, NotBegun> {
    let mut cancelled = false;
    loop {
        let reply = tokio::select! {
            reply = replies.next() => reply,
            Ok(_) = stopped.wait_for(|stop| *stop), if !cancelled => {
                cancelled = true;
                let _ = cancel.cancel();
                continue;
            }
        };
        match reply {
            Ok(Some(Reply::FilterAccepted)) => {
                let verdict = FilterVerdict {
                    accepted: true,
                    rejects_all: false,
                    message: None,
                };
                records.write(ProgressBody::Filter(verdict));
            }
            Ok(Some(Reply::Started(started))) => {
                records.write(ProgressBody::Started(CaptureStarted {
                    interface: started.interface.clone(),
                    mode: started.mode.as_str().into(),
                    started_at: timestamp(started.started_at_ns).unwrap_or_else(jiff::Timestamp::now),
                }));
                return Ok(started);
            }
            Ok(_) => {
                let problem = "captured ended the capture before it began";
                return Err(NotBegun::Final(Failure::new(
                    FailureReason::CaptureFailed,
                    problem,
                )));
            }
            Err(error) => {
                refused(&error, records);
                return Err(again(&error));
            }
        }
    }
}

/// A refused filter is news of its own.
fn refused(error: &ClientError, records: &Records) {
    let ClientError::Refused(refusal) = error else {
        return;
    };
    let rejects_all = refusal.code == ErrorCode::FilterRejectsAll;
    if rejects_all || refusal.code == ErrorCode::InvalidFilter {
        let message = Some(clean(&refusal.message, MAX_MESSAGE_BYTES));
        records.write(ProgressBody::Filter(FilterVerdict {
            accepted: false,
            rejects_all,
            message,
        }));
    }
}

/// Which failures to begin may pass: captured being restarted, or not yet knowing the tap again.
fn again(error: &ClientError) -> NotBegun {
    let failure = Failure::from(error);
    match error {
        ClientError::Unreachable { .. } | ClientError::Closed | ClientError::Connection(_) => {
            NotBegun::Again(failure, Duration::MAX)
        }
        ClientError::Refused(refusal) if refusal.code == ErrorCode::InterfaceUnavailable => {
            NotBegun::Again(failure, Duration::from_secs(10))
        }
        _ => NotBegun::Final(failure),
    }
}

/// Waits for the end. SIGTERM cancels and is then waited for; silence beyond all bounds is an end as well.
async fn follow(
    replies: &mut Replies,
    cancel: &CancelHandle,
    stopped: &mut watch::Receiver<bool>,
    duration: Duration,
) -> Finish {
    let mut deadline = Instant::now() + duration + FINISH_GRACE;
    let mut cancelled = false;
    loop {
        tokio::select! {
            reply = replies.next() => match reply {
                Ok(Some(Reply::Ended(ended))) => return Finish::Ended(Box::new(ended)),
                Ok(Some(Reply::Progress(now))) => {
                    tracing::debug!(packets = now.packets, bytes = now.bytes, elapsed_ms = now.elapsed_ms, "capturing");
                }
                Ok(_) => return Finish::Broken("captured answered out of order".into()),
                Err(error) => return Finish::Broken(Failure::from(&error).message),
            },
            Ok(_) = stopped.wait_for(|stop| *stop), if !cancelled => {
                cancelled = true;
                deadline = deadline.min(Instant::now() + FINISH_GRACE);
                tracing::info!("cancelling the capture");
                if let Err(error) = cancel.cancel() {
                    tracing::warn!(%error, "cannot cancel");
                }
            }
            () = sleep_until(deadline) => {
                return Finish::Broken("captured did not end the capture in time".into());
            }
        }
    }
}
