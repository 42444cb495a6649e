//! One block of a `TPACKET_V3` ring, read and mended as plain bytes.

use std::mem::offset_of;

const TAG: usize = 4;
const ADDRESSES: usize = 12;
const HEADER: usize = offset_of!(libc::tpacket_block_desc, hdr);
const VARIANT: usize = offset_of!(libc::tpacket3_hdr, hv1);
/// Room before each frame in which its addresses can move to make place for a tag.
pub(super) const RESERVE: usize = 16;

/// What the header of a block says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// Frames.
    pub frames: u32,
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
        first: word(offset_of!(libc::tpacket_hdr_v1, offset_to_first_pkt))? as usize,
        last_ns: u64::from(seconds) * 1_000_000_000 + u64::from(rest),
    })
}

/// Length of all frames on the wire. The block header has no such sum: what it has includes headers and padding.
pub(super) fn wire_bytes(block: &[u8], summary: &Summary) -> u64 {
    let (mut at, mut bytes) = (summary.first, 0);
    for _ in 0..summary.frames {
        let word = |field| u32_at(block, at + field).unwrap_or(0);
        let tagged = word(offset_of!(libc::tpacket3_hdr, tp_status)) & libc::TP_STATUS_VLAN_VALID != 0;
        bytes +=
            u64::from(word(offset_of!(libc::tpacket3_hdr, tp_len))) + if tagged { TAG as u64 } else { 0 };
        match word(offset_of!(libc::tpacket3_hdr, tp_next_offset)) {
            0 => break,
            next => at += next as usize,
        }
    }
    bytes
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

#[cfg(test)]
mod tests {
    use super::*;

    const START: usize = 96;

    /// A block with one frame, whose header is at 64 and whose bytes begin at 160.
    fn block(frame: &[u8], status: u32, tci: u32, tpid: u16) -> Vec<u8> {
        let mut block = vec![0; 64 + START + frame.len()];
        let mut put =
            |field: usize, value: u32| block[64 + field..68 + field].copy_from_slice(&value.to_ne_bytes());
        put(offset_of!(libc::tpacket3_hdr, tp_sec), 5);
        put(offset_of!(libc::tpacket3_hdr, tp_nsec), 6);
        put(offset_of!(libc::tpacket3_hdr, tp_snaplen), frame.len() as u32);
        put(offset_of!(libc::tpacket3_hdr, tp_len), frame.len() as u32);
        put(offset_of!(libc::tpacket3_hdr, tp_status), status);
        put(offset_of!(libc::tpacket3_hdr, tp_mac), START as u32);
        put(VARIANT + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tci), tci);
        let at = 64 + VARIANT + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tpid);
        block[at..at + 2].copy_from_slice(&tpid.to_ne_bytes());
        block[64 + START..].copy_from_slice(frame);
        block
    }

    #[test]
    fn a_tag_is_put_back_once() {
        let frame: Vec<u8> = (0..60).collect();
        let both = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        for (status, kind) in [(both, [0x88, 0xa8]), (libc::TP_STATUS_VLAN_VALID, [0x81, 0])] {
            let mut block = block(&frame, status, 0x0123, 0x88a8);
            let wanted = [&frame[..12], &kind, &[1, 0x23], &frame[12..]].concat();
            for _ in 0..3 {
                let mut packet = Packet::read(&block, 64).unwrap();
                packet.mend(&mut block, 0);
                assert_eq!(packet.bytes(&block), wanted);
                assert_eq!(
                    (packet.kept, packet.length, packet.stamp_ns),
                    (64, 64, 5_000_000_006)
                );
            }
        }
    }

    #[test]
    fn a_stamp_below_the_one_before_is_raised_for_all_who_read_it_later() {
        let mut block = block(&[0; 60], 0, 0, 0);
        Packet::read(&block, 64).unwrap().mend(&mut block, 5_000_000_006);
        assert_eq!(Packet::read(&block, 64).unwrap().stamp_ns, 5_000_000_006);
        Packet::read(&block, 64).unwrap().mend(&mut block, 7_100_000_000);
        assert_eq!(Packet::read(&block, 64).unwrap().stamp_ns, 7_100_000_000);
    }

    #[test]
    fn a_header_that_does_not_fit_its_block_yields_no_bytes() {
        let mut block = block(&[0; 60], libc::TP_STATUS_VLAN_VALID, 1, 0);
        block.truncate(64 + START + 5);
        let mut packet = Packet::read(&block, 64).unwrap();
        packet.mend(&mut block, 0);
        assert!(packet.bytes(&block).is_empty());
        assert_eq!(Packet::read(&block, 150), None);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn no_bytes_whatever_make_a_header_be_read_or_mended_outside_of_its_block(
            mut block in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
            at in 0usize..320,
            floor in proptest::prelude::any::<u64>(),
            small in proptest::prelude::any::<bool>(),
        ) {
            if small && let Some(field) = block.get_mut(at + offset_of!(libc::tpacket3_hdr, tp_mac)..) {
                // Offsets that may fit, as random ones hardly do.
                field.iter_mut().skip(1).take(1).for_each(|b| *b = 0);
            }
            if let Some(summary) = summary(&block) {
                let _ = wire_bytes(&block, &summary);
            }
            if let Some(mut packet) = Packet::read(&block, at) {
                packet.mend(&mut block, floor);
                let _ = packet.bytes(&block);
            }
        }
    }
}
