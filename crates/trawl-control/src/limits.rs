//! The bounds of a capture request, checked by who asks and by who answers before anything is opened.

use crate::messages::{Capture, ErrorCode, ErrorReply};

const MAX_DURATION_MS: u64 = 3_600_000;
const MIN_SIZE: u64 = 1 << 20;
const MAX_SIZE: u64 = 1 << 30;
const MIN_SNAPLEN: u32 = 64;
const MAX_SNAPLEN: u32 = 262_144;
const MAX_PRE_TRIGGER_MS: u64 = 300_000;
const MAX_COMMENTS: usize = 16;
/// Longest comment, in bytes.
pub const MAX_COMMENT_BYTES: usize = 1024;

/// A refusal that names the field.
#[must_use]
pub fn refusal(code: ErrorCode, field: &str, message: impl Into<String>) -> ErrorReply {
    ErrorReply {
        code,
        field: Some(field.into()),
        message: message.into(),
    }
}

/// Checks every bound of a capture.
///
/// # Errors
/// The refusal of the first field that is out of bounds.
pub fn check(capture: &Capture) -> Result<(), ErrorReply> {
    let wrong = |field: &str, limit: String| {
        Err(refusal(
            ErrorCode::InvalidBounds,
            field,
            format!("{field} {limit}"),
        ))
    };
    if !(1..=MAX_DURATION_MS).contains(&capture.duration_ms) {
        return wrong("durationMs", format!("must be 1 to {MAX_DURATION_MS}"));
    }
    if !(MIN_SIZE..=MAX_SIZE).contains(&capture.max_size_bytes) {
        return wrong("maxSizeBytes", format!("must be {MIN_SIZE} to {MAX_SIZE}"));
    }
    if capture.snaplen != 0 && !(MIN_SNAPLEN..=MAX_SNAPLEN).contains(&capture.snaplen) {
        return wrong(
            "snaplen",
            format!("must be 0 for whole packets, or {MIN_SNAPLEN} to {MAX_SNAPLEN}"),
        );
    }
    if capture.pre_trigger_ms > MAX_PRE_TRIGGER_MS {
        return wrong("preTriggerMs", format!("must be 0 to {MAX_PRE_TRIGGER_MS}"));
    }
    if capture.comments.len() > MAX_COMMENTS {
        return wrong("comments", format!("may hold {MAX_COMMENTS} entries at most"));
    }
    if let Some(i) = capture.comments.iter().position(|c| c.len() > MAX_COMMENT_BYTES) {
        return wrong(
            &format!("comments[{i}]"),
            format!("may have {MAX_COMMENT_BYTES} bytes at most"),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture() -> Capture {
        Capture {
            tap: crate::messages::TapIdentity {
                namespace: "n".into(),
                name: "t".into(),
                uid: "u".into(),
            },
            filter: None,
            filter_tunnels: false,
            duration_ms: 1,
            max_size_bytes: MIN_SIZE,
            snaplen: 0,
            trigger_ns: None,
            pre_trigger_ms: 0,
            comments: vec![],
        }
    }

    #[test]
    fn the_smallest_and_the_largest_capture_are_taken() {
        check(&capture()).unwrap();
        check(&Capture {
            duration_ms: MAX_DURATION_MS,
            max_size_bytes: MAX_SIZE,
            snaplen: MAX_SNAPLEN,
            pre_trigger_ms: MAX_PRE_TRIGGER_MS,
            comments: vec!["c".repeat(MAX_COMMENT_BYTES); MAX_COMMENTS],
            ..capture()
        })
        .unwrap();
    }

    #[test]
    fn one_beyond_each_limit_is_refused_by_field() {
        let beyond = [
            (
                "durationMs",
                Capture {
                    duration_ms: 0,
                    ..capture()
                },
            ),
            (
                "durationMs",
                Capture {
                    duration_ms: MAX_DURATION_MS + 1,
                    ..capture()
                },
            ),
            (
                "maxSizeBytes",
                Capture {
                    max_size_bytes: MIN_SIZE - 1,
                    ..capture()
                },
            ),
            (
                "maxSizeBytes",
                Capture {
                    max_size_bytes: MAX_SIZE + 1,
                    ..capture()
                },
            ),
            (
                "snaplen",
                Capture {
                    snaplen: 63,
                    ..capture()
                },
            ),
            (
                "snaplen",
                Capture {
                    snaplen: MAX_SNAPLEN + 1,
                    ..capture()
                },
            ),
            (
                "preTriggerMs",
                Capture {
                    pre_trigger_ms: MAX_PRE_TRIGGER_MS + 1,
                    ..capture()
                },
            ),
            (
                "comments",
                Capture {
                    comments: vec![String::new(); 17],
                    ..capture()
                },
            ),
            (
                "comments[0]",
                Capture {
                    comments: vec!["c".repeat(1025)],
                    ..capture()
                },
            ),
        ];
        for (field, capture) in beyond {
            let refusal = check(&capture).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::InvalidBounds);
            assert_eq!(refusal.field.as_deref(), Some(field));
            assert!(refusal.message.contains(field), "{}", refusal.message);
        }
    }
}
