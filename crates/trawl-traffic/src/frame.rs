//! Numbered frames: how they are made, and how they are told from others.
//!
//! Every frame is UDP over IPv4 in the benchmark network 198.18.0.0/15 (RFC 2544). Its payload begins with
//! [`MAGIC`], the stream (u16), the number (u64) and a check (u32), all big-endian; a pattern fills the rest. The check is the
//! CRC-32 of all but number and check, XORed with both halves of the number, so that a program of a few
//! instructions can renumber a frame.

/// First bytes of the payload.
pub const MAGIC: [u8; 4] = *b"TRWL";
/// Bytes of the payload that carry the number.
pub const MARK_BYTES: usize = 18;
/// Destination port of ordinary frames.
pub const PORT: u16 = 9000;
/// Destination port of the frames that a needle filter is to find: `udp port 9999`.
pub const NEEDLE_PORT: u16 = 9999;
/// Source port of the first flow.
pub const FIRST_SOURCE_PORT: u16 = 20_000;
/// Largest frame that can be made, without checksum.
pub const MAX_FRAME: usize = 65_000;

const NUMBER_AT: usize = 6;
const CHECK_AT: usize = 14;
const VXLAN_PORT: u16 = 4789;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

/// What lies between the Ethernet addresses and the IPv4 header that carries the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encapsulation {
    /// Nothing.
    #[default]
    None,
    /// One 802.1Q tag.
    Vlan(u16),
    /// An 802.1ad tag and an 802.1Q tag in it.
    QinQ(u16, u16),
    /// The whole frame in VXLAN of this network identifier.
    Vxlan(u32),
}

impl Encapsulation {
    /// Bytes that it adds to a frame.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Vlan(_) => 4,
            Self::QinQ(..) => 8,
            Self::Vxlan(_) => 50,
        }
    }
}

/// What all frames of a stream have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Tells this stream from others in the same file.
    pub stream: u16,
    /// UDP flows that the frames alternate between, at least 1.
    pub flows: u16,
    /// Every how manieth frame goes to [`NEEDLE_PORT`]; 0 for none.
    pub needle_every: u32,
    /// Tags and tunnels.
    pub encapsulation: Encapsulation,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            stream: 0,
            flows: 1,
            needle_every: 0,
            encapsulation: Encapsulation::None,
        }
    }
}

/// A size that no frame can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of this kind has {least} to {MAX_FRAME} bytes without checksum, not {size}")]
pub struct BadSize {
    /// What was asked for.
    pub size: usize,
    /// The smallest that carries a number.
    pub least: usize,
}

/// A frame of one size that is given its number by [`Template::number`].
#[derive(Clone, Debug)]
pub struct Template {
    pub(crate) bytes: Vec<u8>,
    pub(crate) payload_at: usize,
    pub(crate) crc: u32,
    shape: Shape,
}

impl Template {
    /// A frame of `size` bytes, without checksum, all headers and tags included.
    ///
    /// # Errors
    /// When a frame of this shape cannot be that small or that large.
    pub fn new(shape: Shape, size: usize) -> Result<Self, BadSize> {
        let payload_at = 42 + shape.encapsulation.bytes();
        let least = payload_at + MARK_BYTES;
        if !(least..=MAX_FRAME).contains(&size) {
            return Err(BadSize { size, least });
        }
        let mut bytes = Vec::with_capacity(size);
        put_ethernet(&mut bytes, shape.encapsulation, size);
        put_udp(&mut bytes, size, FIRST_SOURCE_PORT, PORT);
        debug_assert_eq!(bytes.len(), payload_at);
        bytes.extend(MAGIC);
        bytes.extend(shape.stream.to_be_bytes());
        bytes.extend([0; MARK_BYTES - NUMBER_AT]);
        bytes.extend((MARK_BYTES..size - payload_at).map(|i| (i as u8).wrapping_mul(7)));
        let crc = checksum(&bytes[payload_at..]);
        Ok(Self {
            bytes,
            payload_at,
            crc,
            shape,
        })
    }

    /// Bytes of the frame.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Where the fields are, of two bytes each, that differ between frames of two sizes.
    pub(crate) fn size_fields(&self) -> Vec<usize> {
        let fields = |payload_at| [payload_at - 26, payload_at - 18, payload_at - 4];
        match self.shape.encapsulation {
            Encapsulation::Vxlan(_) => [fields(42), fields(self.payload_at)].concat(),
            _ => fields(self.payload_at).to_vec(),
        }
    }

