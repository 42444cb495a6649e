//! Where the webhooks' certificate comes from: made and rotated by the operator itself, or files that somebody else
//! looks after.

mod cluster;
mod kept;
pub mod managed;
mod pair;
pub mod plan;
#[cfg(test)]
mod tests;

/// Readiness part of the certificate.
pub const READY_CERTIFICATE: &str = "webhook certificate";
/// Secret in which the operator keeps its own certificate; the installation makes it, empty.
pub const SECRET: &str = "trawl-webhook-tls";
