//! Frames for tests: as they travel, and as they would be without tags and extension headers.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

const MATRIX: &[u8] = include_bytes!("../tests/data/matrix.pcap");

/// The 16 packets of the matrix of encapsulations.
pub(crate) fn matrix() -> Vec<Vec<u8>> {
    let (mut rest, mut frames) = (&MATRIX[24..], Vec::new());
    while rest.len() >= 16 {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        frames.push(rest[16..16 + length].to_vec());
        rest = &rest[16 + length..];
    }
    frames
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fragment {
    No,
    First,
    Later,
}

/// What a frame is made of.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) tags: Vec<(u16, u16)>,
    pub(crate) ip6: bool,
    pub(crate) hosts: (u8, u8),
    /// Only of IPv6.
    pub(crate) extensions: Vec<u8>,
    pub(crate) fragment: Fragment,
    pub(crate) protocol: u8,
    pub(crate) ports: (u16, u16),
    pub(crate) payload: Vec<u8>,
}

impl Shape {
    /// TCP from A to B, port 49832 to 443.
    pub(crate) fn tcp() -> Self {
        Self {
            tags: vec![],
            ip6: false,
            hosts: (1, 2),
            extensions: vec![],
            fragment: Fragment::No,
            protocol: 6,
            ports: (49832, 443),
            payload: vec![0; 40],
        }
    }

    /// The frame as it travels.
    pub(crate) fn frame(&self) -> Vec<u8> {
        self.build(&self.tags, false)
    }

    /// Without tags and extension headers.
    pub(crate) fn plain(&self) -> Vec<u8> {
        self.build(&[], true)
    }

    /// Without Ethernet header.
    pub(crate) fn packet(&self) -> Vec<u8> {
        self.build(&[], false)[14..].to_vec()
    }

    fn build(&self, tags: &[(u16, u16)], plain: bool) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for (kind, id) in tags {
            frame.extend(kind.to_be_bytes());
            frame.extend(id.to_be_bytes());
        }
        let carried = self.transport();
        if self.ip6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(self.extended_length(carried.len()).to_be_bytes());
            let headers = if plain { vec![] } else { self.headers() };
            frame.push(headers.first().map_or(self.protocol, |first| first.0));
            frame.push(64);
            frame.extend(address6(self.hosts.0).octets());
            frame.extend(address6(self.hosts.1).octets());
            frame.extend(headers.into_iter().flat_map(|header| header.1));
        } else {
            frame.extend([0x08, 0x00, 0x46, 0]);
            frame.extend((24 + carried.len() as u16).to_be_bytes());
            let offset: u16 = match self.fragment {
                Fragment::No => 0x4000,
                Fragment::First => 0x2000,
                Fragment::Later => 185,
            };
            frame.extend([0, 7]);
            frame.extend(offset.to_be_bytes());
            frame.extend([64, self.protocol, 0, 0]);
            frame.extend(address4(self.hosts.0).octets());
            frame.extend(address4(self.hosts.1).octets());
            frame.extend([1, 1, 1, 0]);
        }
        frame.extend(carried);
        frame
    }

    fn extended_length(&self, carried: usize) -> u16 {
        let headers: usize = self.headers().iter().map(|h| h.1.len()).sum();
        (headers + carried) as u16
    }

    /// Each extension header with its own number; a fragment header is the last.
    fn headers(&self) -> Vec<(u8, Vec<u8>)> {
        let mut kinds = self.extensions.clone();
        if self.fragment != Fragment::No {
            kinds.push(44);
        }
        let next = kinds.iter().skip(1).copied().chain([self.protocol]);
        let next: Vec<_> = next.collect();
        let header = |(kind, next): (&u8, &u8)| {
            let bytes = match (kind, self.fragment) {
                (44, Fragment::Later) => vec![*next, 0, 5, 168, 0, 0, 0, 9],
                (44, _) => vec![*next, 0, 0, 1, 0, 0, 0, 9],
                (51, _) => [vec![*next, 4, 0, 0], vec![7; 20]].concat(),
                _ => [vec![*next, 1], vec![0; 14]].concat(),
            };
            (*kind, bytes)
        };
        kinds.iter().zip(&next).map(header).collect()
    }

    fn transport(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.fragment != Fragment::Later {
            match self.protocol {
                6 => {
                    bytes.extend(self.ports.0.to_be_bytes());
                    bytes.extend(self.ports.1.to_be_bytes());
                    bytes.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x12, 1, 1, 0, 0, 0, 0]);
                }
                17 | 132 => {
                    bytes.extend(self.ports.0.to_be_bytes());
                    bytes.extend(self.ports.1.to_be_bytes());
                    bytes.extend((8 + self.payload.len() as u16).to_be_bytes());
                    bytes.extend([0, 0]);
                }
                _ => bytes.extend([self.ports.1 as u8, 0, 0, 0]),
            }
        }
        bytes.extend(&self.payload);
        bytes
    }
}

pub(crate) fn address4(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

pub(crate) fn address6(host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into())
}

/// Frames of every shape that is looked through. Ports are few, so that tests of them hold often.
pub(crate) fn shapes() -> impl Strategy<Value = Shape> {
    let tag = (prop::sample::select(vec![0x8100u16, 0x88a8, 0x9100]), 0u16..4096);
    let fragment = prop_oneof![
        3 => Just(Fragment::No),
        1 => Just(Fragment::First),
        2 => Just(Fragment::Later),
    ];
    let ports = (0u16..4, 0u16..4);
    (
        (prop::collection::vec(tag, 0..=2), any::<bool>(), (1u8..4, 1u8..4)),
        prop::collection::vec(prop::sample::select(vec![0u8, 43, 51, 60]), 0..3),
        (fragment, prop::sample::select(vec![6u8, 17, 132, 1, 58, 47, 50])),
        (ports, prop::collection::vec(0u8..4, 24..60)),
    )
        .prop_map(
            |((tags, ip6, hosts), extensions, (fragment, protocol), (ports, payload))| Shape {
                tags,
                ip6,
                hosts,
                extensions,
                fragment,
                protocol,
                ports,
                payload,
            },
        )
}
