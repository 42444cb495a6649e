//! What a capture leaves behind: manifest, progress records, object keys and pcapng verification.
#![forbid(unsafe_code)]

pub mod keys;
pub mod manifest;
pub mod outcome;
pub mod pcapng;
pub mod progress;
pub mod sanitize;
pub mod text;
pub mod verify;

pub use verify::{Disagreement, Measured, Verifier, VerifyError, VerifyReport};
