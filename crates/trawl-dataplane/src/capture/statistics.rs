//! The closing block of a file: the balance in numbers and in words.

use trawl_control::LossBalance;

use crate::pcapng::{self, Statistics};

/// Which loss counters are measured: it decides how long the block is, and is settled when a capture begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measured {
    pub ring: bool,
    pub nic: bool,
}

/// The block for a capture from `start_ns` to `end_ns`, stamped by this clock. Its length depends on `measured` alone,
/// since room for it is kept from the beginning.
pub(crate) fn block(
    measured: Measured,
    (start_ns, end_ns): (u64, u64),
    balance: &LossBalance,
    clock: &str,
) -> Vec<u8> {
    let interface_dropped = balance.lost_nic.filter(|_| measured.nic);
    let os_dropped = balance.lost_ring.filter(|_| measured.ring);
    // A counter that failed meanwhile is left out, since 0 would be a claim; the comment fills its room.
    let absent = |wanted: bool, count: Option<u64>| usize::from(wanted && count.is_none()) * OPTION_BYTES;
    let room = absent(measured.nic, interface_dropped) + absent(measured.ring, os_dropped);
    let length = comment_of(&WIDEST, "").len() + CLOCK_BYTES + room;
    let comment = format!("{:length$}", comment_of(balance, clock));
    pcapng::statistics(&Statistics {
        comment: &comment,
        start_ns,
        end_ns,
        received: balance.seen.saturating_add(balance.lost_ring.unwrap_or(0)),
        accepted: balance.matched,
        delivered: balance.written,
        interface_dropped,
        os_dropped,
    })
}

/// Length of the block.
pub(crate) fn length(measured: Measured) -> u64 {
    block(measured, (0, 0), &WIDEST, "").len() as u64
}

/// A counter in the block: code, length, and eight bytes.
const OPTION_BYTES: usize = 12;

const WIDEST: LossBalance = LossBalance {
    seen: u64::MAX,
    matched: u64::MAX,
    filtered: u64::MAX,
    written: u64::MAX,
    lost_writer: u64::MAX,
    lost_history: u64::MAX,
    lost_ring: Some(u64::MAX),
    lost_nic: Some(u64::MAX),
};

/// Bytes of the longest name of a clock.
const CLOCK_BYTES: usize = 32;

fn comment_of(balance: &LossBalance, clock: &str) -> String {
    debug_assert!(clock.len() <= CLOCK_BYTES);
    format!("{balance}; stamps: {clock:.CLOCK_BYTES$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_as_long_as_was_announced_whatever_the_numbers_are() {
        for (ring, nic) in [(true, true), (true, false), (false, false)] {
            let measured = Measured { ring, nic };
            let mut balance = WIDEST;
            balance.lost_ring = Some(0);
            balance.seen = 0;
            let announced = length(measured);
            let written = |b: &LossBalance| block(measured, (1, 2), b, "kernel-realtime").len() as u64;
            assert_eq!(written(&balance), announced);
            balance.lost_nic = None;
            balance.lost_ring = None;
            assert_eq!(written(&balance), announced);
        }
    }
}
