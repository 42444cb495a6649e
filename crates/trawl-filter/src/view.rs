//! A frame as a filter sees it: without VLAN tags and without IPv6 extension headers.

use crate::code::{Load, Size};

const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
pub(crate) const IP4: u16 = 0x0800;
pub(crate) const IP6: u16 = 0x86dd;
pub(crate) const UDP: u8 = 17;
pub(crate) const GRE: u8 = 47;
/// VLAN tags that are seen through.
pub(crate) const MAX_TAGS: usize = 2;
/// IPv6 extension headers that are seen through.
const MAX_EXTENSIONS: usize = 8;
/// Where the EtherType of a frame is, and the first byte behind it.
const ETHERTYPE: usize = 12;
const PAYLOAD: usize = 14;
const IP6_HEADER: usize = 40;
const NEXT_HEADER: usize = 6;

pub(crate) fn be16(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b))
}

/// Which layers of a frame were found where. Offsets are of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layers {
    /// VLAN tags before the EtherType.
    pub(crate) tags: usize,
    /// What the payload is.
    pub(crate) ethertype: u16,
    /// Where the payload begins.
    pub(crate) payload: usize,
    /// The extension headers between an IPv6 header and what it carries.
    pub(crate) extensions: Option<Extensions>,
    /// A fragment other than the first, of IPv4 or IPv6: the headers of its transport are elsewhere.
    pub(crate) later_fragment: bool,
}

/// IPv6 extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extensions {
    /// The first byte behind them.
    pub(crate) end: usize,
    /// What they carry.
    pub(crate) protocol: u8,
}

/// Bit n is set when n is the protocol number of an extension header.
const EXTENSION_BITS: u64 = 1 | 1 << 43 | 1 << 44 | 1 << 51 | 1 << 60;
/// What [`Start`] looks at: two addresses, two tags, an EtherType, and a header up to its protocol.
const START_BYTES: usize = PAYLOAD + 4 * MAX_TAGS + 10;

/// The beginning of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'a> {
    bytes: &'a [u8; START_BYTES],
    /// Bytes of VLAN tags.
    pub(crate) tags: usize,
    /// The EtherType before and behind them.
    pub(crate) outermost: u16,
    pub(crate) payload: u16,
}

impl<'a> Start<'a> {
    /// `None` when the frame is too short for it.
    #[inline]
    pub(crate) fn of(frame: &'a [u8]) -> Option<Self> {
        let bytes: &[u8; START_BYTES] = frame.first_chunk()?;
        let be16 = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let outermost = be16(ETHERTYPE);
        let (mut tags, mut payload) = (0, outermost);
        if is_tag(outermost) {
            tags = 4 + 4 * usize::from(is_tag(be16(ETHERTYPE + 4)));
            payload = be16(ETHERTYPE + tags);
        }
        Some(Self {
            bytes,
            tags,
            outermost,
            payload,
        })
    }

    /// If it is IPv4.
    #[inline]
    pub(crate) fn is_later_fragment(&self) -> bool {
        let at = PAYLOAD + self.tags + 6;
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]]) & 0x1fff != 0
    }

    /// If it is IPv6: whether an extension header follows.
    #[inline]
    pub(crate) fn is_extended(&self) -> bool {
        let next = self.bytes[PAYLOAD + self.tags + NEXT_HEADER];
        next < 64 && EXTENSION_BITS >> next & 1 == 1
    }

    /// Whether a tunnel may be in it: nothing else is without doubt.
    #[inline]
    pub(crate) fn may_be_tunnel(&self) -> bool {
        let at = PAYLOAD + self.tags;
        match self.payload {
            IP4 => matches!(self.bytes[at + 9], UDP | GRE),
            IP6 => matches!(self.bytes[at + NEXT_HEADER], UDP | GRE) || self.is_extended(),
            _ => false,
        }
    }
}

/// Whether a frame of this EtherType has a VLAN tag.
#[inline]
fn is_tag(ethertype: u16) -> bool {
    (ethertype == VLAN[0]) | (ethertype == VLAN[1]) | (ethertype == VLAN[2])
}

