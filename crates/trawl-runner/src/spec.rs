//! From the operator's instruction to the request that captured understands.

use trawl_artifact::text::clean;
use trawl_config::pods::RunnerSpec;
use trawl_control::limits::{self, MAX_COMMENT_BYTES};
use trawl_control::{Capture, ClientError, TapIdentity};

use crate::Failure;

/// Checks the bounds before captured does: the operator's word is not the only thing between a request and a full disk.
pub(crate) fn check(spec: &RunnerSpec) -> Result<(), Failure> {
    limits::check(&request(spec, now_ns())).map_err(|refusal| Failure::from(&ClientError::Refused(refusal)))
}

/// The request to captured, made at this moment.
pub(crate) fn request(spec: &RunnerSpec, now_ns: u64) -> Capture {
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
        // The clock that stamped the event may be ahead of this one.
        trigger_ns: spec.trigger_ns.map(|event| event.min(now_ns)),
        pre_trigger_ms: spec.pre_trigger_ms,
        comments: comments
            .iter()
            .map(|comment| clean(comment, MAX_COMMENT_BYTES))
            .collect(),
    }
}

/// This machine's clock, in nanoseconds since the epoch.
pub(crate) fn now_ns() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_another_clock_puts_into_the_future_is_one_of_now() {
        let identity = serde_json::json!({"namespace": "n", "name": "x", "uid": "u"});
        let mut spec: RunnerSpec = serde_json::from_value(serde_json::json!({
            "job": identity, "tap": identity, "node": "node-1", "durationMs": 1000, "maxSizeBytes": 1 << 20,
            "snaplen": 0, "uploadBudgetMs": 1000, "store": {"profile": "local", "backend": {"directory": {"path": "/x"}}},
        }))
        .unwrap();
        assert_eq!(request(&spec, 1_000).trigger_ns, None, "a person means now");
        for (event, wanted) in [(999, 999), (1_001, 1_000)] {
            spec.trigger_ns = Some(event);
            assert_eq!(request(&spec, 1_000).trigger_ns, Some(wanted));
        }
    }
}
