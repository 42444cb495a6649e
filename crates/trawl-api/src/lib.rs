//! The four Trawl resources: types, closed enums, conditions, validation and CRD generation.
//!
//! The normative text is the CRD reference of the project; every type here is one of its kinds or shapes.
#![forbid(unsafe_code)]

pub mod common;
pub mod conditions;
pub mod names;
pub mod quantities;

mod capture_job;
mod capture_policy;
mod network_tap;
mod port_mirror;

pub use capture_job::*;
pub use capture_policy::*;
pub use common::*;
pub use conditions::{ConditionType, Reason};
pub use network_tap::*;
pub use port_mirror::*;
pub use quantities::{ByteSize, GoDuration};
pub use trawl_artifact::outcome::{FailureReason, Outcome, StopReason};
