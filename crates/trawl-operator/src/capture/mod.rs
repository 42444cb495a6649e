//! CaptureJobs: gather facts, ask for a decision, carry it out.

pub mod artifact;
mod carry;
mod gather;
pub mod job;
mod reconcile;

pub use reconcile::reconcile;
