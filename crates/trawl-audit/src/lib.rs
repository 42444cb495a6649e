//! The audit record `trawl.audit/v1`, and the ledgers that keep it.
//!
//! A privileged act is admitted only after its record is committed: [`Ledger::commit`] returns when the record
//! cannot be lost any more.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod index;
mod line;
mod local;
mod record;
mod walk;
mod writer;

pub use local::{LocalLedger, Opened};
pub use record::{Action, Actor, Decision, Entry, Record, Resource, SCHEMA};
pub use walk::{Broken, Walk, verify, verify_from};

#[cfg(test)]
mod tests;

/// Where records are kept.
#[async_trait::async_trait]
pub trait Ledger: Send + Sync {
    /// Commits an entry and returns the record as it is kept. The same stable key with the same content again
    /// returns the record of the first time; with other content it is a conflict.
    ///
    /// # Errors
    /// The record is not known to be kept: the act must not happen.
    async fn commit(&self, entry: Entry) -> Result<Record, LedgerError>;
}

/// Why a record is not kept.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The stable key stands for another content already.
    #[error("the audit ledger holds another record for this request")]
    Conflict,
    /// The ledger cannot be written now.
    #[error("the audit ledger is unavailable: {0}")]
    Unavailable(String),
}
