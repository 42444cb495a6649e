//! A filter on a tagged, extended or fragmented frame beside libpcap on the frame without all that.

use proptest::prelude::*;

use crate::frames::{Fragment, Shape, address4, address6, shapes};
use crate::libpcap_tests::libpcap;
use crate::{Filter, FilterError, Layer, Options, Warning, compile, compile_with};

/// A filter whose tree is known without our parser.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(String),
    Port(&'static str, String),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
    Not(Box<Tree>),
}

impl Tree {
    fn text(&self) -> String {
        match self {
            Self::Leaf(text) => text.clone(),
            Self::Port(protocol, rest) => format!("{protocol} {rest}").trim().into(),
            Self::And(a, b) => format!("({}) and ({})", a.text(), b.text()),
            Self::Or(a, b) => format!("({}) or ({})", a.text(), b.text()),
            Self::Not(a) => format!("not ({})", a.text()),
        }
    }

    /// What the tests say one by one, with the rule for later fragments.
    fn holds(&self, shape: &Shape, plain: &[u8], positive: bool) -> bool {
        let later = shape.fragment == Fragment::Later;
        match self {
            Self::And(a, b) => a.holds(shape, plain, positive) && b.holds(shape, plain, positive),
            Self::Or(a, b) => a.holds(shape, plain, positive) || b.holds(shape, plain, positive),
            Self::Not(a) => !a.holds(shape, plain, !positive),
            Self::Port(protocol, _) if later => {
                let right = match *protocol {
                    "tcp" => shape.protocol == 6,
                    "udp" => shape.protocol == 17,
                    "sctp" => shape.protocol == 132,
                    _ => matches!(shape.protocol, 6 | 17 | 132),
                };
                positive && right
            }
            Self::Leaf(text) if later && text.starts_with("icmp6[") => false,
            Self::Leaf(_) | Self::Port(..) => libpcap(&self.text()).filter(plain),
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let host = (1u8..4, any::<bool>()).prop_map(|(host, six)| {
        if six {
            address6(host).to_string()
        } else {
            address4(host).to_string()
        }
    });
    let side = prop::sample::select(vec!["", "src ", "dst ", "src and dst "]);
    let leaf = prop_oneof![
        (side.clone(), host).prop_map(|(side, host)| Tree::Leaf(format!("{side}host {host}"))),
        (
            prop::sample::select(vec!["", "tcp", "udp", "sctp"]),
            side,
            0u16..4
        )
            .prop_map(|(protocol, side, port)| Tree::Port(protocol, format!("{side}port {port}"))),
        (0u16..2).prop_map(|low| Tree::Port("tcp", format!("portrange {low}-{}", low + 2))),
        prop::sample::select(vec![
            "tcp",
            "udp",
            "icmp",
            "icmp6",
            "arp",
            "ip",
            "ip6",
            "esp",
            "proto 47",
            "ip6 proto 58",
            "ip proto 51",
            "ether multicast",
            "ether host 02:00:00:00:00:01",
            "net 10.0.0.0/30",
            "ip6 net 2001:db8::/127",
            "tcp[13] & 2 != 0",
            "udp[4:2] > 60",
            "ip[8] = 64",
            "ip6[7] = 64",
            "icmp6[0] = 2",
            "ether[0:4] = 0x02000000",
            "ether proto 0x86dd",
            "ip[6:2] & 0x1fff != 0",
        ])
        .prop_map(|text| Tree::Leaf(text.into())),
    ];
    leaf.prop_recursive(4, 10, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Tree::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Tree::Or(Box::new(a), Box::new(b))),
            inner.prop_map(|a| Tree::Not(Box::new(a))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]
    #[test]
    fn a_frame_is_judged_as_libpcap_judges_it_without_tags_and_extension_headers(
        tree in trees(), shapes in prop::collection::vec(shapes(), 8),
    ) {
        let text = tree.text();
        match compile_with(&text, &Options::default()) {
            Err(FilterError::RejectsAll) => return Ok(()),
            Err(e) => prop_assert!(false, "{}: {}", text, e),
            Ok(compiled) => {
                prop_assert!(compiled.expansion.vlan_tags == 2 && compiled.expansion.ip6_extension_headers, "{}", text);
                let code = |text: &str| libpcap(text).get_instructions().iter().map(ToString::to_string).collect::<Vec<_>>();
                prop_assert_eq!(code(&compiled.normalized), code(&text), "{} as {}", text, compiled.normalized);
                for shape in shapes {
                    let (frame, plain) = (shape.frame(), shape.plain());
                    prop_assert_eq!(
                        compiled.filter.matches(&frame, frame.len() as u32), tree.holds(&shape, &plain, true),
                        "{} on {:?}", text, shape
                    );
                }
            }
        }
    }

    /// Also where a load outside of the frame refuses it.
    #[test]
    fn a_cut_frame_is_judged_as_libpcap_judges_the_same_cut(
        tree in trees(), shapes in prop::collection::vec(shapes(), 8), kept in 0usize..80,
    ) {
        let text = tree.text();
        let Ok(filter) = compile(&text) else { return Ok(()) };
        let oracle = libpcap(&text);
        for shape in shapes.into_iter().filter(|shape| shape.fragment != Fragment::Later) {
            let (mut frame, mut plain) = (shape.frame(), shape.plain());
            let removed = frame.len() - plain.len();
            let extensions = removed - 4 * shape.tags.len();
            // Where the cut falls into headers that are looked through there is nothing to compare with.
            let start = if shape.ip6 { 54 + 4 * shape.tags.len() + extensions } else { 14 + 4 * shape.tags.len() };
            frame.truncate(start + kept);
            plain.truncate(frame.len() - removed);
            prop_assert_eq!(filter.matches(&frame, 2000), oracle.filter(&plain), "{} on {:?}", text, shape);
        }
    }
}

fn judged(text: &str, shape: &Shape) -> bool {
    let frame = shape.frame();
    compile(text).unwrap().matches(&frame, frame.len() as u32)
}

#[test]
fn a_later_fragment_has_no_ports_and_passes_every_wanted_test_of_them() {
    for ip6 in [false, true] {
        let later = Shape {
            ip6,
            tags: vec![(0x8100, 100)],
            fragment: Fragment::Later,
            ..Shape::tcp()
        };
        for (text, wanted) in [
            ("tcp port 443", true),
            ("tcp src port 5 or portrange 1-2", true),
            ("udp port 443", false),
            ("not tcp port 443", true),
            ("not not tcp port 443", true),
            ("tcp and not port 443", true),
            ("tcp[13] & 2 != 0", false),
            // Looks at such a header itself, and is asked for ports all the same.
            ("tcp port 443 and (ip or ip6[6] != 6)", true),
        ] {
            assert_eq!(judged(text, &later), wanted, "{text}, IPv6 {ip6}");
        }
    }
}

#[test]
fn a_filter_that_looks_at_a_layer_itself_gets_it_unchanged() {
    use Layer::{Ip6ExtensionHeaders as Extensions, Tunnels, VlanTags};
    let table: [(&str, &[Layer]); 16] = [
        ("vlan 100 and host 10.0.0.1", &[VlanTags]),
        ("mpls", &[VlanTags]),
        ("pppoes and host 10.0.0.1", &[VlanTags]),
        ("geneve", &[VlanTags, Extensions, Tunnels]),
        ("ether proto 0x88a8", &[VlanTags]),
        ("ether proto 33024 or tcp", &[VlanTags]),
        ("ether proto 0x86dd", &[]),
        ("ether[12:2] = 0x8100", &[VlanTags]),
        ("ether[8:4] = 1", &[]),
        ("link[20] = 6", &[VlanTags, Extensions]),
        ("ether[ip[0]] = 6", &[VlanTags, Extensions]),
        ("ip6[6] = 0", &[Extensions]),
        ("ip6[40] = 6", &[Extensions]),
        ("ip6[8:4] = 1", &[]),
        ("ip6 proto 44 or ah", &[Extensions]),
        ("proto 0x3c", &[Extensions]),
    ];
    let options = Options {
        tunnels: true,
        ..Options::default()
    };
    for (text, wanted) in table {
        let expansion = compile_with(text, &options).unwrap().expansion;
        let left: Vec<_> = expansion.left_out.iter().map(|out| out.layer).collect();
        assert_eq!(left, wanted, "{text}");
        assert_eq!(
            expansion.vlan_tags,
            if wanted.contains(&VlanTags) { 0 } else { 2 },
            "{text}"
        );
        assert_eq!(
            expansion.ip6_extension_headers,
            !wanted.contains(&Extensions),
            "{text}"
        );
        assert_eq!(expansion.tunnels, !wanted.contains(&Tunnels), "{text}");
    }
}

#[test]
fn a_negated_host_stays_excluded_under_tags() {
    let tagged = Shape {
        tags: vec![(0x88a8, 5), (0x8100, 6)],
        ..Shape::tcp()
    };
    assert!(!judged("not host 10.0.0.1", &tagged));
    assert!(judged("not host 10.0.0.9", &tagged));
}

#[test]
fn a_length_is_that_on_the_wire_tags_included() {
    let tagged = Shape {
        tags: vec![(0x8100, 5)],
        ..Shape::tcp()
    };
    let length = tagged.frame().len();
    assert!(judged(&format!("greater {length}"), &tagged));
    assert!(!judged(&format!("greater {}", length + 1), &tagged));
}

#[test]
fn tests_behind_an_encapsulation_that_need_not_be_there_are_warned_of() {
    let f = "host 10.0.0.1";
    let table = [
        (format!("(vlan and {f}) or {f}"), vec![Warning::MissesUntagged]),
        (format!("vlan and {f} or {f}"), vec![Warning::MissesUntagged]),
        (format!("vlan or {f}"), vec![Warning::MissesUntagged]),
        (format!("not vlan and {f}"), vec![Warning::MissesUntagged]),
        (
            format!("{f} or vlan and {f} or tcp"),
            vec![Warning::MissesUntagged],
        ),
        (
            format!("(mpls and {f}) or {f}"),
            vec![Warning::MissesUnencapsulated("mpls")],
        ),
        (
            "(vlan and ether host 02:00:00:00:00:01) or less 100".to_owned(),
            vec![],
        ),
        (format!("{f} or (vlan and ({f} or (vlan and {f})))"), vec![]),
        (format!("vlan 5 and {f}"), vec![]),
        (f.to_owned(), vec![]),
    ];
    for (text, wanted) in table {
        let warnings = compile_with(&text, &Options::default()).unwrap().warnings;
        assert_eq!(warnings, wanted, "{text}");
    }
}

#[test]
fn nothing_is_added_when_a_filter_is_asked_for_as_written() {
    let options = Options {
        literal: true,
        tunnels: true,
    };
    let compiled = compile_with("tcp port 443", &options).unwrap();
    assert_eq!(compiled.expansion.left_out.len(), 4);
    let Filter::Program(program) = compiled.filter else {
        panic!()
    };
    assert!(program.later_fragments_listing().is_none());
    let tagged = Shape {
        tags: vec![(0x8100, 1)],
        ..Shape::tcp()
    };
    assert!(!program.matches(&tagged.frame(), 100));
}
