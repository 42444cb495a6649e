//! One block of a `TPACKET_V3` ring, read and mended as plain bytes.

use std::mem::{offset_of, size_of};

const TAG: usize = 4;
const ADDRESSES: usize = 12;
const LINK_ADDRESS: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
const HEADER: usize = offset_of!(libc::tpacket_block_desc, hdr);
const VARIANT: usize = offset_of!(libc::tpacket3_hdr, hv1);
/// Room before each frame in which its addresses can move to make place for a tag.
pub(super) const RESERVE: usize = 16;

/// What the header of a block says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// Frames, also those of a loopback that are left out.
    pub frames: u32,
    /// Bytes of the block that are used, headers included.
    pub used: u32,
    /// Where the first frame's header is.
    pub first: usize,
    /// Stamp of the last frame, or of the moment at which an empty block was given up.
    pub last_ns: u64,
}

/// Reads the header of a block.
pub(super) fn summary(block: &[u8]) -> Option<Summary> {
    let word = |at: usize| u32_at(block, HEADER + at);
    let stamp = offset_of!(libc::tpacket_hdr_v1, ts_last_pkt);
    let (seconds, rest) = (word(stamp)?, word(stamp + 4)?);
    Some(Summary {
        frames: word(offset_of!(libc::tpacket_hdr_v1, num_pkts))?,
        used: word(offset_of!(libc::tpacket_hdr_v1, blk_len))?,
        first: word(offset_of!(libc::tpacket_hdr_v1, offset_to_first_pkt))? as usize,
        last_ns: u64::from(seconds) * 1_000_000_000 + u64::from(rest),
    })
}

/// A frame in a block, by its header (`tpacket3_hdr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// Where its header is.
    pub at: usize,
    /// Distance to the next header; 0 in the last one.
    pub next: usize,
    pub stamp_ns: u64,
    pub kept: usize,
    pub length: u32,
    /// Distance from the header to the frame.
    start: usize,
    status: u32,
}

impl Packet {
    /// Reads the header at a place in a block.
    pub fn read(block: &[u8], at: usize) -> Option<Self> {
        let header = block.get(at..)?;
        let word = |at| u32_at(header, at);
        let seconds = u64::from(word(offset_of!(libc::tpacket3_hdr, tp_sec))?);
        Some(Self {
            at,
            next: word(offset_of!(libc::tpacket3_hdr, tp_next_offset))? as usize,
            stamp_ns: seconds * 1_000_000_000 + u64::from(word(offset_of!(libc::tpacket3_hdr, tp_nsec))?),
            kept: word(offset_of!(libc::tpacket3_hdr, tp_snaplen))? as usize,
            length: word(offset_of!(libc::tpacket3_hdr, tp_len))?,
            start: usize::from(u16_at(header, offset_of!(libc::tpacket3_hdr, tp_mac))?),
            status: word(offset_of!(libc::tpacket3_hdr, tp_status))?,
        })
    }

    /// Whether this machine sent it.
    pub fn outgoing(&self, block: &[u8]) -> bool {
        let kind = self.at + LINK_ADDRESS + offset_of!(libc::sockaddr_ll, sll_pkttype);
        block.get(kind) == Some(&libc::PACKET_OUTGOING)
    }

    /// Its bytes; none when the header does not fit its block.
    pub fn bytes<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        let start = self.at + self.start;
        block.get(start..start + self.kept).unwrap_or(&[])
    }

    /// Puts back a tag that the kernel took out, and a stamp below `floor` up to it. What was mended once is as if it
    /// had arrived so.
    pub fn mend(&mut self, block: &mut [u8], floor: u64) {
        if self.stamp_ns < floor {
            self.stamp_ns = floor;
            let (seconds, rest) = (floor / 1_000_000_000, floor % 1_000_000_000);
            self.put(block, offset_of!(libc::tpacket3_hdr, tp_sec), seconds as u32);
            self.put(block, offset_of!(libc::tpacket3_hdr, tp_nsec), rest as u32);
        }
        if self.status & libc::TP_STATUS_VLAN_VALID != 0 {
            self.insert_tag(block);
        }
    }

    fn insert_tag(&mut self, block: &mut [u8]) {
        let start = self.at + self.start;
        if self.kept < ADDRESSES || self.start < TAG || start + ADDRESSES > block.len() {
            return;
        }
        let field = VARIANT + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tci);
        let tci = u32_at(block, self.at + field).unwrap_or(0) as u16;
        let field = VARIANT + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tpid);
        let known = self.status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let tpid = u16_at(block, self.at + field).filter(|_| known).unwrap_or(0x8100);
        block.copy_within(start..start + ADDRESSES, start - TAG);
        let tag = &mut block[start - TAG + ADDRESSES..start + ADDRESSES];
        tag[..2].copy_from_slice(&tpid.to_be_bytes());
        tag[2..].copy_from_slice(&tci.to_be_bytes());
        self.start -= TAG;
        self.kept += TAG;
        self.length += TAG as u32;
        self.status &= !libc::TP_STATUS_VLAN_VALID;
        let mac = self.at + offset_of!(libc::tpacket3_hdr, tp_mac);
        block[mac..mac + 2].copy_from_slice(&(self.start as u16).to_ne_bytes());
        self.put(
            block,
            offset_of!(libc::tpacket3_hdr, tp_snaplen),
            self.kept as u32,
        );
        self.put(block, offset_of!(libc::tpacket3_hdr, tp_len), self.length);
        self.put(block, offset_of!(libc::tpacket3_hdr, tp_status), self.status);
    }

    fn put(&self, block: &mut [u8], field: usize, value: u32) {
        let at = self.at + field;
        block[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
