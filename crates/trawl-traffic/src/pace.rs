//! When the next frames are due.

use std::time::{Duration, Instant};

/// How much to send, and how fast.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// At most so many frames.
    pub count: Option<u64>,
    /// At most so long.
    pub duration: Option<Duration>,
    /// Frames per second; as fast as possible without it.
    pub rate: Option<u64>,
}

/// What was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Frames.
    pub frames: u64,
    /// Time from the first to the last.
    pub took: Duration,
}

/// Longest sleep: short enough that a pause is not a burst.
const NAP: Duration = Duration::from_millis(1);
/// Shorter waits than this are spun through, because a sleep takes longer than it says.
const SPIN: Duration = Duration::from_micros(80);

/// Calls `send` with how many frames to send now, at most `burst`, until the plan is carried out.
///
/// # Errors
/// The first error of `send`.
pub fn carry_out<E>(plan: &Plan, burst: u32, mut send: impl FnMut(u32) -> Result<(), E>) -> Result<Sent, E> {
    let began = Instant::now();
    let mut frames = 0;
    loop {
        let elapsed = began.elapsed();
        let left = plan.count.map_or(u64::MAX, |count| count - frames);
        if left == 0 || plan.duration.is_some_and(|d| elapsed >= d) {
            return Ok(Sent {
                frames,
                took: elapsed,
            });
        }
        let now = due(plan, frames, elapsed).min(left).min(u64::from(burst));
        if now == 0 {
            rest(plan, frames, elapsed);
            continue;
        }
        send(now as u32)?;
        frames += now;
    }
}

/// Frames that should have been sent by now and were not.
fn due(plan: &Plan, frames: u64, elapsed: Duration) -> u64 {
    let Some(rate) = plan.rate else { return u64::MAX };
    // The first frame is due at once.
    let wanted = elapsed.as_nanos() * u128::from(rate) / 1_000_000_000 + 1;
    u64::try_from(wanted).unwrap_or(u64::MAX).saturating_sub(frames)
}

fn rest(plan: &Plan, frames: u64, elapsed: Duration) {
    pause(due_at(plan, frames).saturating_sub(elapsed).min(NAP));
}

/// When the frame with this index is due, counted from the first.
pub(crate) fn due_at(plan: &Plan, index: u64) -> Duration {
    let Some(rate) = plan.rate else {
        return Duration::ZERO;
    };
    let ns = u128::from(index) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// Returns when so much time has gone by since `began`.
pub(crate) fn wait_until(began: Instant, due: Duration) {
    while let Some(left) = due.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
        pause(left);
    }
}

fn pause(wait: Duration) {
    if wait > SPIN {
        std::thread::sleep(wait - SPIN);
    } else {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_frames_that_were_asked_for_are_sent_in_bursts_that_fit() {
        let plan = Plan {
            count: Some(1000),
            ..Plan::default()
        };
        let mut bursts = vec![];
        let sent = carry_out(&plan, 64, |n| {
            bursts.push(n);
            Ok::<_, ()>(())
        });
        assert_eq!(sent.unwrap().frames, 1000);
        assert!(bursts.iter().all(|n| (1..=64).contains(n)));
        assert_eq!(bursts.iter().sum::<u32>(), 1000);
    }

    #[test]
    fn a_rate_is_never_exceeded_and_a_duration_ends_it() {
        let plan = Plan {
            rate: Some(2_000),
            duration: Some(Duration::from_millis(200)),
            count: None,
        };
        let began = Instant::now();
        let mut total = 0;
        let sent = carry_out(&plan, 64, |n| {
            total += u64::from(n);
            assert!(total <= began.elapsed().as_micros() as u64 / 500 + 2);
            Ok::<_, ()>(())
        });
        let sent = sent.unwrap();
        assert_eq!(sent.frames, total);
        assert!(sent.took >= Duration::from_millis(200));
    }
}
