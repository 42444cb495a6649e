//! Frames that the NIC or its driver lost, by rtnetlink (`RTM_GETLINK`, `IFLA_STATS64`).

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

const ATTRIBUTES: usize = size_of::<libc::nlmsghdr>() + size_of::<Link>();
const ATTRIBUTE_HEADER: usize = 4;
// Fields of `struct rtnl_link_stats64`, each a u64.
const RX_OVER_ERRORS: usize = 11;
const RX_FIFO_ERRORS: usize = 14;
const RX_MISSED_ERRORS: usize = 15;

/// `struct ifinfomsg`.
#[repr(C)]
struct Link {
    family: u8,
    padding: u8,
    kind: u16,
    index: i32,
    flags: u32,
    change: u32,
}

/// An interface's counters since this was opened, also when the thread moves to another network namespace.
#[derive(Debug)]
pub(super) struct NicLosses {
    socket: OwnedFd,
    index: u32,
    before: u64,
    answer: Vec<u8>,
}

impl NicLosses {
    /// Begins to count.
    pub fn open(index: u32) -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let mut losses = Self {
            socket,
            index,
            before: 0,
            answer: vec![0; 32 << 10],
        };
        losses.before = losses.total()?;
        Ok(losses)
    }

    /// Frames lost since; none when the kernel does not tell any more, or began anew.
    pub fn read(&mut self) -> Option<u64> {
        self.total().ok()?.checked_sub(self.before)
    }

    fn total(&mut self) -> io::Result<u64> {
        // What an earlier question left unread must not be taken for the answer.
        while rustix::net::recv(&self.socket, &mut self.answer[..], RecvFlags::DONTWAIT).is_ok() {}
        rustix::net::send(&self.socket, &question(self.index), SendFlags::empty())?;
        // The kernel answers in the call above.
        let (length, _) = rustix::net::recv(&self.socket, &mut self.answer[..], RecvFlags::DONTWAIT)?;
        lost(&self.answer[..length]).ok_or_else(|| io::Error::other("the kernel does not tell"))
    }
}

fn question(index: u32) -> [u8; ATTRIBUTES] {
    let mut message = [0; ATTRIBUTES];
    let mut put = |at: usize, bytes: &[u8]| message[at..at + bytes.len()].copy_from_slice(bytes);
    put(
        offset_of!(libc::nlmsghdr, nlmsg_len),
        &(ATTRIBUTES as u32).to_ne_bytes(),
    );
    put(
        offset_of!(libc::nlmsghdr, nlmsg_type),
        &libc::RTM_GETLINK.to_ne_bytes(),
    );
    put(
        offset_of!(libc::nlmsghdr, nlmsg_flags),
        &(libc::NLM_F_REQUEST as u16).to_ne_bytes(),
    );
    put(
        size_of::<libc::nlmsghdr>() + offset_of!(Link, index),
        &index.to_ne_bytes(),
    );
    message
}

/// Missed by the NIC, or over its buffers.
fn lost(answer: &[u8]) -> Option<u64> {
    let kind = offset_of!(libc::nlmsghdr, nlmsg_type);
    if u16::from_ne_bytes(*answer.get(kind..)?.first_chunk()?) != libc::RTM_NEWLINK {
        return None;
    }
    let statistics = attribute(answer.get(ATTRIBUTES..)?, libc::IFLA_STATS64)?;
    let field = |n: usize| Some(u64::from_ne_bytes(*statistics.get(8 * n..)?.first_chunk()?));
    // Some drivers show one event as both, so that their sum would count it twice.
    let overrun = field(RX_FIFO_ERRORS)?.max(field(RX_OVER_ERRORS)?);
    Some(field(RX_MISSED_ERRORS)? + overrun)
}

fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*attributes.first_chunk()?));
        let kind = u16::from_ne_bytes(*attributes.get(2..)?.first_chunk()?);
        let value = attributes.get(ATTRIBUTE_HEADER..length)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An answer with one attribute before the counters.
    fn answer(missed: u64, fifo: u64, over: u64) -> Vec<u8> {
        let mut counters = vec![0u8; 25 * 8];
        for (field, value) in [
            (RX_MISSED_ERRORS, missed),
            (RX_FIFO_ERRORS, fifo),
            (RX_OVER_ERRORS, over),
        ] {
            counters[8 * field..8 * field + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let mut answer = vec![0; ATTRIBUTES];
        answer[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
        for (kind, value) in [(3, &b"eth0\0"[..]), (libc::IFLA_STATS64, &counters)] {
            answer.extend((ATTRIBUTE_HEADER as u16 + value.len() as u16).to_ne_bytes());
            answer.extend(kind.to_ne_bytes());
            answer.extend(value);
            answer.resize(answer.len().next_multiple_of(4), 0);
        }
        answer
    }

    #[test]
    fn what_a_driver_shows_twice_is_counted_once() {
        assert_eq!(lost(&answer(5, 3, 3)), Some(8));
        assert_eq!(lost(&answer(0, 0, 7)), Some(7));
    }

    #[test]
    fn no_counters_are_unknown_and_not_zero() {
        let whole = answer(5, 3, 3);
        assert_eq!(lost(&whole[..whole.len() - 100]), None);
        assert_eq!(lost(&[]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_answer_whatever_is_read_beyond_its_end(bytes in prop::collection::vec(any::<u8>(), 0..200), newlink: bool) {
            let mut bytes = bytes;
            if newlink && bytes.len() > 6 {
                bytes[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
            }
            let _ = lost(&bytes);
        }
    }
}
