//! AF_PACKET with a `TPACKET_V3` ring (Linux 4.20 and later). Needs CAP_NET_RAW, and CAP_NET_ADMIN for promiscuous mode.
//!
//! Frames that the node sends are included, as every sniffer does; on a loopback, where each frame would be seen
//! twice, only the received one is taken. A VLAN tag that the kernel took out is put back between the addresses
//! and the EtherType.

mod block;
mod blocks;
mod queue;

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use trawl_control::CaptureMode;

use super::device::{self, Link, set_option};
use super::nic_losses::NicLosses;
use super::{Guard, OpenError, Opened, RingOptions};
use crate::interface::NodeInterface;
pub use queue::PacketQueue;

const PACKET_IGNORE_OUTGOING: i32 = 23;

/// Bytes of a block. Large enough for any frame, and small because a link with little traffic fills none: each lasts
/// one timeout then, and the more there are, the longer the history.
pub(super) const BLOCK: usize = 128 << 10;
/// Blocks that the kernel has ahead of it, for all queues.
const RESERVE: usize = (16 << 20) / BLOCK;
/// And at least so many per queue.
const RESERVE_LEAST: usize = (4 << 20) / BLOCK;
/// What is received in a call stays for the visits that follow it.
const HISTORY_LEAST: usize = 2 * queue::BLOCKS_PER_CALL;

/// Opens the ring on a node's own interface: as many queues as threads were asked for, flows spread among them.
///
/// # Errors
/// See [`OpenError`].
pub fn open(interface: &NodeInterface, options: &RingOptions) -> Result<Opened<PacketQueue>, OpenError> {
    let name = interface.name.as_str();
    let found = device::link(&interface.name).map_err(|e| OpenError::at(name, "look at the link", e))?;
    let link = found.ok_or_else(|| OpenError::NoSuchInterface(name.into()))?;
    if !link.ethernet {
        return Err(OpenError::NotEthernet(name.into()));
    }
    let threads = options.node_threads.max(1) as usize;
    let share = usize::try_from(options.history_bytes).unwrap_or(usize::MAX) / BLOCK / threads;
    let history = share.clamp(HISTORY_LEAST, i32::MAX as usize / 2);
    let reserve = (RESERVE / threads).max(RESERVE_LEAST);
    let mut queues = Vec::with_capacity(threads);
    let mut group = None;
    for _ in 0..threads {
        let fd = closed_socket(link).map_err(|(step, e)| OpenError::at(name, step, e))?;
        let queue = PacketQueue::new(fd, history, reserve)
            .map_err(|e| OpenError::at(name, "set up the TPACKET_V3 ring", e))?;
        bind(queue.socket(), link.index, libc::ETH_P_ALL as u16)
            .map_err(|e| OpenError::at(name, "bind the AF_PACKET socket", e))?;
        if threads > 1 {
            group = Some(join(queue.socket(), group).map_err(|e| OpenError::at(name, "spread flows", e))?);
        }
        queues.push(queue);
    }
    let mut promiscuity = None;
    if interface.promiscuous {
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map_err(|e| OpenError::at(name, "open an AF_PACKET socket", e.into()))?;
        promiscuous(socket.as_fd(), link).map_err(|e| OpenError::at(name, "enter promiscuous mode", e))?;
        promiscuity = Some(socket);
    }
    if let (Some(first), Ok(losses)) = (queues.first_mut(), NicLosses::open(link.index)) {
        first.report_nic(losses);
    }
    for queue in &mut queues {
        queue
            .begin()
            .map_err(|e| OpenError::at(name, "begin to receive", e))?;
    }
    Ok(Opened {
        guard: Guard::of(promiscuity),
        queues,
        mode: CaptureMode::AfPacket,
        refusals: Vec::new(),
    })
}

/// A socket that takes nothing before [`open_socket`]: else each member of a group would receive everything until
/// it has joined.
fn closed_socket(link: Link) -> Result<OwnedFd, (&'static str, io::Error)> {
    // Protocol 0: nothing is queued before the ring stands and the socket is bound.
    let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)
        .map_err(|e| ("open an AF_PACKET socket", e.into()))?;
    if link.loopback {
        set_option(fd.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)
            .map_err(|e| ("leave out what is sent", e))?;
    }
    let mut nothing = libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: 0,
    };
    let program = libc::sock_fprog {
        len: 1,
        filter: &raw mut nothing,
    };
    set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
        .map_err(|e| ("hold back the AF_PACKET socket", e))?;
    Ok(fd)
}

/// Lets the socket take frames.
fn open_socket(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0i32)
}

/// Puts a bound socket into a group, or makes one with a number that no other group has; the number.
fn join(fd: BorrowedFd<'_>, group: Option<u16>) -> io::Result<u16> {
    let flags = libc::PACKET_FANOUT_HASH
        | if group.is_none() {
            libc::PACKET_FANOUT_FLAG_UNIQUEID
        } else {
            0
        };
    let option = (flags << 16) | u32::from(group.unwrap_or(0));
    set_option(fd, libc::SOL_PACKET, libc::PACKET_FANOUT, &option)?;
    let option: u32 = device::get_option(fd, libc::SOL_PACKET, libc::PACKET_FANOUT)?;
    Ok(option as u16)
}

pub(super) fn bind(fd: BorrowedFd<'_>, index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid sockaddr_ll, which is plain data.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index.cast_signed();
    // SAFETY: pointer and length describe `address`, which lives through the call.
    let result = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Lasts as long as the socket.
pub(super) fn promiscuous(fd: BorrowedFd<'_>, link: Link) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: link.index.cast_signed(),
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}
