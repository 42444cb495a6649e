//! Authorised download of capture artifacts.
//!
//! One question is answered here: may this caller have this artifact now? The order of the steps is in
//! [`sequence`], the judgements in [`judge`]; everything else fetches facts or carries the answer.
#![forbid(unsafe_code)]

pub mod cluster;
pub mod decision_log;
pub mod http;
pub mod judge;
pub mod limits;
pub mod logs;
pub mod range;
pub mod refusal;
pub mod request;
pub mod request_id;
pub mod run;
pub mod sequence;
pub mod world;

pub use trawl_kube::tls;
