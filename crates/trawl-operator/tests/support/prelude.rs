//! What most tests use.

pub use std::time::Duration;

pub use k8s_openapi::api::core::v1::ServiceAccount;
pub use kube::api::{DeleteParams, ListParams, PostParams};
pub use kube::{Api, ResourceExt};
pub use serde_json::json;
pub use trawl_api::conditions::{ConditionType, is_true};
pub use trawl_api::{FailureReason, JobPhase, Outcome};
pub use trawl_config::pods::capture_objects_name;

pub use super::World;
pub use super::capture_file::{manifest, pcapng};
pub use super::world::eventually;
use trawl_artifact::manifest::Manifest;

/// What the reporter says while a capture runs, and after it.
pub fn started() -> serde_json::Value {
    json!({"startedAt": "2026-01-01T00:00:00Z", "resolvedInterface": "mirror0"})
}

pub fn result(manifest: &Manifest) -> serde_json::Value {
    let mut fields = started();
    fields["captureEndedAt"] = "2026-01-01T00:00:02Z".into();
    let ok = manifest.outcome == Outcome::Succeeded;
    fields["runnerResult"] = json!({
        "outcome": if ok { "Succeeded" } else { "Failed" },
        "stopReason": if ok { "Duration" } else { "Error" },
        "packetCount": manifest.packet_count, "sizeBytes": manifest.size_bytes, "sha256": manifest.sha256,
        "exitCode": if ok { 0 } else { 13 },
    });
    if !ok {
        fields["runnerResult"]["reason"] = "CaptureFailed".into();
        fields["runnerResult"]["message"] = "captured went away".into();
    }
    fields
}
