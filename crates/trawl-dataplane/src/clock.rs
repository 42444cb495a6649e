//! The two clocks in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Nanoseconds since the epoch.
#[must_use]
pub fn realtime_ns() -> u64 {
    read(ClockId::Realtime)
}

/// The clock of `bpf_ktime_get_ns`.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// What to add to a monotonic stamp to get a realtime one. Read between two monotonic readings, so that being
/// put aside by the scheduler costs half of that pause at most.
#[must_use]
pub fn monotonic_to_realtime_ns() -> i128 {
    (0..3)
        .map(|_| {
            let (before, real, after) = (monotonic_ns(), realtime_ns(), monotonic_ns());
            (
                after - before,
                i128::from(real) - i128::from(before.midpoint(after)),
            )
        })
        .min_by_key(|(pause, _)| *pause)
        .map_or(0, |(_, offset)| offset)
}
