//! From the operator's instruction to the request that captured understands.

use trawl_artifact::outcome::FailureReason;
use trawl_artifact::text::clean;
use trawl_config::pods::RunnerSpec;
use trawl_control::{Capture, TapIdentity};

use crate::Failure;

/// Longest comment that captured accepts, in bytes.
const MAX_COMMENT_BYTES: usize = 1024;

/// Checks the bounds again: the operator's word is not the only thing between a request and a full disk.
pub(crate) fn check(spec: &RunnerSpec) -> Result<(), Failure> {
    let refuse = |message: &str| Err(Failure::new(FailureReason::InvalidBounds, message));
    if !(1..=3_600_000).contains(&spec.duration_ms) {
        return refuse("durationMs: must be 1 to 3600000");
    }
    if !(1 << 20..=1 << 30).contains(&spec.max_size_bytes) {
        return refuse("maxSizeBytes: must be 1048576 to 1073741824");
    }
    if spec.snaplen != 0 && !(64..=262_144).contains(&spec.snaplen) {
        return refuse("snaplen: must be 0 or 64 to 262144");
    }
    if spec.pre_trigger_ms > 300_000 {
        return refuse("preTriggerMs: must be at most 300000");
    }
    Ok(())
}

/// The request to captured.
pub(crate) fn request(spec: &RunnerSpec) -> Capture {
    let mut comments = vec![
        format!(
            "trawl CaptureJob {}/{} uid {}",
            spec.job.namespace, spec.job.name, spec.job.uid
        ),
        format!(
            "trawl NetworkTap {}/{} uid {}",
            spec.tap.namespace, spec.tap.name, spec.tap.uid
        ),
        format!("trawl node {}", spec.node),
    ];
    comments.extend(
        spec.requester
            .as_ref()
            .map(|who| format!("trawl requester {who}")),
    );
    Capture {
        tap: TapIdentity {
            namespace: spec.tap.namespace.clone(),
            name: spec.tap.name.clone(),
            uid: spec.tap.uid.clone(),
        },
        filter: spec.filter.clone(),
        duration_ms: spec.duration_ms,
        max_size_bytes: spec.max_size_bytes,
        snaplen: spec.snaplen,
        pre_trigger_ms: spec.pre_trigger_ms,
        comments: comments
            .iter()
            .map(|comment| clean(comment, MAX_COMMENT_BYTES))
            .collect(),
    }
}