    /// The frame with this number.
    pub fn number(&mut self, number: u64) -> &[u8] {
        let (flows, every) = (
            u64::from(self.shape.flows.max(1)),
            u64::from(self.shape.needle_every),
        );
        let source = FIRST_SOURCE_PORT.wrapping_add((number % flows) as u16);
        let needle = every > 0 && number.is_multiple_of(every);
        let target = if needle { NEEDLE_PORT } else { PORT };
        let at = self.payload_at;
        self.bytes[at - 8..at - 6].copy_from_slice(&source.to_be_bytes());
        self.bytes[at - 6..at - 4].copy_from_slice(&target.to_be_bytes());
        let check = self.crc ^ fold(number);
        self.bytes[at + NUMBER_AT..at + CHECK_AT].copy_from_slice(&number.to_be_bytes());
        self.bytes[at + CHECK_AT..at + MARK_BYTES].copy_from_slice(&check.to_be_bytes());
        &self.bytes
    }
}

fn put_ethernet(out: &mut Vec<u8>, encapsulation: Encapsulation, size: usize) {
    out.extend(MACS);
    match encapsulation {
        Encapsulation::None => {}
        Encapsulation::Vlan(tag) => put_tag(out, 0x8100, tag),
        Encapsulation::QinQ(outer, inner) => {
            put_tag(out, 0x88a8, outer);
            put_tag(out, 0x8100, inner);
        }
        Encapsulation::Vxlan(network) => {
            out.extend(ETHERTYPE_IPV4);
            put_udp(out, size, FIRST_SOURCE_PORT, VXLAN_PORT);
            out.extend([0x08, 0, 0, 0]);
            out.extend((network << 8).to_be_bytes());
            out.extend(MACS);
        }
    }
    out.extend(ETHERTYPE_IPV4);
}

fn put_tag(out: &mut Vec<u8>, ethertype: u16, tag: u16) {
    out.extend(ethertype.to_be_bytes());
    out.extend((tag & 0x0fff).to_be_bytes());
}

/// IPv4 and UDP headers whose packet ends at `size` of the whole frame.
fn put_udp(out: &mut Vec<u8>, size: usize, source: u16, target: u16) {
    let length = (size - out.len()) as u16;
    let mut ip = [
        0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 19, 0, 1,
    ];
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    let sum = ipv4_checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    out.extend(ip);
    out.extend(source.to_be_bytes());
    out.extend(target.to_be_bytes());
    out.extend((length - 20).to_be_bytes());
    out.extend([0, 0]);
}

fn ipv4_checksum(header: &[u8]) -> u16 {
    let sum: u32 = header
        .chunks_exact(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) as u16 + (folded >> 16) as u16)
}

/// Both halves of a number in one, so that no single wrong bit of it goes unseen.
fn fold(number: u64) -> u32 {
    (number ^ (number >> 32)) as u32
}

fn checksum(payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&payload[..NUMBER_AT]);
    hasher.update(&payload[MARK_BYTES..]);
    hasher.finalize()
}

/// What a numbered frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its stream.
    pub stream: u16,
    /// Its number in the stream.
    pub number: u64,
    /// VLAN tags in front of it.
    pub tags: u8,
    /// Whether its payload is as it was sent; `None` when only a part of it is there.
    pub intact: Option<bool>,
}

/// Recognizes a numbered frame in any bytes; `None` when it is none, or when too little of it is there.
#[must_use]
pub fn identify(frame: &[u8]) -> Option<Identity> {
    let mut tags = 0;
    let mut payload = udp_payload(frame, &mut tags)?;
    if payload.port == VXLAN_PORT {
        payload = udp_payload(payload.bytes.get(8..)?, &mut tags)?;
    }
    let bytes = payload.bytes;
    let mark = bytes.get(..MARK_BYTES)?;
    if mark[..4] != MAGIC {
        return None;
    }
    let number = u64::from_be_bytes(mark[NUMBER_AT..CHECK_AT].try_into().ok()?);
    let check = u32::from_be_bytes(mark[CHECK_AT..].try_into().ok()?);
    let intact = (bytes.len() >= payload.length)
        .then(|| check == checksum(&bytes[..payload.length.max(MARK_BYTES)]) ^ fold(number));
    Some(Identity {
        stream: u16::from_be_bytes([mark[4], mark[5]]),
        number,
        tags,
        intact,
    })
}

struct Payload<'a> {
    bytes: &'a [u8],
    /// What the UDP header says.
    length: usize,
    port: u16,
}

