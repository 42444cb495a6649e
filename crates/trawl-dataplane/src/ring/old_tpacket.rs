//! AF_PACKET with a `TPACKET_V3` ring (Linux 3.2 and later). Needs CAP_NET_RAW, and CAP_NET_ADMIN for promiscuous mode.
//!
//! Frames that the node sends are included, as every sniffer does; on a loopback, where each frame would be seen
//! twice, only the received one is taken. A VLAN tag that the kernel took out is put back between the addresses
//! and the EtherType.

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use trawl_control::CaptureMode;

use super::OpenError;
use super::device::{self, Link, set_option};
use crate::backend::{Backend, Frame, Losses};
use crate::interface::NodeInterface;

const BLOCK: usize = 1 << 20;
const BLOCKS: usize = 32;
const RETIRE_MS: u32 = 10;
const TAG: usize = 4;
/// Room before each frame in which its addresses can move to make place for a tag.
const RESERVE: u32 = 16;
const BLOCKS_PER_CALL: usize = 4;
const ADDRESSES: usize = 12;
const LINK_ADDRESS: usize = (size_of::<libc::tpacket3_hdr>()).next_multiple_of(libc::TPACKET_ALIGNMENT);

/// An open ring.
#[derive(Debug)]
pub struct PacketRing {
    fd: OwnedFd,
    map: Map,
    at: usize,
    dropped: u64,
    skip_outgoing: bool,
}

#[derive(Debug)]
struct Map(NonNull<u8>);

// SAFETY: the mapping belongs to this value alone and may be used from whichever thread holds it.
unsafe impl Send for Map {}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made in `open`, and nothing borrows from it any more.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), BLOCK * BLOCKS) };
    }
}

impl PacketRing {
    /// Opens the ring on a node's own interface.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(interface: &NodeInterface) -> Result<Self, OpenError> {
        let name = interface.name.as_str();
        let found = device::link(&interface.name).map_err(|e| OpenError::at(name, "look at the link", e))?;
        let link = found.ok_or_else(|| OpenError::NoSuchInterface(name.into()))?;
        if !link.ethernet {
            return Err(OpenError::NotEthernet(name.into()));
        }
        // Protocol 0: nothing is queued before the ring stands and the socket is bound.
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map_err(|e| OpenError::at(name, "open an AF_PACKET socket", e.into()))?;
        let map = set_up(fd.as_fd(), name)?;
        bind(fd.as_fd(), link.index, libc::ETH_P_ALL as u16)
            .map_err(|e| OpenError::at(name, "bind the AF_PACKET socket", e))?;
        if interface.promiscuous {
            promiscuous(fd.as_fd(), link).map_err(|e| OpenError::at(name, "enter promiscuous mode", e))?;
        }
        Ok(Self {
            fd,
            map,
            at: 0,
            dropped: 0,
            skip_outgoing: link.loopback,
        })
    }

    fn status(&self) -> &AtomicU32 {
        let place = self.at * BLOCK
            + offset_of!(libc::tpacket_block_desc, hdr)
            + offset_of!(libc::tpacket_hdr_v1, block_status);
        // SAFETY: `at` is below BLOCKS, so the word lies inside the mapping; it is aligned, and both sides of the
        // ring use it as the hand-over flag.
        unsafe { AtomicU32::from_ptr(self.map.0.as_ptr().add(place).cast()) }
    }

    /// Walks the block at hand, which must be ours; returns how many frames were in it.
    fn walk(&mut self, each: &mut impl FnMut(Frame<'_>)) -> usize {
        // SAFETY: the block lies inside the mapping, and between the acquire of its status and the release in the
        // caller the kernel does not touch it.
        let block =
            unsafe { std::slice::from_raw_parts_mut(self.map.0.as_ptr().add(self.at * BLOCK), BLOCK) };
        let header = offset_of!(libc::tpacket_block_desc, hdr);
        let word = |block: &[u8], at: usize| read_u32(block, header + at).unwrap_or(0);
        let packets = word(block, offset_of!(libc::tpacket_hdr_v1, num_pkts));
        let mut at = word(block, offset_of!(libc::tpacket_hdr_v1, offset_to_first_pkt)) as usize;
        let mut handed = 0;
        for _ in 0..packets {
            let Some(rest) = block.get_mut(at..) else { break };
            let Some(packet) = Packet::read(rest) else { break };
            let outgoing = rest.get(LINK_ADDRESS + offset_of!(libc::sockaddr_ll, sll_pkttype))
                == Some(&(libc::PACKET_OUTGOING));
            if !(self.skip_outgoing && outgoing) {
                packet.hand_over(rest, each);
            }
            handed += 1;
            at += packet.next;
            if packet.next == 0 {
                break;
            }
        }
        handed
    }
}

