//! Our reading of a filter beside libpcap's own, on the same bytes.

use crate::frames::matrix;
use crate::{Filter, FilterError, Options, compile, compile_with};
use proptest::prelude::*;

pub(crate) fn libpcap(text: &str) -> pcap::BpfProgram {
    pcap::Capture::dead(pcap::Linktype::ETHERNET)
        .unwrap()
        .compile(text, true)
        .unwrap()
}

/// As libpcap reads it, with nothing added.
fn literal(text: &str) -> Result<Filter, FilterError> {
    let options = Options {
        literal: true,
        ..Options::default()
    };
    compile_with(text, &options).map(|compiled| compiled.filter)
}

fn answers(filter: &Filter) -> String {
    let frames = matrix();
    let answers = frames.iter().map(|f| filter.matches(f, f.len() as u32));
    answers.map(|kept| if kept { '1' } else { '0' }).collect()
}

const BOTH: &str = "host 10.0.0.50 and host 192.168.1.100";

#[test]
fn the_matrix_of_encapsulations_is_answered_as_recorded() {
    let nested = format!("{BOTH} or (vlan and ({BOTH} or (vlan and {BOTH})))");
    let table = [
        (BOTH.to_owned(), "1000001100000110"),
        (format!("{BOTH} or (vlan and {BOTH})"), "1110001100000110"),
        (format!("(vlan and {BOTH}) or {BOTH}"), "0110000000000000"),
        (nested, "1111111100000110"),
        ("tcp port 443".to_owned(), "1000000010000000"),
        ("icmp or icmp6".to_owned(), "0000000000100010"),
        ("udp and host 10.0.0.50".to_owned(), "0000001100000000"),
    ];
    for (text, wanted) in table {
        assert_eq!(answers(&literal(&text).unwrap()), wanted, "{text}");
    }
}

/// The order of the matrix: untagged, priority tag, 802.1Q, three kinds of QinQ, both fragments, IPv6 TCP, the same
/// with destination options, ICMPv6, VXLAN, GRE, ARP, ICMP, MPLS.
#[test]
fn the_matrix_of_encapsulations_is_answered_as_the_author_meant() {
    let nested = format!("{BOTH} or (vlan and ({BOTH} or (vlan and {BOTH})))");
    let table = [
        (BOTH.to_owned(), "1111111100000110", "1111111100011110"),
        (nested, "1111111100000110", "1111111100011110"),
        (
            "host 10.0.0.50 and port 443".to_owned(),
            "1111111100000000",
            "1111111100011000",
        ),
        ("tcp port 443".to_owned(), "1111110011000000", "1111110011011000"),
        (
            "host 2001:db8::1 and tcp port 443".to_owned(),
            "0000000011000000",
            "0000000011000000",
        ),
        ("icmp or icmp6".to_owned(), "0000000000100010", "0000000000100010"),
        (
            "udp and host 10.0.0.50".to_owned(),
            "0000001100000000",
            "0000001100000000",
        ),
    ];
    for (text, wanted, with_tunnels) in table {
        let options = |tunnels| Options {
            literal: false,
            tunnels,
        };
        let filter = |tunnels| compile_with(&text, &options(tunnels)).unwrap().filter;
        assert_eq!(answers(&filter(false)), wanted, "{text}");
        assert_eq!(answers(&filter(true)), with_tunnels, "{text} with tunnels");
    }
}

/// An entry for a known EtherType may not begin at a comparison of what was loaded before it.
#[test]
fn several_tests_of_the_ethertype_are_answered_as_by_libpcap() {
    for text in [
        "ether proto 0x800 or ether[12:2] & 0xff = 6",
        "not ip and ether[12:2] & 0xff00 = 0x8600",
        "ether[12] = 8 and ether[13] = 6",
        "ether[12:2] > 0x805 and ether[12:2] < 0x900",
        "ip or stp or isis",
    ] {
        let (ours, theirs) = (literal(text).unwrap(), libpcap(text));
        for frame in matrix() {
            assert_eq!(
                ours.matches(&frame, frame.len() as u32),
                theirs.filter(&frame),
                "{text}"
            );
        }
    }
}

#[test]
fn empty_text_keeps_everything() {
    assert_eq!(compile(""), Ok(Filter::Everything));
    assert_eq!(compile("   "), Ok(Filter::Everything));
}

#[test]
fn a_filter_that_no_packet_can_match_has_its_own_error() {
    assert_eq!(
        compile("ip6 host 2001:db8::1 and host 10.1.1.1"),
        Err(FilterError::RejectsAll)
    );
}

