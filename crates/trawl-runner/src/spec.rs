//! From the operator's instruction to the request that captured understands.

use trawl_artifact::text::clean;
use trawl_config::pods::RunnerSpec;
use trawl_control::limits::{self, MAX_COMMENT_BYTES};
use trawl_control::{Capture, ClientError, TapIdentity};

use crate::Failure;

/// Checks the bounds before captured does: the operator's word is not the only thing between a request and a full disk.
pub(crate) fn check(spec: &RunnerSpec) -> Result<(), Failure> {
    limits::check(&request(spec)).map_err(|refusal| Failure::from(&ClientError::Refused(refusal)))
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
        filter_tunnels: spec.filter_tunnels,
        duration_ms: spec.duration_ms,
        max_size_bytes: spec.max_size_bytes,
        snaplen: spec.snaplen,
        trigger_ns: None,
        pre_trigger_ms: spec.pre_trigger_ms,
        comments: comments
            .iter()
            .map(|comment| clean(comment, MAX_COMMENT_BYTES))
            .collect(),
    }
}
