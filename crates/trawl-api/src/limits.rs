//! Limits of the contract, used by the schema and by the validation of stored objects alike.

use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// A range of durations, with the words in which the schema and the messages say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationRange {
    /// Shortest, as it is written.
    pub min_text: &'static str,
    /// Longest, as it is written in a message.
    pub max_text: &'static str,
    /// Examples within the range, for messages.
    pub examples: &'static str,
    /// Shortest.
    pub min: Duration,
    /// Longest.
    pub max: Duration,
}

impl DurationRange {
    const fn new(
        (min_text, min): (&'static str, Duration),
        (max_text, max): (&'static str, Duration),
        examples: &'static str,
    ) -> Self {
        Self {
            min_text,
            max_text,
            examples,
            min,
            max,
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Duration of a capture.
pub const CAPTURE_DURATION: DurationRange = DurationRange::new(("1s", SECOND), ("1h", HOUR), "30s, 5m or 1h");
/// Time between two captures of one flow.
pub const COOLDOWN: DurationRange = CAPTURE_DURATION;
/// Window of a threshold.
pub const WINDOW: DurationRange = DurationRange::new(
    ("1s", SECOND),
    ("15m", MINUTE.saturating_mul(15)),
    "30s, 1m or 15m",
);
/// How far a capture reaches back.
pub const PRE_TRIGGER: DurationRange = DurationRange::new(
    ("0s", Duration::ZERO),
    ("5m", MINUTE.saturating_mul(5)),
    "0s, 30s or 5m",
);
/// How long artifacts are kept.
pub const RETENTION: DurationRange = DurationRange::new(
    ("1h", HOUR),
    ("30d", HOUR.saturating_mul(30 * 24)),
    "12h or whole days, 7d or 30d",
);

/// Smallest `maxSize` in bytes.
pub const MIN_SIZE: u64 = 1 << 20;
/// Largest `maxSize` in bytes.
pub const MAX_SIZE: u64 = 1 << 30;
/// Smallest `snaplen` other than 0.
pub const MIN_SNAPLEN: i32 = 64;
/// Largest `snaplen`.
pub const MAX_SNAPLEN: i32 = 262_144;
/// Longest filter and filter template, in bytes.
pub const MAX_FILTER: usize = 1024;
/// Longest interface name, in bytes (IFNAMSIZ less its terminator).
pub const MAX_INTERFACE: usize = 15;
/// Longest name of an object, and of a node.
pub const MAX_NAME: usize = 253;
/// Longest UID of an object.
pub const MAX_UID: usize = 128;
/// Longest name of a switch port.
pub const MAX_PORT: usize = 64;
/// Most source ports of a mirror.
pub const MAX_SOURCES: usize = 48;
/// Most signature ids of a trigger.
pub const MAX_RULE_IDS: usize = 256;
/// Most entries of the other lists of a trigger.
pub const MAX_LIST: usize = 64;
/// Longest category and drop reason, in bytes.
pub const MAX_WORD: usize = 128;
/// Longest duration as text.
pub const MAX_DURATION_TEXT: usize = 32;
/// Longest reference to site-specific content.
pub const MAX_REFERENCE: usize = 512;
/// Most labels, and most expressions, of a node selector; most entries of a list of resources.
pub const MAX_SELECTOR: usize = 16;
/// Most values of one expression of a node selector.
pub const MAX_VALUES: usize = 64;
