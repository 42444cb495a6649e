//! Create-if-absent with patience: what may pass is tried again, what will not is said at once.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use trawl_artifact::outcome::FailureReason;
use trawl_artifact::verify::hex;
use trawl_store::{Store, StoreError};

use crate::Failure;

const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// What is uploaded, with its hash.
pub(crate) enum Content<'a> {
    File {
        path: &'a Path,
        size: u64,
        sha256: &'a str,
    },
    Bytes(Bytes),
}

impl Content<'_> {
    async fn put(&self, store: &Store, key: &str) -> Result<(), StoreError> {
        match self {
            Self::File { path, size, sha256 } => store.put_file_if_absent(key, path, *size, sha256).await,
            Self::Bytes(bytes) => store.put_if_absent(key, bytes.clone()).await,
        }
        .map(drop)
    }

    fn sha256(&self) -> String {
        match self {
            Self::File { sha256, .. } => (*sha256).to_owned(),
            Self::Bytes(bytes) => hex(&Sha256::digest(bytes)),
        }
    }
}

/// How long to wait before attempt `next` (1 is the second), or `None` when the budget does not reach that far.
pub(crate) fn delay_before(next: u32, left: Duration) -> Option<Duration> {
    let delay = FIRST_DELAY
        .saturating_mul(2u32.saturating_pow(next.saturating_sub(1)))
        .min(LONGEST_DELAY);
    (delay < left).then_some(delay)
}

/// Uploads until it succeeded, cannot succeed, or `deadline` is reached.
pub(crate) async fn upload(
    store: &Store,
    key: &str,
    content: &Content<'_>,
    deadline: Instant,
) -> Result<(), Failure> {
    let mut uncertain = false;
    for attempt in 1.. {
        let mut outcome = content.put(store, key).await;
        if matches!(outcome, Err(StoreError::AlreadyExists { .. })) {
            outcome = settle(store, key, &content.sha256(), uncertain).await;
        }
        match outcome {
            Ok(()) => return Ok(()),
            Err(error) if error.is_retryable() => {
                uncertain = true;
                let left = deadline.saturating_duration_since(Instant::now());
                let Some(delay) = delay_before(attempt, left) else {
                    let message = format!("{error}; the upload budget is spent after {attempt} attempts");
                    return Err(Failure::new(FailureReason::UploadFailed, message));
                };
                tracing::warn!(%error, attempt, delay_ms = delay.as_millis(), key, "upload will be tried again");
                tokio::time::sleep(delay).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::internal("the upload was tried too often"))
}

/// The object is there already. It is ours when it has our content; a credential that may not read leaves only what
/// we know: that an attempt of ours may have arrived. The operator reads the object back in any case.
async fn settle(store: &Store, key: &str, ours: &str, uncertain: bool) -> Result<(), StoreError> {
    match sha256(store, key).await {
        Ok(theirs) if theirs == ours => Ok(()),
        Err(StoreError::Denied { .. }) if uncertain => Ok(()),
        Err(error) if error.is_retryable() => Err(error),
        _ => Err(StoreError::AlreadyExists { key: key.into() }),
    }
}

async fn sha256(store: &Store, key: &str) -> Result<String, StoreError> {
    let mut stream = store.get(key).await?.stream;
    let mut hash = Sha256::new();
    while let Some(chunk) = stream.next().await {
        hash.update(&chunk?);
    }
    Ok(hex(&hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_cap_and_stay_within_the_budget() {
        let hour = Duration::from_secs(3600);
        let delays: Vec<_> = (1..9)
            .map(|n| delay_before(n, hour).unwrap().as_millis())
            .collect();
        assert_eq!(delays, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(delay_before(u32::MAX, hour), Some(LONGEST_DELAY));
        assert_eq!(delay_before(1, Duration::from_millis(500)), None);
        assert_eq!(delay_before(1, Duration::ZERO), None);
    }
}
