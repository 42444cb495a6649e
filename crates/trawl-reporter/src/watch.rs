//! The reporter's life: look, derive, apply what changed; after SIGTERM once more.

use std::fmt::Display;
use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, sleep, timeout_at};
use trawl_artifact::progress::ProgressReader;

use crate::api::{Job, ReportError};
use crate::{Arguments, OwnedStatus, derive};

/// Intervals and limits.
#[derive(Clone, Copy, Debug)]
pub struct Tempo {
    /// Between two looks at the directory.
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
    let mut reporter = Reporter {
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
                    sleep(self.tempo.look).await;
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

    async fn farewell(mut self) -> Result<(), ReportError> {
        let deadline = Instant::now() + self.tempo.farewell;
        loop {
            let report = self.report();
            match timeout_at(deadline, report).await {
                Ok(Ok(())) => return Ok(()),
                // A job that was deleted has no status to write; that is no fault of the reporter's.
                Ok(Err(ReportError::Gone { .. })) => return Ok(()),
                Ok(Err(error)) => {
                    self.tell(&error);
                    if !error.is_retryable() || Instant::now() + self.tempo.retry >= deadline {
                        return Err(error);
                    }
                    sleep(self.tempo.retry).await;
                }
                Err(_) => return Err(timed_out()),
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
        let limit = Instant::now() + self.tempo.request;
        let generation = match self.generation {
            Some(generation) => generation,
            None => {
                let generation = timeout_at(limit, self.job.generation())
                    .await
                    .unwrap_or_else(|_| Err(timed_out()))?;
                *self.generation.insert(generation)
            }
        };
        let status = derive(&records, generation);
        if status.is_empty() || status == self.applied {
            return Ok(());
        }
        timeout_at(limit, self.job.apply(&status))
            .await
            .unwrap_or_else(|_| Err(timed_out()))?;
        tracing::info!(records = records.len(), "status applied");
        self.last_news.clear();
        self.applied = status;
        Ok(())
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
