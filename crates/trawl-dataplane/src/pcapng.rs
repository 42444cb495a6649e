//! pcapng blocks, little-endian. Source: draft-ietf-opsawg-pcapng.

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const ETHERNET: u16 = 1;
const NANOSECONDS: u8 = 9;
/// Bytes of an enhanced packet block around its padded data.
const PACKET_OVERHEAD: usize = 32;
/// Bytes of `epb_queue` and the end of the options.
const QUEUE_OPTIONS: usize = 12;

mod option {
    pub const END: u16 = 0;
    pub const COMMENT: u16 = 1;
    pub const SHB_OS: u16 = 3;
    pub const SHB_USERAPPL: u16 = 4;
    pub const EPB_QUEUE: u16 = 6;
    pub const IF_NAME: u16 = 2;
    pub const IF_SPEED: u16 = 8;
    pub const IF_TSRESOL: u16 = 9;
    pub const IF_FILTER: u16 = 11;
    pub const IF_OS: u16 = 12;
    pub const ISB_STARTTIME: u16 = 2;
    pub const ISB_ENDTIME: u16 = 3;
    pub const ISB_IFRECV: u16 = 4;
    pub const ISB_IFDROP: u16 = 5;
    pub const ISB_FILTERACCEPT: u16 = 6;
    pub const ISB_OSDROP: u16 = 7;
    pub const ISB_USRDELIV: u16 = 8;
}

/// What stands at the beginning of a file.
#[derive(Clone, Debug, Default)]
pub struct Header<'a> {
    /// Program and version.
    pub application: &'a str,
    /// Operating system and its version.
    pub os: &'a str,
    /// Who asked, and why.
    pub comments: &'a [String],
    /// Interface name.
    pub interface: &'a str,
    /// Bits per second, when known.
    pub speed: Option<u64>,
    /// The filter as it was asked for.
    pub filter: &'a str,
    /// Bytes kept of each packet; 0 for no limit.
    pub snaplen: u32,
}

/// The totals at the end of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics<'a> {
    /// The same in words, with what the numbers have no option for.
    pub comment: &'a str,
    /// Start of the capture, nanoseconds since the epoch.
    pub start_ns: u64,
    /// End of the capture.
    pub end_ns: u64,
    /// Frames that reached the interface as far as known.
    pub received: u64,
    /// Frames that the filter accepted.
    pub accepted: u64,
    /// Packets in the file.
    pub delivered: u64,
    /// Lost in the interface, when measured.
    pub interface_dropped: Option<u64>,
    /// Lost in the ring, when measured.
    pub os_dropped: Option<u64>,
}

struct Block {
    bytes: Vec<u8>,
}

impl Block {
    fn new(kind: u32) -> Self {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        Self { bytes }
    }

