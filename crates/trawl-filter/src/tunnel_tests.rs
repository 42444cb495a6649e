//! Packets inside VXLAN, GRE and Geneve.

use proptest::prelude::*;

use crate::frames::{Fragment, Shape, shapes};
use crate::{Filter, Options, Warning, compile_with};

const INSIDE: Options = Options {
    literal: false,
    tunnels: true,
};

#[derive(Clone, Copy, Debug)]
enum Tunnel {
    Vxlan(u16),
    /// Flags of optional words.
    Gre(u16),
    BridgedGre(u16),
    /// Words of options.
    Geneve(u8),
    BridgedGeneve(u8),
}

fn tunnels() -> impl Strategy<Value = Tunnel> {
    let flags = prop::sample::select(vec![0u16, 0x8000, 0x2000, 0x1000, 0xa000, 0xb000]);
    prop_oneof![
        prop::sample::select(vec![4789u16, 8472]).prop_map(Tunnel::Vxlan),
        flags.clone().prop_map(Tunnel::Gre),
        flags.prop_map(Tunnel::BridgedGre),
        (0u8..6).prop_map(Tunnel::Geneve),
        (0u8..6).prop_map(Tunnel::BridgedGeneve),
    ]
}

impl Tunnel {
    /// The frame of `outer` with `inner` inside of it.
    fn around(self, outer: &Shape, inner: &Shape) -> Vec<u8> {
        let kind: u16 = if inner.ip6 { 0x86dd } else { 0x0800 };
        let (protocol, port, header) = match self {
            Self::Vxlan(port) => (17, port, vec![8, 0, 0, 0, 0, 0, 7, 0]),
            Self::Gre(flags) => (47, 0, gre(flags, kind)),
            Self::BridgedGre(flags) => (47, 0, gre(flags, 0x6558)),
            Self::Geneve(words) => (17, 6081, geneve(words, kind)),
            Self::BridgedGeneve(words) => (17, 6081, geneve(words, 0x6558)),
        };
        let carried = match self {
            Self::Gre(_) | Self::Geneve(_) => inner.packet(),
            _ => inner.frame(),
        };
        let carrier = Shape {
            protocol,
            ports: (50000, port),
            payload: [header, carried].concat(),
            fragment: Fragment::No,
            ..outer.clone()
        };
        let frame = carrier.frame();
        if protocol == 17 {
            return frame;
        }
        // The transport header of other protocols in these shapes is 4 bytes that GRE does not have.
        let at = frame.len() - carrier.payload.len() - 4;
        [&frame[..at], &carrier.payload].concat()
    }
}

fn gre(flags: u16, kind: u16) -> Vec<u8> {
    let words = (flags & 0xb000).count_ones() as usize;
    [
        flags.to_be_bytes().to_vec(),
        kind.to_be_bytes().to_vec(),
        vec![9; 4 * words],
    ]
    .concat()
}

fn geneve(words: u8, kind: u16) -> Vec<u8> {
    let [high, low] = kind.to_be_bytes();
    [
        vec![words, 0, high, low, 0, 0, 7, 0],
        vec![5; 4 * usize::from(words)],
    ]
    .concat()
}

fn outer() -> impl Strategy<Value = Shape> {
    shapes().prop_map(|shape| Shape {
        hosts: (200, 201),
        ..shape
    })
}

