//! Installation configuration and the instructions that the operator hands its pods.
#![forbid(unsafe_code)]

pub mod admission;
pub mod installation;
pub mod names;
pub mod pods;
mod shape;
pub mod store;