#[test]
fn known_words_that_form_no_expression_are_refused_without_being_repeated() {
    for text in [
        "tcp port",
        "and",
        "host 10.0.0.1 10.0.0.2 or",
        "net 10.0.0.1/8",
        "port 70000",
        "vlan 5000",
        "tcp[",
        "tcp host ether",
    ] {
        let error = compile(text).unwrap_err();
        assert!(!matches!(error, FilterError::Internal(_)), "{text}: {error}");
        assert!(!error.to_string().contains("70000"));
    }
}

#[test]
fn whatever_has_to_be_looked_up_never_reaches_libpcap() {
    let refused = ["host example.invalid", "port domain", "ether host gw", "net corp"];
    for text in refused {
        assert!(
            matches!(crate::words::split(text), Err(FilterError::Refused { .. })),
            "{text}"
        );
    }
}

#[test]
fn the_length_test_sees_the_wire_and_not_the_kept_bytes() {
    let filter = compile("greater 1000").unwrap();
    assert!(filter.matches(&[0; 64], 1500));
    assert!(!filter.matches(&[0; 64], 64));
}

fn expression() -> impl Strategy<Value = String> {
    let address = prop_oneof![
        Just("10.0.0.50".to_owned()),
        Just("192.168.1.100".to_owned()),
        Just("2001:db8::1".to_owned()),
        any::<[u8; 4]>().prop_map(|a| format!("{}.{}.{}.{}", a[0], a[1], a[2], a[3])),
    ];
    let leaf = prop_oneof![
        address.prop_map(|a| format!("host {a}")),
        (1u16..).prop_map(|p| format!("port {p}")),
        Just("tcp port 443".to_owned()),
        (1u16..1000, 1000u16..).prop_map(|(a, b)| format!("portrange {a}-{b}")),
        prop::sample::select(vec![
            "tcp",
            "udp",
            "icmp",
            "icmp6",
            "arp",
            "ip",
            "ip6",
            "vlan",
            "mpls",
            "ether multicast"
        ])
        .prop_map(str::to_owned),
        (0u8..60, any::<u8>()).prop_map(|(o, v)| format!("ether[{o}] & 0xf0 = {v}")),
        (0u8..20, any::<u16>()).prop_map(|(o, v)| format!("ip[{o}:2] > {v}")),
        Just("tcp[tcpflags] & (tcp-syn|tcp-fin) != 0".to_owned()),
        (0u32..2000).prop_map(|n| format!("len - 14 >= {n}")),
        (0u32..64, 1u32..9).prop_map(|(n, d)| format!("(ip[3] * {n}) / {d} % 7 = ip[1] >> 2")),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) and ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) or ({b})")),
            inner.prop_map(|a| format!("not ({a})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    #[test]
    fn every_frame_is_judged_as_libpcap_judges_it(
        text in expression(),
        noise in prop::collection::vec(any::<u8>(), 0..120),
        at in 0usize..16,
        flips in prop::collection::vec((0usize..80, any::<u8>()), 0..6),
        cut in 0usize..120,
    ) {
        match literal(&text) {
            Ok(filter) => {
                let oracle = libpcap(&text);
                let mut frame = matrix()[at].clone();
                for (place, byte) in flips {
                    if let Some(b) = frame.get_mut(place) { *b = byte }
                }
                frame.truncate(cut.max(14));
                for bytes in [&frame, &noise] {
                    prop_assert_eq!(filter.matches(bytes, bytes.len() as u32), oracle.filter(bytes), "{}", text);
                }
            }
            Err(FilterError::RejectsAll | FilterError::Refused { .. } | FilterError::Syntax { .. }) => {}
            Err(e) => prop_assert!(false, "{}: {}", text, e),
        }
    }

    #[test]
    fn no_text_makes_the_compiler_panic(text in "[ -~]{0,80}") {
        let _ = compile(&text);
    }

    #[test]
    fn no_mixture_of_known_words_reaches_a_lookup_or_a_panic(
        parts in prop::collection::vec(prop::sample::select(vec![
            "host", "net", "port", "10.0.0.1", "and", "or", "not", "(", ")", "vlan", "tcp", "[", "]", "5", "src", "::1", "/", "mask", "ether", "proto", "mpls", "geneve",
            "pppoes", "iso", "isis", "lsp", "00:11:22:33:44:55", "multicast", "broadcast", "ip6", "link", "-", "atalk"
        ]), 0..12)
    ) {
        let began = std::time::Instant::now();
        let result = compile(&parts.join(" "));
        prop_assert!(began.elapsed().as_millis() < 1500);
        if let Err(FilterError::Internal(what)) = result { prop_assert!(false, "{}", what) }
    }
}

#[test]
fn many_filters_at_once_wait_for_each_other_and_none_is_refused() {
    let threads: Vec<_> = (1..=32)
        .map(|n| std::thread::spawn(move || crate::compile(&format!("tcp port {n}"))))
        .collect();
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
}
