//! Names that are wire contract: API group, field owners, annotations, finalizers.

/// API group of the four kinds.
pub const GROUP: &str = "trawl.cloud";
/// The served and stored API version.
pub const VERSION: &str = "v1alpha1";
/// Namespace of an installation that says nothing else.
pub const DEFAULT_NAMESPACE: &str = "trawl-system";

/// Server-side-apply field owner of the operator.
pub const OPERATOR_FIELD_MANAGER: &str = "trawl-operator";
/// Server-side-apply field owner of the reporter beside a capture runner.
pub const REPORTER_FIELD_MANAGER: &str = "trawl-capture-reporter";

/// Field owner of the sensor on one node; one each, so that sensors never prune each other's targets.
pub fn sensor_field_manager(node: &str) -> String {
    format!("trawl-sensor-{node}")
}

/// Authenticated user who created a CaptureJob.
pub const REQUESTER_ANNOTATION: &str = "trawl.cloud/requester";
/// Holds a CaptureJob until its Job and its objects are gone.
pub const CAPTURE_JOB_FINALIZER: &str = "trawl.cloud/capturejob-cleanup";
/// Label on what the operator makes for a NetworkTap: the tap's UID.
pub const TAP_UID_LABEL: &str = "trawl.cloud/tap-uid";
/// Label on what the operator makes for a CaptureJob: the job's UID.
pub const CAPTURE_JOB_UID_LABEL: &str = "trawl.cloud/capturejob-uid";
/// Audience of tokens that the artifact gateway accepts.
pub const GATEWAY_AUDIENCE: &str = "trawl-artifact-gateway";
