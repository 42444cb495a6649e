//! How much memory a queue gets, and in what pieces.

/// Bytes that the kernel keeps free at the start of each buffer.
pub(super) const KERNEL_HEADROOM: usize = 256;
/// Bytes between that and the frame: the stamp lies there, on the cache line where the frame begins.
pub(super) const HEADROOM: usize = super::super::bpf::STAMP_BYTES;
/// Ethernet header and two VLAN tags.
const LINK_BYTES: usize = 14 + 8;
/// Larger frames do not fit beside the driver's own data in a page, so that veth, for one, refuses a program that
/// knows one buffer only.
const ONE_PAGE: usize = 3500;
/// What the length of a buffer is rounded down to by NICs whose registers count in these bytes. They would cut longer
/// frames in two, and zero-copy drivers of them pass the halves on as two frames (Linux 7.3, igb).
const KIB_DRIVERS: [&str; 3] = ["igb", "igc", "ixgbe"];
const KIB: usize = 1024;
/// The coarsest unit of the others.
const UNIT: usize = 128;
/// Memory that stays with the kernel to receive into, for all queues.
const RESERVE_BYTES: usize = 32 << 20;
/// Buffers of all queues that are not saved on however small the history.
const RESERVE_SMALL: usize = 8192;
/// And at least so many buffers per queue: 4 ms at a million frames a second.
const RESERVE_LEAST: usize = 4096;

/// Buffers received per call at most.
pub(super) const BATCH: usize = 2048;
/// What is received in a call stays for the visits that follow it, while as much is held.
const HISTORY_LEAST: usize = 2 * BATCH;

/// The memory of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Bytes of a buffer: 2048 or 4096.
    pub bytes: usize,
    /// Whether a frame may need more than one.
    pub several_buffers: bool,
    /// Buffers that stay with the kernel; a power of two, since the rings have that size.
    pub reserve: usize,
    /// Buffers of the history.
    pub history: usize,
}

impl Plan {
    /// For one of `queues` queues of an interface, which share the bytes of the history. `driver` is its name, or
    /// empty.
    pub fn new(mtu: u32, driver: &str, history_bytes: u64, queues: u32) -> Self {
        let frame = mtu as usize + LINK_BYTES;
        let unit = if KIB_DRIVERS.contains(&driver) { KIB } else { UNIT };
        let room = |bytes| (bytes - HEADROOM - KERNEL_HEADROOM) / unit * unit;
        let bytes = if frame <= room(2048) { 2048 } else { 4096 };
        let queues = queues.max(1) as usize;
        let share = usize::try_from(history_bytes).unwrap_or(usize::MAX) / bytes / queues;
        let history = share.clamp(HISTORY_LEAST, u32::MAX as usize / 2);
        let reserve = RESERVE_BYTES / bytes / queues;
        // A small history says that memory is dear, but a loss that a few MiB would have spared is dearer.
        let reserve = reserve.min(history.max(RESERVE_SMALL / queues));
        let reserve = reserve.max(RESERVE_LEAST).next_power_of_two();
        Self {
            bytes,
            several_buffers: frame > ONE_PAGE.min(room(4096)),
            reserve,
            history,
        }
    }

    /// Entries of the fill ring. The kernel shows what it received before it shows the entries that it took for
    /// that as free, so that there must be more of them than buffers.
    pub fn fill_entries(&self) -> usize {
        2 * self.reserve
    }

    /// All buffers.
    pub fn buffers(&self) -> usize {
        self.reserve + self.history
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_the_mtu_with_two_tags_fits_into_its_buffers() {
        for (mtu, bytes, several) in [
            (1500, 2048, false),
            (1642, 2048, false),
            (1643, 4096, false),
            (3478, 4096, false),
            (3479, 4096, true),
            (9000, 4096, true),
        ] {
            let plan = Plan::new(mtu, "veth", 64 << 20, 1);
            assert_eq!((plan.bytes, plan.several_buffers), (bytes, several), "{mtu}");
        }
    }

    #[test]
    fn a_nic_that_counts_its_buffers_in_kib_gets_those_that_hold_a_whole_frame() {
        for driver in ["igb", "igc", "ixgbe"] {
            assert_eq!(Plan::new(1500, driver, 64 << 20, 1).bytes, 4096, "{driver}");
            assert_eq!(Plan::new(1002, driver, 64 << 20, 1).bytes, 2048, "{driver}");
            assert!(!Plan::new(3050, driver, 64 << 20, 1).several_buffers, "{driver}");
            assert!(Plan::new(3051, driver, 64 << 20, 1).several_buffers, "{driver}");
        }
    }

    #[test]
    fn queues_share_the_history_and_each_keeps_a_reserve() {
        let one = Plan::new(1500, "", 256 << 20, 1);
        assert_eq!((one.history, one.reserve), (131_072, 16_384));
        let four = Plan::new(1500, "", 256 << 20, 4);
        assert_eq!((four.history, four.reserve), (32_768, 4_096));
        let tiny = Plan::new(1500, "", 0, 1);
        assert_eq!((tiny.history, tiny.reserve), (4_096, 8_192));
    }
}
