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
    /// Why the newest record was not kept; nothing when it was.
    unkept: Option<String>,
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

    /// Whether records are kept, as far as is known: the ledger is open, and kept what it was given last.
    ///
    /// # Errors
    /// Why not.
    pub async fn state(&self) -> Result<(), LedgerError> {
        self.open().await?;
        let unkept = self.state.lock().await.unkept.clone();
        unkept.map_or(Ok(()), |why| Err(LedgerError::Unavailable(why)))
    }
}

#[async_trait::async_trait]
impl Ledger for Reopening {
    async fn commit(&self, entry: Entry) -> Result<Record, LedgerError> {
        let kept = self.open().await?.commit(entry).await;
        self.state.lock().await.unkept = match &kept {
            Err(LedgerError::Unavailable(why)) => Some(why.clone()),
            Err(LedgerError::Conflict) | Ok(_) => None,
        };
        kept
    }
}

#[cfg(test)]
mod tests {
    use trawl_audit::{Action, Actor, Decision, Resource};

    use super::*;

    fn entry(key: &str, username: String) -> Entry {
        Entry {
            recorded_at: jiff::Timestamp::now(),
            action: Action::NetworkTapCreate,
            decision: Decision::Allowed,
            reason: "Accepted".into(),
            message: String::new(),
            actor: Actor {
                username,
                ..Actor::default()
            },
            resource: Resource::default(),
            request_id: key.into(),
            stable_key: key.into(),
            initiated_by: "test".into(),
        }
    }

    #[tokio::test]
    async fn an_open_ledger_that_keeps_no_record_is_not_ready_until_it_keeps_one_again() {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Reopening::new(directory.path().into());
        ledger.state().await.unwrap();
        // Too long for a line: the one refusal that needs no full disk.
        let long = entry("a", "x".repeat(2 << 20));
        ledger.commit(long).await.unwrap_err();
        ledger.state().await.unwrap_err();
        ledger.commit(entry("b", "alice".into())).await.unwrap();
        ledger.state().await.unwrap();
    }
}