fn udp_payload<'a>(frame: &'a [u8], tags: &mut u8) -> Option<Payload<'a>> {
    let mut at = 12;
    while matches!(frame.get(at..at + 2)?, [0x81 | 0x91, 0x00] | [0x88, 0xa8]) {
        at += 4;
        *tags = tags.saturating_add(1);
    }
    if frame.get(at..at + 2)? != ETHERTYPE_IPV4 {
        return None;
    }
    let ip = frame.get(at + 2..)?;
    let header = usize::from(ip.first()? & 0x0f) * 4;
    if ip[0] >> 4 != 4 || header < 20 || *ip.get(9)? != 17 {
        return None;
    }
    let udp = ip.get(header..)?;
    let word = |at: usize| Some(u16::from_be_bytes([*udp.get(at)?, *udp.get(at + 1)?]));
    Some(Payload {
        length: usize::from(word(4)?).checked_sub(8)?,
        port: word(2)?,
        bytes: udp.get(8..)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encapsulations() -> impl Strategy<Value = Encapsulation> {
        prop_oneof![
            Just(Encapsulation::None),
            (0..4096u16).prop_map(Encapsulation::Vlan),
            (0..4096u16, 0..4096u16).prop_map(|(o, i)| Encapsulation::QinQ(o, i)),
            (0..1u32 << 24).prop_map(Encapsulation::Vxlan),
        ]
    }

    fn shape(stream: u16, encapsulation: Encapsulation) -> Shape {
        Shape {
            stream,
            flows: 7,
            needle_every: 10,
            encapsulation,
        }
    }

    proptest! {
        #[test]
        fn a_numbered_frame_is_recognized_whole_and_one_wrong_bit_of_its_payload_is_seen(
            stream: u16, number: u64, size in 110..9100usize, encapsulation in encapsulations(), wrong: prop::sample::Index, bit in 0..8u8,
        ) {
            let mut template = Template::new(shape(stream, encapsulation), size).unwrap();
            let mut frame = template.number(number).to_vec();
            let tags = match encapsulation { Encapsulation::Vlan(_) => 1, Encapsulation::QinQ(..) => 2, _ => 0 };
            prop_assert_eq!(frame.len(), size);
            prop_assert_eq!(identify(&frame), Some(Identity { stream, number, tags, intact: Some(true) }));
            let payload_at = template.payload_at + 4;
            let at = payload_at + wrong.index(size - payload_at);
            frame[at] ^= 1 << bit;
            prop_assert_eq!(identify(&frame).and_then(|i| i.intact), Some(false));
        }

        #[test]
        fn a_frame_that_was_cut_short_is_neither_intact_nor_broken(number: u64, size in 110..9100usize, cut in 60..109usize) {
            let frame = Template::new(shape(1, Encapsulation::None), size).unwrap().number(number)[..cut].to_vec();
            prop_assert_eq!(identify(&frame).map(|i| (i.number, i.intact)), Some((number, None)));
        }

        #[test]
        fn any_bytes_are_judged_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), from in encapsulations(), keep in 0..200usize) {
            let _ = identify(&bytes);
            let mut frame = Template::new(shape(1, from), 200).unwrap().number(5).to_vec();
            for (to, byte) in frame.iter_mut().skip(keep).zip(bytes) { *to = byte; }
            let _ = identify(&frame);
        }
    }

    #[test]
    fn a_frame_too_small_for_its_number_is_refused_with_the_least_size() {
        for (encapsulation, least) in [
            (Encapsulation::None, 60),
            (Encapsulation::Vlan(1), 64),
            (Encapsulation::Vxlan(1), 110),
        ] {
            assert!(Template::new(shape(0, encapsulation), least).is_ok());
            let refused = Template::new(shape(0, encapsulation), least - 1).unwrap_err();
            assert_eq!(refused.least, least);
        }
    }

    #[test]
    fn frames_of_two_sizes_differ_in_the_size_fields_and_the_check_alone() {
        for encapsulation in [
            Encapsulation::None,
            Encapsulation::QinQ(1, 2),
            Encapsulation::Vxlan(3),
        ] {
            let small = Template::new(shape(0, encapsulation), 200).unwrap();
            let mut large = Template::new(shape(0, encapsulation), 1500).unwrap();
            for at in large.size_fields() {
                large.bytes[at..at + 2].copy_from_slice(&small.bytes[at..at + 2]);
            }
            assert_eq!(large.bytes[..200], small.bytes, "{encapsulation:?}");
        }
    }

    #[test]
    fn needles_and_flows_follow_the_number() {
        let mut template = Template::new(shape(0, Encapsulation::None), 60).unwrap();
        let mut ports = |number| {
            let frame = template.number(number).to_vec();
            [34, 36].map(|at| u16::from_be_bytes([frame[at], frame[at + 1]]))
        };
        assert_eq!(ports(20), [FIRST_SOURCE_PORT + 6, NEEDLE_PORT]);
        assert_eq!(ports(21), [FIRST_SOURCE_PORT, PORT]);
    }
}
