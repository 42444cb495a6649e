//! The four Trawl resources: types, closed enums, conditions, validation and CRD generation.
//!
//! The normative text is the CRD reference of the project; every type here is one of its kinds or shapes.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

// The tables in tests/cases are shared by the unit tests and by the tests on a real API server.
#[cfg(test)]
extern crate self as trawl_api;

pub mod common;
pub mod conditions;
pub mod crds;
pub mod limits;
pub mod names;
pub mod quantities;
pub mod reference;
pub mod schema;
pub mod validation;
pub mod webhooks;

mod capture_job;
mod capture_job_status;
mod capture_policy;
mod kind;
mod network_tap;
mod network_tap_status;
mod port_mirror;
mod words;

pub use capture_job::*;
pub use capture_job_status::*;
pub use capture_policy::*;
pub use common::*;
pub use conditions::{ConditionType, Reason};
pub use kind::Kind;
pub use network_tap::*;
pub use network_tap_status::*;
pub use port_mirror::*;
pub use quantities::{ByteSize, GoDuration};
pub use trawl_artifact::{
    outcome::{FailureReason, Outcome, StopReason},
    sanitize::sanitize,
    text::{MAX_MESSAGE_BYTES, clean},
};
pub use validation::FieldProblem;
