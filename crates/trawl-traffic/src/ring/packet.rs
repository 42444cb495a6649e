//! AF_PACKET: exactly the frames that are given, each in its turn. Needs CAP_NET_RAW.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Frames given to the kernel in one call.
pub const BATCH: usize = 64;
const PACKET_QDISC_BYPASS: i32 = 20;

/// Kernel index of an interface in the network namespace of the calling thread.
pub(crate) fn index_of(interface: &str) -> io::Result<u32> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::netdevice::name_to_index(&socket, interface).map_err(|error| {
        let why = format!("interface {interface} cannot be found in this network namespace: {error}");
        io::Error::new(io::ErrorKind::NotFound, why)
    })
}

/// A socket that sends out of one interface.
#[derive(Debug)]
pub struct PacketSender(OwnedFd);

impl PacketSender {
    /// Opens the socket in the network namespace of the calling thread. With `bypass` frames go straight to the driver, which
    /// drops those that it has no room for; without it the interface's queueing discipline decides, and waits if it can.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(interface: &str, bypass: bool) -> io::Result<Self> {
        let index = index_of(interface)?;
        // Protocol 0: the socket never receives.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        if bypass {
            set_bypass(&socket)?;
        }
        bind(&socket, index)?;
        Ok(Self(socket))
    }

    /// Sends all frames, in order; waits while the interface has no room.
    ///
    /// # Errors
    /// What the system says, such as a frame longer than the MTU allows.
    pub fn send(&self, frames: &[&[u8]]) -> io::Result<()> {
        for frames in frames.chunks(BATCH) {
            let mut rest = frames;
            while !rest.is_empty() {
                match self.send_some(rest) {
                    Ok(sent) => rest = &rest[sent..],
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                        std::thread::sleep(Duration::from_micros(50));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn send_some(&self, frames: &[&[u8]]) -> io::Result<usize> {
        let part = |frame: &&[u8]| libc::iovec {
            iov_base: frame.as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        };
        let mut parts: Vec<libc::iovec> = frames.iter().map(part).collect();
        let message = |part: &mut libc::iovec| {
            // SAFETY: all-zero bytes are a valid message header, which is plain data.
            let mut message: libc::mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message
        };
        let mut messages: Vec<libc::mmsghdr> = parts.iter_mut().map(message).collect();
        let count = messages.len() as u32;
        // SAFETY: each message points to one part that points to a frame; all live through the call, and the kernel only
        // reads the frames.
        let sent = unsafe { libc::sendmmsg(self.0.as_raw_fd(), messages.as_mut_ptr(), count, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

fn set_bypass(socket: &OwnedFd) -> io::Result<()> {
    let on: i32 = 1;
    // SAFETY: the pointer and the length describe `on`, which lives through the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            PACKET_QDISC_BYPASS,
            (&raw const on).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn bind(socket: &impl AsFd, index: u32) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid address, which is plain data.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index.cast_signed();
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `address`, which lives through the call.
    let result = unsafe { libc::bind(socket.as_fd().as_raw_fd(), (&raw const address).cast(), length) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
