//! NetworkTaps: gather facts, ask for a decision, carry it out.

mod carry;
mod gather;
mod reconcile;
pub mod workload;

pub use reconcile::{Applied, reconcile};
