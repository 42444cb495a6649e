//! Kubernetes client set-up, server-side apply, health endpoints, serving certificates and start-up shared by the programs.
#![forbid(unsafe_code)]

pub mod apply;
pub mod events;
pub mod health;
pub mod startup;
pub mod status;
pub mod tls;
