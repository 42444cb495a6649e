//! What the API server is told about a request for one of the four kinds: facts in, verdict out.
//!
//! The same functions decide for the webhooks of the operator and for `trawlctl lint`. They know no client, no clock
//! and no ledger. Filters and templates are compiled, which blocks for two seconds at most: call them away from
//! async workers.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod action;
mod capture_job;
mod capture_policy;
mod capturing;
mod decide;
mod edit;
mod findings;
pub mod lint;
mod metadata;
mod mutate;
mod network_tap;
mod port_mirror;
mod schema;
mod spec;
mod template;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
pub use trawl_api::Kind;
use trawl_api::{FieldProblem, MirrorProvider};
use trawl_audit::Action;

/// What an installation allows.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The one namespace.
    pub namespace: String,
    /// User name of the event worker, the only one who may create CaptureJobs of type Policy.
    pub worker: String,
    /// Groups whose members may change the retention of a CaptureJob.
    pub retention_administrators: Vec<String>,
    /// Longest retention that is accepted, and what an empty one becomes.
    pub retention_ceiling: Duration,
    /// Providers that a PortMirror may name.
    pub providers: Vec<MirrorProvider>,
    /// How filters are compiled.
    pub filter: trawl_filter::Options,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new object.
    Create,
    /// Another version of an object.
    Update,
    /// The end of an object.
    Delete,
}

/// Who asks, as the API server authenticated them.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// User name.
    pub username: String,
    /// Groups.
    pub groups: Vec<String>,
}

/// Whether the tap that an object names is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TapReference {
    /// Nobody looked, or looking failed.
    #[default]
    Unknown,
    /// It is there.
    Found,
    /// It is not.
    Missing,
}

/// A request, with what the webhook found out about it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Kind of the object.
    pub kind: Kind,
    /// What is asked for.
    pub operation: Operation,
    /// Namespace of the object.
    pub namespace: String,
    /// The object as it shall be; absent when it is deleted.
    pub object: Option<Value>,
    /// The object as it is; absent when it is created.
    pub old: Option<Value>,
    /// Who asks.
    pub caller: Caller,
    /// When.
    pub now: Timestamp,
    /// The tap that the object names.
    pub tap: TapReference,
}

/// The answer of a validating webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why the request is refused; empty when it is admitted.
    pub problems: Vec<FieldProblem>,
    /// What the caller should know although the request is admitted; each at most 256 bytes.
    pub warnings: Vec<String>,
    /// What is recorded before the answer is given, whether it is admitted or refused; `None` when nothing that
    /// Trawl acts on would change.
    pub action: Option<Action>,
}

/// The answer of a mutating webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mutation {
    /// Operations of a JSON patch (RFC 6902).
    pub patch: Vec<Value>,
    /// What the caller should know.
    pub warnings: Vec<String>,
}

/// Decides about a request.
///
/// Deletions are always admitted: what exists elsewhere or under older rules must be able to go. So are updates that
/// change neither the spec nor what this crate guards in the metadata, and the disarming of a policy.
#[must_use]
pub fn validate(rules: &Rules, request: &Request) -> Verdict {
    decide::verdict(rules, request)
}

/// Whether [`validate`] compiles a filter or a template for this request: nothing else here takes long.
#[must_use]
pub fn compiles(request: &Request) -> bool {
    decide::compiles(request)
}

/// Completes an object before [`validate`] sees it. Updates that leave a field as it was leave it so.
#[must_use]
pub fn mutate(rules: &Rules, request: &Request) -> Mutation {
    mutate::mutation(rules, request)
}