impl Layers {
    /// Looks through a frame.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        let mut tags = 0;
        let mut ethertype = be16(frame, ETHERTYPE)?;
        while tags < MAX_TAGS && is_tag(ethertype) {
            tags += 1;
            ethertype = be16(frame, ETHERTYPE + 4 * tags)?;
        }
        Some(Self::behind(frame, ethertype, PAYLOAD + 4 * tags, tags))
    }

    /// Looks through what begins at `payload`.
    pub(crate) fn behind(frame: &[u8], ethertype: u16, payload: usize, tags: usize) -> Self {
        let mut layers = Self {
            tags,
            ethertype,
            payload,
            extensions: None,
            later_fragment: false,
        };
        if ethertype == IP4 {
            layers.later_fragment = be16(frame, payload + 6).is_some_and(|word| word & 0x1fff != 0);
        } else if ethertype == IP6
            && let Some((extensions, later)) = extensions(frame, payload)
        {
            (layers.extensions, layers.later_fragment) = (Some(extensions), later);
        }
        layers
    }
}

/// Walks the extension headers. `None` when there are none, or too many, or the frame ends within them.
fn extensions(frame: &[u8], ip6: usize) -> Option<(Extensions, bool)> {
    let mut protocol = *frame.get(ip6 + NEXT_HEADER)?;
    let (start, mut end) = (ip6 + IP6_HEADER, ip6 + IP6_HEADER);
    for _ in 0..=MAX_EXTENSIONS {
        let [next, length] = *frame
            .get(end..)
            .and_then(|rest| rest.first_chunk())
            .unwrap_or(&[0, 0]);
        let length = usize::from(length);
        let bytes = match protocol {
            0 | 43 | 60 => 8 * (length + 1),
            51 => 4 * (length + 2),
            44 => 8,
            _ => return (end > start).then_some((Extensions { end, protocol }, false)),
        };
        if end + 2 > frame.len() {
            return None;
        }
        let later = protocol == 44 && be16(frame, end + 2)? & 0xfff8 != 0;
        (protocol, end) = (next, end + bytes);
        if later {
            return Some((Extensions { end, protocol }, true));
        }
    }
    None
}

/// A frame from which bytes are cut out, and of which a few are replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    frame: &'a [u8],
    /// Bytes left out before the EtherType.
    cut: usize,
    /// The EtherType, when the frame holds none at that place.
    ethertype: Option<u16>,
    /// The IPv6 header's protocol as it reads, and the bytes left out behind that header.
    extensions: Option<CutExtensions>,
}

#[derive(Clone, Copy, Debug)]
struct CutExtensions {
    next_header: usize,
    protocol: u8,
    from: usize,
    bytes: usize,
}

impl<'a> View<'a> {
    /// Cuts the tags and the extension headers out of a frame, as far as wanted.
    pub(crate) fn of(frame: &'a [u8], layers: &Layers, tags: bool, extensions: bool) -> Self {
        let cut = if tags { 4 * layers.tags } else { 0 };
        Self::cut(frame, layers, cut, extensions)
    }

    /// A packet without Ethernet header of its own, behind the addresses of the frame that carries it.
    pub(crate) fn inner(frame: &'a [u8], layers: &Layers, extensions: bool) -> Self {
        let cut = layers.payload - PAYLOAD;
        Self {
            ethertype: Some(layers.ethertype),
            ..Self::cut(frame, layers, cut, extensions)
        }
    }

    fn cut(frame: &'a [u8], layers: &Layers, cut: usize, extensions: bool) -> Self {
        let ip6 = layers.payload - cut;
        let found = layers.extensions.filter(|_| extensions);
        Self {
            frame,
            cut,
            ethertype: None,
            extensions: found.map(|found| CutExtensions {
                next_header: ip6 + NEXT_HEADER,
                protocol: found.protocol,
                from: ip6 + IP6_HEADER,
                bytes: found.end - layers.payload - IP6_HEADER,
            }),
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        let mut place = at;
        if at >= ETHERTYPE {
            if let Some(ethertype) = self.ethertype.filter(|_| at < PAYLOAD) {
                return Some(ethertype.to_be_bytes()[at - ETHERTYPE]);
            }
            place = place.checked_add(self.cut)?;
        }
        if let Some(cut) = self.extensions {
            if at == cut.next_header {
                return Some(cut.protocol);
            }
            if at >= cut.from {
                place = place.checked_add(cut.bytes)?;
            }
        }
        self.frame.get(place).copied()
    }
}

impl Load for View<'_> {
    fn load(&self, size: Size, at: usize) -> Option<u32> {
        let bytes = match size {
            Size::Word => 4,
            Size::Half => 2,
            Size::Byte => 1,
        };
        let end = at.checked_add(bytes)?;
        (at..end).try_fold(0, |value, at| Some(value << 8 | u32::from(self.byte(at)?)))
    }
}