fn keeps(filter: &Filter, frame: &[u8]) -> bool {
    filter.matches(frame, frame.len() as u32)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]
    #[test]
    fn an_inner_packet_is_judged_as_it_would_be_outside(
        tunnel in tunnels(), outer in outer(), inner in shapes(),
        text in prop::sample::select(vec![
            "host 10.0.0.1", "host 10.0.0.1 and host 10.0.0.2", "tcp port 1", "tcp dst port 2 and net 10.0.0.0/24",
            "udp port 3 and host 2001:db8::2", "icmp6 and host 2001:db8::1", "sctp and host 10.0.0.3",
            "tcp[13] & 2 != 0 and host 10.0.0.1", "ip6[40] = 0 and host 2001:db8::1", "ether host 02:00:00:00:00:01 and icmp",
        ]),
    ) {
        let frame = tunnel.around(&outer, &inner);
        let filter = compile_with(text, &INSIDE).unwrap().filter;
        let without = compile_with(text, &Options::default()).unwrap().filter;
        // A packet without Ethernet header of its own has no tags either.
        let bare = Shape { tags: vec![], ..inner.clone() };
        let alone = match tunnel {
            Tunnel::Gre(_) | Tunnel::Geneve(_) => bare.frame(),
            _ => inner.frame(),
        };
        prop_assert!(!keeps(&without, &frame), "outer addresses are others");
        prop_assert_eq!(keeps(&filter, &frame), keeps(&without, &alone), "{:?} {:?} in {:?}", tunnel, inner, outer);
    }

    #[test]
    fn any_bytes_are_judged_without_a_panic(
        start in prop::collection::vec(any::<u8>(), 0..90), tunnel in tunnels(), outer in outer(), inner in shapes(),
        flips in prop::collection::vec((0usize..120, any::<u8>()), 0..8), cut in 0usize..200,
    ) {
        let filter = compile_with("tcp port 1 or ether host 02:00:00:00:00:09 or len > 100000", &INSIDE).unwrap().filter;
        keeps(&filter, &start);
        let mut frame = tunnel.around(&outer, &inner);
        for (at, byte) in flips {
            if let Some(place) = frame.get_mut(at) { *place = byte; }
        }
        frame.truncate(cut);
        keeps(&filter, &frame);
    }
}

#[test]
fn a_tunnel_in_a_tunnel_is_not_looked_into() {
    let plain = Shape::tcp();
    let far = Shape {
        hosts: (200, 201),
        ..Shape::tcp()
    };
    let once = Tunnel::Vxlan(4789).around(&far, &plain);
    let twice = Shape {
        protocol: 17,
        ports: (1, 4789),
        payload: [vec![8, 0, 0, 0, 0, 0, 7, 0], once.clone()].concat(),
        ..far
    };
    let filter = compile_with("host 10.0.0.1", &INSIDE).unwrap().filter;
    assert!(keeps(&filter, &once));
    assert!(!keeps(&filter, &twice.frame()));
}

#[test]
fn what_only_looks_like_a_tunnel_is_none() {
    let plain = Shape::tcp();
    let far = Shape {
        hosts: (200, 201),
        ..Shape::tcp()
    };
    let filter = compile_with("host 10.0.0.1", &INSIDE).unwrap().filter;
    let good = Tunnel::Vxlan(4789).around(&far, &plain);
    let header = 14 + 24 + 8;
    assert!(keeps(&filter, &good));
    let mut unnamed = good.clone();
    unnamed[header] = 0;
    assert!(!keeps(&filter, &unnamed), "a VXLAN header that names no network");
    let mut other = good;
    other[header - 6..header - 4].copy_from_slice(&4790u16.to_be_bytes());
    assert!(!keeps(&filter, &other), "another port");
    let routed = Tunnel::Gre(0x4000).around(&far, &plain);
    assert!(!keeps(&filter, &routed), "GRE with source routes");
    let point_to_point = Tunnel::Gre(0x0001).around(&far, &plain);
    assert!(!keeps(&filter, &point_to_point), "GRE of PPTP");
}

#[test]
fn not_is_warned_of_because_outer_and_inner_are_each_asked() {
    let warnings = |text| compile_with(text, &INSIDE).unwrap().warnings;
    assert_eq!(warnings("not host 10.0.0.1"), [Warning::NegatedInTunnels]);
    assert_eq!(warnings("host 10.0.0.1"), []);
    assert_eq!(
        compile_with("not host 10.0.0.1", &Options::default())
            .unwrap()
            .warnings,
        []
    );
}

#[test]
fn bytes_of_a_transport_header_are_warned_of_because_libpcap_finds_them_behind_ip4_only() {
    let warnings = |text| compile_with(text, &Options::default()).unwrap().warnings;
    for text in [
        "tcp[tcpflags] & tcp-syn != 0",
        "not tcp[13] = 2",
        "host ::1 or tcp[0:2] = 80",
    ] {
        assert_eq!(warnings(text), [Warning::HeaderBytesOfIp4("tcp")], "{text}");
    }
    assert_eq!(warnings("udp[4:2] > 100"), [Warning::HeaderBytesOfIp4("udp")]);
    assert_eq!(
        warnings("ip6 and ip6[53] & 2 != 0 or ip[9] = 6 or icmp6[0] = 1"),
        []
    );
}
