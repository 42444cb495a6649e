//! Our reading of the grammar beside libpcap's.

use proptest::prelude::*;

use crate::libpcap_tests::libpcap;
use crate::{FilterError, Options, compile_with, libpcap as front, syntax, words};

fn normalized(text: &str) -> String {
    compile_with(text, &Options::default())
        .unwrap_or_else(|e| panic!("{text}: {e}"))
        .normalized
}

#[test]
fn every_test_is_written_out_in_full() {
    for (text, wanted) in [
        ("host 10.0.0.1 or 10.0.0.2", "host 10.0.0.1 or host 10.0.0.2"),
        ("tcp port 80 or 443", "tcp port 80 or tcp port 443"),
        ("port 1 and 2", "port 1 and port 2"),
        ("src 10.0.0.1", "src host 10.0.0.1"),
        ("src or dst 10.0.0.1", "src or dst host 10.0.0.1"),
        ("dst && src port 5", "src and dst port 5"),
        ("net 10.0.0.0 mask 255.0.0.0", "net 10.0.0.0 mask 255.0.0.0"),
        (
            "host 10.0.0.1 and !10.0.0.2",
            "host 10.0.0.1 and not host 10.0.0.2",
        ),
        ("host not 10.0.0.1", "not host 10.0.0.1"),
        (
            "host 10.0.0.1 and (10.0.0.2 or 10.0.0.3)",
            "host 10.0.0.1 and (host 10.0.0.2 or host 10.0.0.3)",
        ),
        (
            "host (10.0.0.1 or 10.0.0.2) and tcp port (80 or 443)",
            "(host 10.0.0.1 or host 10.0.0.2) and (tcp port 80 or tcp port 443)",
        ),
        ("tcp or udp and less 100", "(tcp or udp) and less 100"),
        ("less 100 and (tcp or udp)", "less 100 and (tcp or udp)"),
        ("not tcp and udp", "not tcp and udp"),
        ("!(tcp||udp)", "not (tcp or udp)"),
        ("ip proto 6 or 17", "ip proto 6 or ip proto 17"),
        (
            "tcp[tcpflags]&(tcp-syn|tcp-fin)!=0",
            "tcp[tcpflags] & (tcp-syn | tcp-fin) != 0",
        ),
        (
            "ip[2:2]-((ip[0]&0xf)<<2)!=0",
            "ip[2:2] - ((ip[0] & 0xf) << 2) != 0",
        ),
        ("(ip[0] & 0xf) * 4 > 20", "(ip[0] & 0xf) * 4 > 20"),
        ("(len > 100)", "len > 100"),
        ("vlan 5 and mpls and less 100", "vlan 5 and mpls and less 100"),
        (
            "host 10.0.0.1 and (port 5 or 6) and 10.0.0.2",
            "host 10.0.0.1 and (port 5 or port 6) and host 10.0.0.2",
        ),
    ] {
        assert_eq!(normalized(text), wanted, "{text}");
        assert_eq!(normalized(wanted), wanted, "written out already");
    }
}

