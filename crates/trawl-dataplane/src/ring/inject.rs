//! Sends frames out of an interface as they are: the other end of tests and measurements. Needs CAP_NET_RAW.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socket_with};

use super::device;
use super::tpacket;
use crate::interface::InterfaceName;

const MANY: usize = 64;

/// A socket that sends out of one interface.
#[derive(Debug)]
pub struct Injector(OwnedFd);

impl Injector {
    /// Opens the socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// What the system says; no such interface is `NotFound`.
    pub fn open(name: &InterfaceName) -> io::Result<Self> {
        let link = device::link(name)?.ok_or(io::ErrorKind::NotFound)?;
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        tpacket::bind(socket.as_fd(), link.index, 0)?;
        Ok(Self(socket))
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// What the system says.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.0, frame, SendFlags::empty())?;
        Ok(())
    }

    /// Sends the same frame up to 64 times in one call; returns how often.
    ///
    /// # Errors
    /// What the system says.
    pub fn send_many(&self, frame: &[u8], count: usize) -> io::Result<usize> {
        let mut part = libc::iovec {
            iov_base: frame.as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        };
        // SAFETY: all-zero bytes are a valid message header, which is plain data.
        let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        message.msg_hdr.msg_iov = &raw mut part;
        message.msg_hdr.msg_iovlen = 1;
        let mut messages = [message; MANY];
        let count = count.min(MANY) as u32;
        // SAFETY: each message points to one part that points to `frame`; all live through the call, and the
        // kernel only reads the frame.
        let sent = unsafe { libc::sendmmsg(self.0.as_raw_fd(), messages.as_mut_ptr(), count, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}
