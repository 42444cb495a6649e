//! The reporter's life: look when there is news, derive, apply what changed; after SIGTERM once more.

use std::fmt::Display;
use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use trawl_artifact::progress::{ProgressReader, ProgressRecord};

use crate::api::{Job, ReportError};
use crate::ears::Ears;
use crate::{Arguments, OwnedStatus, derive};

/// Least time between two looks, whatever the runner's container does in the directory.
const SETTLE: Duration = Duration::from_millis(10);

/// Intervals and limits.
#[derive(Clone, Copy, Debug)]
pub struct Tempo {
    /// Between two looks at the directory when the kernel tells of no news, which it may not do everywhere.
    pub look: Duration,
    /// Before the first repetition of a failed request; doubles up to `retry_max`.
    pub retry: Duration,
    pub retry_max: Duration,
    /// How long one request may take.
    pub request: Duration,
    /// How long the last report may be tried after SIGTERM: less than the kubelet's 30 s.
    pub farewell: Duration,
}

impl Default for Tempo {
    fn default() -> Self {
        Self {
            look: Duration::from_millis(200),
            retry: Duration::from_millis(500),
            retry_max: Duration::from_secs(5),
            request: Duration::from_secs(10),
            farewell: Duration::from_secs(25),
        }
    }
}

/// Reports until `terminated` resolves, then once more. Fails only when the last report did not get through.
pub async fn run(client: Client, arguments: Arguments, terminated: impl Future) -> Result<(), ReportError> {
    run_at(Tempo::default(), client, arguments, terminated).await
}

/// [`run`] at another tempo.
pub async fn run_at(
    tempo: Tempo,
    client: Client,
    arguments: Arguments,
    terminated: impl Future,
) -> Result<(), ReportError> {
    let ears = Ears::open(&arguments.progress_dir)
        .inspect_err(|error| tracing::warn!(%error, "no notice of new records; looking at intervals"))
        .ok();
    let mut reporter = Reporter {
        ears,
        reader: ProgressReader::new(&arguments.progress_dir, &arguments.job_uid),
        job: Job::new(client, &arguments),
        generation: None,
        applied: OwnedStatus::default(),
        last_news: String::new(),
        tempo,
    };
    tokio::select! {
        () = reporter.watch() => {}
        _ = terminated => {}
    }
    reporter.farewell().await
}

struct Reporter {
    /// Without them, looks at intervals still find everything.
    ears: Option<Ears>,
    reader: ProgressReader,
    job: Job,
    /// Of the job when it was first seen.
    generation: Option<i64>,
    /// What the API server took last.
    applied: OwnedStatus,
    /// The last problem logged, so that a lasting one is told once.
    last_news: String,
    tempo: Tempo,
}

impl Reporter {
    /// Never returns: a native sidecar lives until it is told to go.
    async fn watch(&mut self) {
        let mut retry = self.tempo.retry;
        loop {
            match self.report().await {
                Ok(()) => {
                    retry = self.tempo.retry;
                    self.listen().await;
                }
                Err(error) => {
                    self.tell(&error);
                    if !error.is_retryable() {
                        return std::future::pending().await;
                    }
                    sleep(retry).await;
                    retry = (retry * 2).min(self.tempo.retry_max);
                }
            }
        }
    }

    /// Until a look is worth it.
    async fn listen(&self) {
        let Some(ears) = &self.ears else {
            return sleep(self.tempo.look).await;
        };
        sleep(SETTLE).await;
        let _ = timeout(self.tempo.look, ears.heard()).await;
    }

    async fn farewell(mut self) -> Result<(), ReportError> {
        let deadline = Instant::now() + self.tempo.farewell;
        let mut last = None;
        loop {
            match timeout_at(deadline, self.report()).await {
                Ok(Ok(())) => return Ok(()),
                // A job that was deleted has no status to write; that is no fault of the reporter's.
                Ok(Err(ReportError::Gone { .. })) => return Ok(()),
                Ok(Err(error)) => {
                    self.tell(&error);
                    if !error.is_retryable() || Instant::now() + self.tempo.retry >= deadline {
                        return Err(error);
                    }
                    last = Some(error);
                    sleep(self.tempo.retry).await;
                }
                Err(_) => return Err(last.unwrap_or_else(timed_out)),
            }
        }
    }

    /// One look; one request if something changed.
    async fn report(&mut self) -> Result<(), ReportError> {
        let records = match self.reader.read() {
            Ok(records) => records,
            Err(error) => {
                // Records that cannot be believed are not reported; what was reported before stands.
                self.tell(&error);
                return Ok(());
            }
        };
        if records.is_empty() || derive(&records, self.generation.unwrap_or_default()) == self.applied {
            return Ok(());
        }
        // The job may change between look and patch, more than once.
        let mut outcome = self.apply(&records).await;
        for _ in 0..5 {
            if !outcome.as_ref().is_err_and(ReportError::is_stale) {
                break;
            }
            outcome = self.apply(&records).await;
        }
        self.applied = outcome?;
        tracing::info!(records = records.len(), "status applied");
        self.last_news.clear();
        Ok(())
    }

    /// Looks at the job and applies what the records say at the generation that was seen first.
    async fn apply(&mut self, records: &[ProgressRecord]) -> Result<OwnedStatus, ReportError> {
        let limit = Instant::now() + self.tempo.request;
        let seen = timeout_at(limit, self.job.look())
            .await
            .unwrap_or_else(|_| Err(timed_out()))?;
        let status = derive(records, *self.generation.get_or_insert(seen.generation));
        timeout_at(limit, self.job.apply(&status, &seen))
            .await
            .unwrap_or_else(|_| Err(timed_out()))?;
        Ok(status)
    }

    fn tell(&mut self, problem: &impl Display) {
        let news = problem.to_string();
        if news != self.last_news {
            tracing::warn!(problem = news, "not reported");
            self.last_news = news;
        }
    }
}

fn timed_out() -> ReportError {
    let silent = std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in time");
    ReportError::Api(Box::new(kube::Error::Service(silent.into())))
}
