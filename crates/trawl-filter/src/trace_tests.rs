//! Explanations of single frames.

use crate::frames::{Fragment, Shape, matrix};
use crate::{Options, Trace, trace};

const BOTH: &str = "host 10.0.0.50 and host 192.168.1.100";

fn traced(text: &str, tunnels: bool, frame: &[u8]) -> Trace {
    let options = Options {
        literal: false,
        tunnels,
    };
    trace(text, &options, frame, frame.len() as u32).unwrap()
}

fn held(trace: &Trace) -> Vec<bool> {
    trace.tests.iter().map(|test| test.holds).collect()
}

#[test]
fn what_was_seen_is_said_in_one_line() {
    let frames = matrix();
    let seen = |n: usize| traced("tcp", true, &frames[n]).seen;
    assert_eq!(seen(0), "IPv4 10.0.0.50 > 192.168.1.100, TCP 49832 > 443");
    assert_eq!(
        seen(2),
        "vlan 100, IPv4 10.0.0.50 > 192.168.1.100, TCP 49832 > 443"
    );
    assert!(
        seen(3).starts_with("vlan 100, vlan 200, IPv4") || seen(3).starts_with("vlan 200, vlan 100, IPv4")
    );
    assert!(
        seen(7).ends_with("UDP, later fragment without its header"),
        "{}",
        seen(7)
    );
    assert!(seen(9).contains("extension headers, TCP"), "{}", seen(9));
    assert!(
        seen(11).contains("VXLAN with IPv4 10.0.0.50 > 192.168.1.100, TCP"),
        "{}",
        seen(11)
    );
    assert_eq!(seen(13), "ARP");
    assert_eq!(seen(15), "MPLS");
    assert_eq!(
        traced("tcp", true, &[0; 9]).seen,
        "too short for an Ethernet frame"
    );
}

#[test]
fn each_test_is_judged_by_itself_as_within_the_whole() {
    let frames = matrix();
    let trace = traced(
        "host 10.0.0.50 and tcp port 80 or 443 and not udp",
        false,
        &frames[2],
    );
    let texts: Vec<_> = trace.tests.iter().map(|test| test.text.as_str()).collect();
    assert_eq!(texts, ["host 10.0.0.50", "tcp port 80", "tcp port 443", "udp"]);
    assert_eq!(
        (trace.matched, held(&trace)),
        (true, vec![true, false, true, false])
    );
    assert_eq!(held(&traced(BOTH, false, &frames[10])), [false, false]);
}

#[test]
fn tests_behind_vlan_are_judged_behind_the_tag() {
    let frames = matrix();
    let text = format!("vlan 100 and {BOTH}");
    assert_eq!(held(&traced(&text, false, &frames[2])), [true, true, true]);
    assert_eq!(held(&traced(&text, false, &frames[0])), [false, false, false]);
}

#[test]
fn a_packet_inside_a_tunnel_is_explained_when_it_is_what_matches() {
    let frames = matrix();
    let inside = traced(BOTH, true, &frames[11]);
    assert_eq!((inside.matched, held(&inside)), (true, vec![true, true]));
    let outside = traced(BOTH, false, &frames[11]);
    assert_eq!((outside.matched, held(&outside)), (false, vec![false, false]));
    assert!(!outside.seen.contains("VXLAN"), "{}", outside.seen);
}

#[test]
fn ports_hold_for_a_later_fragment_only_where_the_filter_takes_them() {
    let later = Shape {
        fragment: Fragment::Later,
        ..Shape::tcp()
    };
    let frame = later.frame();
    assert_eq!(held(&traced("tcp port 443", false, &frame)), [true]);
    let negated = traced("not tcp port 443", false, &frame);
    assert_eq!((negated.matched, held(&negated)), (true, vec![false]));
}

#[test]
fn an_impossible_test_within_a_filter_simply_does_not_hold() {
    let trace = traced("tcp or (ip6 and host 10.0.0.50)", false, &matrix()[0]);
    assert!(trace.matched);
    assert_eq!(held(&trace), [true, false, true]);
}

#[test]
fn everything_matches_without_tests() {
    let trace = traced("", false, &matrix()[13]);
    assert!(trace.matched && trace.tests.is_empty());
}
