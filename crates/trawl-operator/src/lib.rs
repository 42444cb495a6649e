//! The controllers that carry out NetworkTaps and CaptureJobs, and the webhooks of all four kinds.
//!
//! Reconcilers only gather facts, ask `trawl-lifecycle` for a decision and carry it out. There is no leader lease yet:
//! the Deployment runs one replica with strategy `Recreate`, so that two operators never work at once.
#![forbid(unsafe_code)]

pub mod capture;
pub mod cli;
pub mod context;
pub mod error;
pub mod owned;
pub mod pod;
pub mod run;
pub mod tap;
pub mod webhook;
