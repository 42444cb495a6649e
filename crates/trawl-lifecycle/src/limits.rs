//! The times of the state machines. One value of [`Limits`] per installation; tests shorten it.

use std::time::Duration;

/// How long the machines wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a CaptureJob waits for its tap and node before it fails.
    pub target_wait: Duration,
    /// Age at which a sensor's heartbeat no longer counts.
    pub heartbeat_stale: Duration,
    /// Longest pause between two looks at an unfinished CaptureJob.
    pub job_requeue: Duration,
    /// Longest pause between two looks at a NetworkTap, so that silence is noticed.
    pub tap_requeue: Duration,
    /// Pause while something that was deleted is still there.
    pub cleanup_requeue: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            target_wait: Duration::from_secs(180),
            heartbeat_stale: Duration::from_secs(90),
            job_requeue: Duration::from_secs(15),
            tap_requeue: Duration::from_secs(30),
            cleanup_requeue: Duration::from_secs(2),
        }
    }
}
