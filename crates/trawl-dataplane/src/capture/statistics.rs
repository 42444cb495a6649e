//! The closing block of a file: the balance in numbers and in words.

use trawl_control::LossBalance;

use crate::pcapng::{self, Statistics};

/// Which loss counters are measured: it decides how long the block is, and is settled when a capture begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measured {
    pub ring: bool,
    pub nic: bool,
}

/// The block for a capture from `start_ns` to `end_ns`. Its length depends on `measured` alone, since room for it is
/// kept from the beginning.
pub(crate) fn block(measured: Measured, start_ns: u64, end_ns: u64, balance: &LossBalance) -> Vec<u8> {
    let interface_dropped = balance.lost_nic.filter(|_| measured.nic);
    let os_dropped = balance.lost_ring.filter(|_| measured.ring);
    // A counter that failed meanwhile is left out, since 0 would be a claim; the comment fills its room.
    let absent = |wanted: bool, count: Option<u64>| usize::from(wanted && count.is_none()) * OPTION_BYTES;
    let room = absent(measured.nic, interface_dropped) + absent(measured.ring, os_dropped);
    let length = words(&WIDEST).len() + room;
    let comment = format!("{:length$}", words(balance));
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
    block(measured, 0, 0, &WIDEST).len() as u64
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

/// The balance as a sentence; absent is said to be absent.
fn words(b: &LossBalance) -> String {
    let measured = |n: Option<u64>| n.map_or_else(|| "not measured".to_owned(), |n| n.to_string());
    format!(
        "seen {} = matched {} + filtered {} + lost in history {}; matched {} = written {} + lost by the writer {}; \
         before that lost in the ring: {}, in the NIC: {}",
        b.seen,
        b.matched,
        b.filtered,
        b.lost_history,
        b.matched,
        b.written,
        b.lost_writer,
        measured(b.lost_ring),
        measured(b.lost_nic)
    )
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
            assert_eq!(block(measured, 1, 2, &balance).len() as u64, length(measured));
            balance.lost_nic = None;
            balance.lost_ring = None;
            assert_eq!(block(measured, 1, 2, &balance).len() as u64, length(measured));
        }
    }

    #[test]
    fn what_was_not_measured_is_not_called_zero() {
        let balance = LossBalance::default();
        assert!(words(&balance).ends_with("lost in the ring: not measured, in the NIC: not measured"));
    }
}
