//! Frames that the NIC or its driver lost.

use crate::netlink::{Netlink, Refusal, link};

/// An interface's counters since this was opened, also when the thread moves to another network namespace.
#[derive(Debug)]
pub(super) struct NicLosses {
    netlink: Netlink,
    index: u32,
    before: u64,
}

impl NicLosses {
    /// Begins to count.
    pub fn open(index: u32) -> Result<Self, Refusal> {
        let mut losses = Self {
            netlink: Netlink::route()?,
            index,
            before: 0,
        };
        losses.before = losses.total().ok_or(rustix::io::Errno::NODATA)?;
        Ok(losses)
    }

    /// Frames lost since; none when the kernel does not tell any more, or began anew.
    pub fn read(&mut self) -> Option<u64> {
        self.total()?.checked_sub(self.before)
    }

    fn total(&mut self) -> Option<u64> {
        link::by_index(&mut self.netlink, self.index).ok()?.lost
    }
}