    fn put(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    fn option(mut self, code: u16, value: &[u8]) -> Self {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.bytes.extend(code.to_le_bytes());
        self.bytes.extend((value.len() as u16).to_le_bytes());
        self.bytes.extend(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    fn text(self, code: u16, text: &str) -> Self {
        if text.is_empty() {
            self
        } else {
            self.option(code, text.as_bytes())
        }
    }

    fn number(self, code: u16, number: Option<u64>) -> Self {
        match number {
            Some(n) => self.option(code, &n.to_le_bytes()),
            None => self,
        }
    }

    fn time(self, code: u16, ns: u64) -> Self {
        let value = [((ns >> 32) as u32).to_le_bytes(), (ns as u32).to_le_bytes()].concat();
        self.option(code, &value)
    }

    fn finish(self) -> Vec<u8> {
        let mut bytes = self.option(option::END, &[]).bytes;
        let length = (bytes.len() as u32 + 4).to_le_bytes();
        bytes[4..8].copy_from_slice(&length);
        bytes.extend(length);
        bytes
    }
}

/// Section header and interface description.
#[must_use]
pub fn header(header: &Header<'_>) -> Vec<u8> {
    let mut section = Block::new(SECTION)
        .put(&0x1a2b_3c4d_u32.to_le_bytes())
        .put(&1u16.to_le_bytes())
        .put(&0u16.to_le_bytes())
        .put(&u64::MAX.to_le_bytes());
    for comment in header.comments {
        section = section.text(option::COMMENT, comment);
    }
    let section = section
        .text(option::SHB_OS, header.os)
        .text(option::SHB_USERAPPL, header.application);
    let mut interface = Block::new(INTERFACE)
        .put(&ETHERNET.to_le_bytes())
        .put(&[0; 2])
        .put(&header.snaplen.to_le_bytes())
        .text(option::IF_NAME, header.interface)
        .number(option::IF_SPEED, header.speed)
        .option(option::IF_TSRESOL, &[NANOSECONDS]);
    if !header.filter.is_empty() {
        interface = interface.option(option::IF_FILTER, &[b"\0", header.filter.as_bytes()].concat());
    }
    let interface = interface.text(option::IF_OS, header.os);
    [section.finish(), interface.finish()].concat()
}

/// Length of the block of a packet of which `kept` bytes are kept.
#[must_use]
#[inline]
pub fn packet_length(kept: usize, queue: Option<u32>) -> usize {
    let options = if queue.is_some() { QUEUE_OPTIONS } else { 0 };
    PACKET_OVERHEAD + kept.next_multiple_of(4) + options
}

/// Appends what stands before the bytes of a packet. The block is complete with the bytes and [`packet_tail`].
#[inline]
pub fn packet_head(out: &mut Vec<u8>, stamp_ns: u64, kept: usize, wire_length: u32, queue: Option<u32>) {
    let length = packet_length(kept, queue) as u32;
    let mut head = [0u8; PACKET_OVERHEAD - 4];
    head[0..4].copy_from_slice(&ENHANCED_PACKET.to_le_bytes());
    head[4..8].copy_from_slice(&length.to_le_bytes());
    head[12..16].copy_from_slice(&((stamp_ns >> 32) as u32).to_le_bytes());
    head[16..20].copy_from_slice(&(stamp_ns as u32).to_le_bytes());
    head[20..24].copy_from_slice(&(kept as u32).to_le_bytes());
    head[24..28].copy_from_slice(&wire_length.to_le_bytes());
    out.extend_from_slice(&head);
}

/// Appends what stands behind the bytes of a packet: padding, its queue when there are several, its length.
#[inline]
pub fn packet_tail(out: &mut Vec<u8>, kept: usize, queue: Option<u32>) {
    let padding = kept.next_multiple_of(4) - kept;
    out.extend_from_slice(&[0; 3][..padding]);
    if let Some(queue) = queue {
        let mut options = [0u8; QUEUE_OPTIONS];
        options[0..2].copy_from_slice(&option::EPB_QUEUE.to_le_bytes());
        options[2..4].copy_from_slice(&4u16.to_le_bytes());
        options[4..8].copy_from_slice(&queue.to_le_bytes());
        out.extend_from_slice(&options);
    }
    out.extend_from_slice(&(packet_length(kept, queue) as u32).to_le_bytes());
}

/// The interface statistics block. Its length depends only on the comment's and on which losses were measured.
#[must_use]
pub fn statistics(s: &Statistics<'_>) -> Vec<u8> {
    Block::new(STATISTICS)
        .put(&0u32.to_le_bytes())
        .put(&((s.end_ns >> 32) as u32).to_le_bytes())
        .put(&(s.end_ns as u32).to_le_bytes())
        .text(option::COMMENT, s.comment)
        .time(option::ISB_STARTTIME, s.start_ns)
        .time(option::ISB_ENDTIME, s.end_ns)
        .number(option::ISB_IFRECV, Some(s.received))
        .number(option::ISB_IFDROP, s.interface_dropped)
        .number(option::ISB_FILTERACCEPT, Some(s.accepted))
        .number(option::ISB_OSDROP, s.os_dropped)
        .number(option::ISB_USRDELIV, Some(s.delivered))
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(out: &mut Vec<u8>, bytes: &[u8], queue: Option<u32>) {
        packet_head(out, 1_700_000_000_123_456_789, bytes.len(), 1500, queue);
        out.extend_from_slice(bytes);
        packet_tail(out, bytes.len(), queue);
    }

    #[test]
    fn blocks_are_aligned_and_carry_their_length_at_both_ends() {
        let mut file = header(&Header {
            application: "trawl",
            os: "Linux",
            comments: &["why".into()],
            interface: "eth1",
            speed: Some(10_000_000_000),
            filter: "tcp",
            snaplen: 0,
        });
        whole(&mut file, b"12345", Some(3));
        file.extend(statistics(&Statistics::default()));
        let mut rest = &file[..];
        let mut kinds = Vec::new();
        while !rest.is_empty() {
            let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(rest[length - 4..length], rest[4..8]);
            kinds.push(u32::from_le_bytes(rest[..4].try_into().unwrap()));
            rest = &rest[length..];
        }
        assert_eq!(kinds, [SECTION, INTERFACE, ENHANCED_PACKET, STATISTICS]);
    }

    #[test]
    fn the_announced_length_of_a_packet_is_the_written_one() {
        for (kept, queue) in (0..70).flat_map(|kept| [(kept, None), (kept, Some(1))]) {
            let mut out = Vec::new();
            whole(&mut out, &vec![7; kept], queue);
            assert_eq!(out.len(), packet_length(kept, queue));
        }
    }
}
