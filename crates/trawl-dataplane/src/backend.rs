//! What every receive ring offers.

use std::io;
use std::os::fd::BorrowedFd;

use trawl_control::CaptureMode;

/// A received frame, still in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The bytes from the Ethernet header on, VLAN tags in their places.
    pub bytes: &'a [u8],
    /// Length on the wire, without checksum; `bytes` may be shorter.
    pub wire_length: u32,
    /// When it was received, in nanoseconds since the epoch.
    pub stamp_ns: u64,
}

/// Totals of frames that never came out of the ring, since it was opened. `None` is "not measured".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Ring full, or no free frame to receive into.
    pub ring: Option<u64>,
    /// Lost in the NIC or driver.
    pub nic: Option<u64>,
}

/// A receive ring on one interface.
pub trait Backend: Send + 'static {
    /// Hands over what has arrived, in order, up to a bounded amount; returns how many frames that were. Never waits.
    ///
    /// # Errors
    /// What the system says when the ring is broken for now.
    fn receive(&mut self, each: &mut impl FnMut(Frame<'_>)) -> io::Result<usize>;

    /// Becomes readable when frames arrive.
    fn poll_fd(&self) -> BorrowedFd<'_>;

    /// Reads the loss counters.
    ///
    /// # Errors
    /// What the system says.
    fn losses(&mut self) -> io::Result<Losses>;

    /// How frames arrive, as read back from the socket.
    fn mode(&self) -> CaptureMode;

    /// Why each better mode was refused.
    fn mode_refusals(&self) -> &[String];

    /// Where stamps come from.
    fn clock_source(&self) -> &'static str;

    /// How long after its stamp a frame may stay invisible, in nanoseconds.
    fn lag_ns(&self) -> u64;
}
