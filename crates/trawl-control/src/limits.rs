//! The bounds of requests, checked by who asks and by who answers before anything is opened.

use crate::messages::{Attach, Capture, ErrorCode, ErrorReply};

const MAX_DURATION_MS: u64 = 3_600_000;
const MIN_SIZE: u64 = 1 << 20;
const MAX_SIZE: u64 = 1 << 30;
const MIN_SNAPLEN: u32 = 64;
const MAX_SNAPLEN: u32 = 262_144;
const MAX_PRE_TRIGGER_MS: u64 = 300_000;
const MAX_COMMENTS: usize = 16;
/// Most memory that one attachment may use for its history, in bytes.
pub const MAX_HISTORY_BYTES: u64 = 4 << 30;
/// How far a trigger may seem to lie in the future, in nanoseconds: clocks of two machines are never quite the same.
pub const TRIGGER_SLACK_NS: u64 = 1_000_000_000;
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

/// Checks the moment of the trigger against the clock of who asks or answers.
///
/// # Errors
/// The refusal of a trigger that lies more than [`TRIGGER_SLACK_NS`] after `now_ns`.
pub fn check_trigger(capture: &Capture, now_ns: u64) -> Result<(), ErrorReply> {
    match capture.trigger_ns {
        Some(trigger) if trigger > now_ns.saturating_add(TRIGGER_SLACK_NS) => Err(refusal(
            ErrorCode::InvalidBounds,
            "triggerNs",
            "triggerNs lies more than 1 s in the future by this node's clock; send the moment of something that has \
             happened, and check that the clocks agree",
        )),
        _ => Ok(()),
    }
}

/// Checks what an attachment asks for.
///
/// # Errors
/// The refusal of more history than [`MAX_HISTORY_BYTES`].
pub fn check_attach(attach: &Attach) -> Result<(), ErrorReply> {
    if attach
        .history_bytes
        .is_some_and(|bytes| bytes > MAX_HISTORY_BYTES)
    {
        return Err(refusal(
            ErrorCode::InvalidBounds,
            "historyBytes",
            format!("historyBytes must be 0 to {MAX_HISTORY_BYTES}"),
        ));
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

    #[test]
    fn a_trigger_may_lie_anywhere_in_the_past_and_a_second_ahead_and_no_further() {
        const NOW: u64 = 1_000_000_000_000;
        let at = |trigger_ns| {
            check_trigger(
                &Capture {
                    trigger_ns,
                    ..capture()
                },
                NOW,
            )
        };
        for fine in [None, Some(0), Some(NOW), Some(NOW + TRIGGER_SLACK_NS)] {
            at(fine).unwrap();
        }
        for wrong in [NOW + TRIGGER_SLACK_NS + 1, u64::MAX] {
            let refusal = at(Some(wrong)).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::InvalidBounds);
            assert_eq!(refusal.field.as_deref(), Some("triggerNs"));
            assert!(refusal.message.contains("future"), "{}", refusal.message);
        }
    }

    #[test]
    fn history_is_bounded_and_may_be_none() {
        let asked = |history_bytes| {
            check_attach(&Attach {
                tap: capture().tap,
                source: crate::messages::Source::NodeInterface(crate::messages::InterfaceSpec {
                    interface: "eth0".into(),
                    promiscuous: false,
                }),
                history_bytes,
            })
        };
        for fine in [None, Some(0), Some(MAX_HISTORY_BYTES)] {
            asked(fine).unwrap();
        }
        let refusal = asked(Some(MAX_HISTORY_BYTES + 1)).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::InvalidBounds);
        assert_eq!(refusal.field.as_deref(), Some("historyBytes"));
        assert!(refusal.message.contains("4294967296"), "{}", refusal.message);
    }
}