/// The fields of a `tpacket3_hdr` that are used.
struct Packet {
    next: usize,
    stamp_ns: u64,
    kept: usize,
    length: u32,
    start: usize,
    tag: Option<[u8; TAG]>,
}

impl Packet {
    fn read(bytes: &[u8]) -> Option<Self> {
        let word = |at| read_u32(bytes, at);
        let status = word(offset_of!(libc::tpacket3_hdr, tp_status))?;
        let variant = offset_of!(libc::tpacket3_hdr, hv1);
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let tci = word(variant + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tci)).unwrap_or(0) as u16;
            let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let tpid = read_u16(
                bytes,
                variant + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tpid),
            );
            let tpid = tpid.filter(|_| known).unwrap_or(0x8100);
            let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
            [a, b, c, d]
        });
        let seconds = u64::from(word(offset_of!(libc::tpacket3_hdr, tp_sec))?);
        Some(Self {
            next: word(offset_of!(libc::tpacket3_hdr, tp_next_offset))? as usize,
            stamp_ns: seconds * 1_000_000_000 + u64::from(word(offset_of!(libc::tpacket3_hdr, tp_nsec))?),
            kept: word(offset_of!(libc::tpacket3_hdr, tp_snaplen))? as usize,
            length: word(offset_of!(libc::tpacket3_hdr, tp_len))?,
            start: usize::from(read_u16(bytes, offset_of!(libc::tpacket3_hdr, tp_mac))?),
            tag,
        })
    }

    fn hand_over(&self, bytes: &mut [u8], each: &mut impl FnMut(Frame<'_>)) {
        let (mut start, mut kept, mut wire_length) = (self.start, self.kept, self.length);
        if let Some(tag) = self.tag
            && kept >= ADDRESSES
            && start >= TAG
            && bytes.len() >= start + ADDRESSES
        {
            bytes.copy_within(start..start + ADDRESSES, start - TAG);
            start -= TAG;
            bytes[start + ADDRESSES..start + ADDRESSES + TAG].copy_from_slice(&tag);
            kept += TAG;
            wire_length += TAG as u32;
        }
        if let Some(bytes) = bytes.get(start..start + kept) {
            each(Frame {
                bytes,
                wire_length,
                stamp_ns: self.stamp_ns,
            });
        }
    }
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Backend for PacketRing {
    fn receive(&mut self, each: &mut impl FnMut(Frame<'_>)) -> io::Result<usize> {
        let mut received = 0;
        for _ in 0..BLOCKS_PER_CALL {
            if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                break;
            }
            received += self.walk(each);
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.at = (self.at + 1) % BLOCKS;
        }
        Ok(received)
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn losses(&mut self) -> io::Result<Losses> {
        // The kernel's `tp_packets` includes the drops and both start anew with each reading.
        let stats: [u32; 3] = device::get_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        self.dropped += u64::from(stats[1]);
        Ok(Losses {
            ring: Some(self.dropped),
            nic: None,
        })
    }

    fn mode(&self) -> CaptureMode {
        CaptureMode::AfPacket
    }

    fn mode_refusals(&self) -> &[String] {
        &[]
    }

    fn clock_source(&self) -> &'static str {
        "kernel-realtime"
    }

    fn lag_ns(&self) -> u64 {
        // A block is handed over one to two timeouts after its first frame.
        u64::from(RETIRE_MS) * 3_000_000
    }
}

fn set_up(fd: BorrowedFd<'_>, name: &str) -> Result<Map, OpenError> {
    let step = "set up the TPACKET_V3 ring";
    let failed = |e| OpenError::at(name, step, e);
    let version = libc::tpacket_versions::TPACKET_V3 as i32;
    set_option(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version).map_err(failed)?;
    set_option(fd, libc::SOL_PACKET, libc::PACKET_RESERVE, &RESERVE).map_err(failed)?;
    let request = libc::tpacket_req3 {
        tp_block_size: BLOCK as u32,
        tp_block_nr: BLOCKS as u32,
        tp_frame_size: BLOCK as u32,
        tp_frame_nr: BLOCKS as u32,
        tp_retire_blk_tov: RETIRE_MS,
        tp_sizeof_priv: 0,
        tp_feature_req_word: 0,
    };
    set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request).map_err(failed)?;
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a fresh mapping at an address of the kernel's choice; nothing else uses it.
    let map = unsafe { mmap(std::ptr::null_mut(), BLOCK * BLOCKS, protection, flags, fd, 0) };
    let map = map.map_err(|e| failed(e.into()))?;
    NonNull::new(map.cast())
        .map(Map)
        .ok_or_else(|| failed(io::Error::other("mapped at address 0")))
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
