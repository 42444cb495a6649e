//! What the derived schemas do not say: limits, list types and rules, laid over them by path.
//!
//! The types carry shape and documentation; the modules here carry the refusals of the contract, one per kind.

mod capture_job;
mod capture_policy;
pub mod cel;
mod network_tap;
mod node;
mod normalize;
mod port_mirror;
mod shared;

use serde_json::Value;

pub use node::{Node, Rule};

/// One of the four kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// NetworkTap.
    NetworkTap,
    /// CapturePolicy.
    CapturePolicy,
    /// CaptureJob.
    CaptureJob,
    /// PortMirror.
    PortMirror,
}

/// Turns the schema that the derive made into the one that the API server enforces.
///
/// # Panics
/// When a path of the overlay does not exist in the derived schema, which means that a field was renamed without
/// its limits. Only the generator and its tests call this, and the drift test runs it for every kind.
pub fn harden(kind: Kind, schema: &mut Value) {
    normalize::normalize(schema);
    let mut root = Node::new(schema);
    match kind {
        Kind::NetworkTap => network_tap::overlay(&mut root),
        Kind::CapturePolicy => capture_policy::overlay(&mut root),
        Kind::CaptureJob => capture_job::overlay(&mut root),
        Kind::PortMirror => port_mirror::overlay(&mut root),
    }
    shared::conditions(&mut root.at("status.conditions"));
}
