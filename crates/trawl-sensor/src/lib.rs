//! The tap pod's sidecar: attaches the interface in captured and reports its counters.
//!
//! The connection that attached the interface is the lease: while it is open, captured keeps the interface.
//! [`tally`] keeps counters monotone, [`health`] turns answers of captured into words, [`report`] writes them,
//! [`watch`] is the loop around them.
#![forbid(unsafe_code)]

pub mod cli;
pub mod health;
pub mod report;
pub mod tally;
pub mod watch;
