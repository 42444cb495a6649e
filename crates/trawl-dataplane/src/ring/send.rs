//! Sends batches out of an interface straight from the receive memory, many frames per system call.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::device::set_option;
use super::tpacket;
use crate::batch::Batch;

/// Frames per system call.
const MANY: usize = 64;
const NS_GET_NSTYPE: libc::c_ulong = 0xb703;

/// A packet socket that only sends, past the queueing discipline.
#[derive(Debug)]
pub(crate) struct Sender(OwnedFd);

impl Sender {
    /// A socket on the interface of this index, in the network namespace of the calling thread.
    pub(crate) fn open(index: u32) -> io::Result<Self> {
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)?;
        tpacket::bind(fd.as_fd(), index, 0)?;
        Ok(Self(fd))
    }

    /// Sends some of the packets of the batch, from the one of this number on, without waiting. Returns how many, at
    /// least one; an error is about the first of them.
    pub(crate) fn send(&self, batch: &Batch, from: usize) -> io::Result<usize> {
        let packets = &batch.packets[from..][..MANY.min(batch.packets.len() - from)];
        let (mut parts, mut lengths) = (Vec::with_capacity(MANY), [0; MANY]);
        for (packet, length) in packets.iter().zip(&mut lengths) {
            let before = parts.len();
            parts.extend(batch.parts(packet).map(|part| libc::iovec {
                iov_base: part.as_ptr().cast_mut().cast(),
                iov_len: part.len(),
            }));
            *length = parts.len() - before;
        }
        // SAFETY: all-zero bytes are a valid message header, which is plain data.
        let mut messages: [libc::mmsghdr; MANY] = unsafe { std::mem::zeroed() };
        let mut at = 0;
        for (message, length) in messages.iter_mut().zip(&lengths[..packets.len()]) {
            message.msg_hdr.msg_iov = parts[at..].as_mut_ptr();
            message.msg_hdr.msg_iovlen = *length as _;
            at += length;
        }
        let (count, flags) = (packets.len() as u32, libc::MSG_DONTWAIT);
        // SAFETY: `count` messages point into `parts`, whose entries point to bytes that `batch` keeps; all of them
        // live through the call and do not move, and the kernel only reads the bytes.
        let sent = unsafe { libc::sendmmsg(self.0.as_raw_fd(), messages.as_mut_ptr(), count, flags as _) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// Whether a descriptor is of a network namespace. Only for descriptors on nsfs, where this request has this meaning.
pub(crate) fn is_network_namespace(fd: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: this request takes no argument and touches no memory.
    let kind = unsafe { libc::ioctl(fd.as_raw_fd(), NS_GET_NSTYPE as _) };
    if kind < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(kind == libc::CLONE_NEWNET)
    }
}