#[test]
fn an_error_names_the_place() {
    for (text, wanted) in [
        ("tcp port", 9),
        ("host 10.0.0.1 and", 18),
        ("host 10.0.0.1 tcp", 15),
        ("host 10.0.0.1 10.0.0.2", 15),
        ("10.0.0.1", 1),
        ("tcp or 443", 8),
        ("and tcp", 1),
        ("net 10/8", 7),
        ("tcp and net 10.0.0.1/8", 9),
        ("tcp and port 70000", 9),
        ("udp or vlan 5000", 8),
        ("host 10.0.0.1 and (10.0.0.2 or port 5)", 32),
        ("ether 02:00:00:00:00:01", 7),
        ("tcp[13 & 2 != 0]", 12),
        ("tcp[13]", 8),
        ("tcp[13] = and udp", 11),
        ("less tcp", 6),
        ("host 10.0.0.1/33", 1),
        ("udp or ip proto 256", 8),
        ("host 10.0.0.1 or 80", 18),
        ("tcp and host not 80", 18),
        ("udp and src 80", 9),
        ("tcp or ether proto 0x10000", 8),
        ("tcp and (src 10.0.0.0/8 or udp)", 10),
        ("udp or net 443", 8),
        ("src net 10 or 256", 15),
    ] {
        match compile_with(text, &Options::default()) {
            Err(FilterError::Refused { position, .. }) => assert_eq!(position, wanted, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_field_at_any_offset_is_compiled_and_frames_end_before_it() {
    for offset in [65_534_u32, 65_535, u32::MAX - 1, u32::MAX] {
        let text = format!("ether[{offset}] = 1");
        let filter = compile_with(&text, &Options::default()).unwrap().filter;
        assert!(!filter.matches(&[1; 1514], 1514), "{text}");
    }
}

#[test]
fn what_is_nested_too_deep_for_us_is_compiled_as_written() {
    let text = format!("{}tcp{}", "(".repeat(400), ")".repeat(400));
    let compiled = compile_with(&text, &Options::default()).unwrap();
    assert_eq!(compiled.expansion.vlan_tags, 0);
    assert!(
        compiled.expansion.left_out[0].reason.contains("only libpcap"),
        "{compiled:?}"
    );
    assert!(compile_with(&"not ".repeat(200), &Options::default()).is_err());
}

/// Texts that use what the grammar lets one leave out.
fn short_texts() -> impl Strategy<Value = String> {
    let number = (0u16..9).prop_map(|n| n.to_string());
    let address = prop::sample::select(vec![
        "10.0.0.1",
        "10.0.0.0/8",
        "2001:db8::1",
        "10.0.0.0 mask 255.0.0.0",
    ]);
    let address = address.prop_map(str::to_owned);
    let word = move |words: &'static [&'static str]| prop::sample::select(words).prop_map(str::to_owned);
    let joint = move || word(&[" and ", " or ", "&&", "||", " and not ", " or !"]);
    let values = |value: BoxedStrategy<String>| {
        let group = prop::collection::vec((value.clone(), joint()), 1..4);
        (group, value, any::<bool>()).prop_map(|(group, last, brackets)| {
            let inner: String = group.into_iter().map(|(value, joint)| value + &joint).collect();
            if brackets {
                format!("({inner}{last})")
            } else {
                inner + &last
            }
        })
    };
    let hosts = values(address.boxed());
    let ports = values(number.boxed());
    let term = prop_oneof![
        (
            word(&[
                "host ",
                "src ",
                "dst ",
                "src or dst ",
                "net ",
                "dst && src net ",
                "src net ",
                "ip host ",
                "src or dst host "
            ]),
            hosts
        )
            .prop_map(|(head, values)| head + &values),
        (
            word(&[
                "port ",
                "tcp port ",
                "udp src port ",
                "ip proto ",
                "ip6 proto ",
                "proto ",
                "ether proto "
            ]),
            ports
        )
            .prop_map(|(head, values)| head + &values),
        word(&[
            "tcp",
            "not udp",
            "vlan",
            "vlan 5",
            "mpls 7",
            "less 100",
            "ether broadcast",
            "ip multicast",
            "tcp[13]&2!=0",
            "(ip[0]&0xf)*4>20",
            "5+len>ip[2:2]",
            "- 1 = len",
            "(tcp-syn) = tcp[tcpflags]",
            "pppoes",
            "(3) < len",
            "ether src 02:00:00:00:00:01",
            "multicast",
            "portrange 5-6",
            "net 10",
            "esp",
            "stp",
            "isis"
        ]),
    ];
    let chain = move |term: BoxedStrategy<String>| {
        (prop::collection::vec((term.clone(), joint()), 0..4), term).prop_map(|(terms, last)| {
            terms
                .into_iter()
                .map(|(term, joint)| term + &joint)
                .collect::<String>()
                + &last
        })
    };
    chain(term.boxed()).prop_recursive(2, 6, 2, move |inner| {
        let bracketed = (word(&["", "not "]), inner).prop_map(|(not, text)| format!("{not}({text})"));
        chain(bracketed.boxed())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8000, ..ProptestConfig::default() })]
    #[test]
    fn what_libpcap_takes_is_understood_and_means_the_same_written_out(text in short_texts()) {
        let Ok(words) = words::split(&text) else { return Ok(()) };
        let Ok(code) = front::compile(&words::join(&words)) else { return Ok(()) };
        match syntax::parse(&words) {
            Ok(tree) => {
                prop_assert_eq!(front::compile(&tree.text()), Ok(code), "{} as {}", text, tree.text());
            }
            Err(e) => prop_assert!(false, "{}: {:?}", text, e),
        }
    }

    #[test]
    fn no_mixture_of_words_that_libpcap_takes_is_misread(
        parts in prop::collection::vec(prop::sample::select(vec![
            "host", "net", "port", "10.0.0.1", "and", "or", "not", "(", ")", "vlan", "tcp", "[", "]", "5", "src",
            "/8", "mask", "ether", "proto", "dst", "::1", "=", "len", "+", "ip6", "less", "multicast", "portrange",
        ]), 1..9)
    ) {
        let text = parts.join(" ");
        let Ok(words) = words::split(&text) else { return Ok(()) };
        let Ok(code) = front::compile(&words::join(&words)) else { return Ok(()) };
        if let Ok(tree) = syntax::parse(&words) {
            prop_assert_eq!(front::compile(&tree.text()), Ok(code), "{} as {}", text, tree.text());
        } else {
            prop_assert!(compile_with(&text, &Options::default()).is_ok(), "{}", text);
            let _ = libpcap(&text);
        }
    }
}
