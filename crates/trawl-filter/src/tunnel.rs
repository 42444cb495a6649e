//! The packet inside VXLAN (RFC 7348), GRE (RFC 2784, 2890) and Geneve (RFC 8926).

use crate::view::{GRE, IP4, IP6, Layers, UDP, be16};

/// VXLAN's registered port, and the one that Linux had before and that overlay networks still use.
const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const GENEVE_PORT: u16 = 6081;
/// The EtherType of bridged Ethernet in GRE and Geneve.
const BRIDGED: u16 = 0x6558;

/// What a tunnel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inner {
    /// VXLAN, GRE or Geneve.
    pub(crate) tunnel: &'static str,
    /// Offset of what it carries in the frame.
    pub(crate) at: usize,
    /// The EtherType when it is a packet without Ethernet header.
    pub(crate) ethertype: Option<u16>,
}

/// The packet inside of a frame that carries a tunnel.
pub(crate) fn inner(frame: &[u8], layers: &Layers) -> Option<Inner> {
    if layers.later_fragment {
        return None;
    }
    let (protocol, at) = match (layers.ethertype, layers.extensions) {
        (IP4, _) => {
            let header = usize::from(frame.get(layers.payload)? & 0xf) * 4;
            (*frame.get(layers.payload + 9)?, layers.payload + header)
        }
        (IP6, Some(extensions)) => (extensions.protocol, extensions.end),
        (IP6, None) => (*frame.get(layers.payload + 6)?, layers.payload + 40),
        _ => return None,
    };
    match protocol {
        GRE => gre(frame, at),
        UDP => match be16(frame, at + 2)? {
            port if VXLAN_PORTS.contains(&port) => vxlan(frame, at + 8),
            GENEVE_PORT => geneve(frame, at + 8),
            _ => None,
        },
        _ => None,
    }
}

fn vxlan(frame: &[u8], at: usize) -> Option<Inner> {
    let names_a_network = frame.get(at)? & 0x08 != 0;
    names_a_network.then_some(Inner {
        tunnel: "VXLAN",
        at: at + 8,
        ethertype: None,
    })
}

fn geneve(frame: &[u8], at: usize) -> Option<Inner> {
    let first = frame.get(at)?;
    let version = first >> 6;
    let options = usize::from(first & 0x3f) * 4;
    (version == 0).then_some(())?;
    carried("Geneve", be16(frame, at + 2)?, at + 8 + options)
}

fn gre(frame: &[u8], at: usize) -> Option<Inner> {
    let flags = be16(frame, at)?;
    // Version 0 without source routing: the optional words are checksum, key and sequence number.
    (flags & 0x4007 == 0).then_some(())?;
    let words = [0x8000, 0x2000, 0x1000].iter().filter(|flag| flags & **flag != 0);
    carried("GRE", be16(frame, at + 2)?, at + 4 + 4 * words.count())
}

fn carried(tunnel: &'static str, ethertype: u16, at: usize) -> Option<Inner> {
    let ethertype = match ethertype {
        IP4 | IP6 => Some(ethertype),
        BRIDGED => None,
        _ => return None,
    };
    Some(Inner {
        tunnel,
        at,
        ethertype,
    })
}
