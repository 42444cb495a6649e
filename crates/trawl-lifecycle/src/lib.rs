//! State machines of CaptureJob and NetworkTap: facts in, decision out.
//!
//! Nothing here talks to a cluster, a store or a clock. A reconciler gathers facts, asks [`capture::decide`]
//! or [`tap::decide`], and carries the answer out.
#![forbid(unsafe_code)]

pub mod capture;
pub mod claim;
pub mod limits;
pub mod tap;
