//! Tables: one row per rule and edge.

mod capture_job;
mod capture_policy;
mod common;
mod contract;
mod documentation;
mod hostile;
mod lint;
mod mutation;
mod network_tap;
mod port_mirror;
mod retention;
