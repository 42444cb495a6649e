//! The local ledger, opened when it can be: an operator without one runs, and refuses what it cannot record.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use trawl_audit::{Entry, Ledger, LedgerError, LocalLedger, Record};

/// Opening reads the whole file, so that it is not tried at every request.
const TRY_EVERY: Duration = Duration::from_secs(3);

/// A local ledger that is opened at the first use, and again later when that failed.
pub struct Reopening {
    directory: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ledger: Option<LocalLedger>,
    failed: Option<(Instant, String)>,
}

impl Reopening {
    /// The ledger in `directory`, which need not be there yet.
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            state: Mutex::default(),
        }
    }

    /// The ledger, opened if need be.
    ///
    /// # Errors
    /// Why it cannot be opened now.
    pub async fn open(&self) -> Result<LocalLedger, LedgerError> {
        let mut state = self.state.lock().await;
        if let Some(ledger) = &state.ledger
            && !ledger.is_lost()
        {
            return Ok(ledger.clone());
        }
        if let Some((at, why)) = &state.failed
            && at.elapsed() < TRY_EVERY
        {
            return Err(LedgerError::Unavailable(why.clone()));
        }
        let directory = self.directory.clone();
        let opened = tokio::task::spawn_blocking(move || LocalLedger::open(&directory))
            .await
            .unwrap_or_else(|e| Err(LedgerError::Unavailable(e.to_string())));
        match opened {
            Ok((ledger, found)) => {
                let (path, walk) = (found.path.display().to_string(), found.walk);
                tracing::info!(path, records = walk.records, "the audit ledger is open and whole");
                if walk.unfinished > 0 {
                    let bytes = walk.unfinished;
                    tracing::warn!(
                        path,
                        bytes,
                        "a record that was never acknowledged was cut off the audit ledger"
                    );
                }
                state.failed = None;
                state.ledger = Some(ledger.clone());
                Ok(ledger)
            }
            Err(error) => {
                tracing::error!(%error, "requests that must be recorded are refused");
                let why = match &error {
                    LedgerError::Unavailable(why) => why.clone(),
                    other => other.to_string(),
                };
                state.failed = Some((Instant::now(), why));
                Err(error)
            }
        }
    }
}

#[async_trait::async_trait]
impl Ledger for Reopening {
    async fn commit(&self, entry: Entry) -> Result<Record, LedgerError> {
        self.open().await?.commit(entry).await
    }
}
