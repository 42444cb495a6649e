//! Condition types and reasons as closed enums, and the one way to merge a condition into a status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use trawl_artifact::sanitize::sanitize;
use trawl_artifact::text::{MAX_MESSAGE_BYTES, clean};

macro_rules! words {
    ($(#[$meta:meta])* $name:ident: $($word:ident)*) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        // The words are explained in docs/conditions.md, which a test compares with this list.
        #[allow(missing_docs)]
        pub enum $name { $($word),* }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$word),*];

            /// The word on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$word => stringify!($word)),* }
            }

            /// The value of a word on the wire.
            pub fn from_wire(text: &str) -> Option<Self> {
                match text { $(stringify!($word) => Some(Self::$word),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Condition types of all kinds.
    ConditionType:
    Accepted TargetsResolved WorkloadReady AnalyzersHealthy PacketsObserved TapResolved
    SourceConnected WithinRateLimit Ready TargetReady FilterValid CaptureStarted ArtifactVerified
    Downloadable RetentionEnforced DeviceReachable MirrorConfigured
}

words! {
    /// Condition reasons.
    Reason:
    Accepted InvalidSpec WrongNamespace AuditUnavailable DependencyUnavailable TargetsResolved
    NoEligibleTargets AmbiguousTargets InterfaceConflict WorkloadReady WorkloadUnavailable
    WorkloadProgressing AnalyzersHealthy AnalyzerDegraded AnalyzerFailed ProbeUnavailable
    PacketsObserved NoPacketsObserved InterfaceMissing ContentStale CaptureModeDegraded TapResolved
    TapNotFound TapNotActive SourceConnected SourceDisconnected SourceGap WorkerStale
    WithinRateLimit RateLimited CooldownActive Disarmed TargetReady TargetUnavailable FilterValid
    FilterInvalid FilterRejectsAll CaptureStarted CaptureFailed ArtifactVerified ArtifactMissing
    ChecksumMismatch StorageFailure Downloadable NotDownloadable RetentionEnforced RetentionFailed
    Expired Pending DeviceReachable DeviceUnreachable DeviceUnsupported DeviceUntrusted
    DeviceRefused MirrorConfigured MirrorDrifted DeviceConflict CredentialMissing
}

/// What a condition asserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It was observed to hold.
    True,
    /// It was observed not to hold.
    False,
    /// It could not be observed.
    Unknown,
}

impl Truth {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A condition before it is merged: no transition time yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// What is asserted.
    pub type_: ConditionType,
    /// Whether it holds.
    pub truth: Truth,
    /// Why.
    pub reason: Reason,
    /// At most 512 bytes reach the status.
    pub message: String,
}

impl Observed {
    /// A condition to be merged; `message` names fields and limits, never filter text.
    pub fn new(type_: ConditionType, truth: Truth, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            type_,
            truth,
            reason,
            message: message.into(),
        }
    }
}

/// Longest condition reason, in bytes.
pub const MAX_REASON_BYTES: usize = 64;
/// Turns `observed` into a Condition, with its message sanitized and cut. The transition time of `previous` is kept while the status is the same.
pub fn merge(previous: &[Condition], observed: &Observed, generation: i64, now: Timestamp) -> Condition {
    let status = observed.truth.as_str();
    let last_transition_time = previous
        .iter()
        .find(|c| c.type_ == observed.type_.as_str() && c.status == status)
        .map_or(Time(now), |c| c.last_transition_time.clone());
    Condition {
        type_: observed.type_.as_str().into(),
        status: status.into(),
        reason: observed.reason.as_str().into(),
        message: clean(&sanitize(&observed.message), MAX_MESSAGE_BYTES),
        observed_generation: Some(generation),
        last_transition_time,
    }
}

/// Whether a condition is `True` and was observed at `generation`; older or missing is not.
pub fn is_true(conditions: &[Condition], type_: ConditionType, generation: i64) -> bool {
    conditions
        .iter()
        .any(|c| c.type_ == type_.as_str() && c.status == "True" && c.observed_generation == Some(generation))
}

#[cfg(test)]
mod tests;
