//! libpcap as the front end: called with checked words only.

use crate::FilterError;
use crate::code::Instruction;

/// Compiles text for an Ethernet file. The caller has checked its words.
pub(crate) fn compile(text: &str) -> Result<Vec<Instruction>, FilterError> {
    let dead = pcap::Capture::dead(pcap::Linktype::ETHERNET);
    let dead = dead.map_err(|_| FilterError::Internal("libpcap gave no handle"))?;
    let compiled = dead.compile(text, true).map_err(|e| explain(&e))?;
    let code = compiled.get_instructions().iter();
    code.map(|raw| Instruction::from_listing(&raw.to_string()))
        .collect::<Option<Vec<_>>>()
        .ok_or(FilterError::Internal("unknown code from libpcap"))
}

/// A text that never holds and that libpcap does not see through.
pub(crate) const NEVER: &str = "len > 4294967295";

/// The same for a part of a filter: where libpcap refuses what no packet passes, a part simply never holds.
pub(crate) fn compile_part(text: &str) -> Result<Vec<Instruction>, FilterError> {
    match compile(text) {
        Err(FilterError::RejectsAll) => compile(NEVER),
        result => result,
    }
}

/// A piece of each of libpcap's messages, and what it comes down to. The first that fits is taken.
const ADVICE: &[(&str, &str)] = &[
    (
        "over mpls",
        "behind mpls only mpls, ip and ip6 and what these carry can be tested; write the test of mpls last",
    ),
    (
        "networks only",
        "an address with a mask needs net before it, as in net 10.0.0.0/8 or src net 10.0.0.0/8",
    ),
    (
        "non-network bits",
        "the network has bits set outside of its mask; clear them, as in net 10.0.0.0/8",
    ),
    (
        "mask length",
        "the mask is longer than the address; IPv4 ends at 32, IPv6 at 128",
    ),
    (
        "prefix length",
        "the mask is longer than the address; IPv4 ends at 32, IPv6 at 128",
    ),
    (
        "greater than",
        "the number is too large; VLANs end at 4095, MPLS labels at 1048575, PPPoE sessions at 65535, Geneve \
         networks at 16777215",
    ),
    ("too large", "the number is too large; ports end at 65535"),
    ("illegal port", "a port is out of range; ports end at 65535"),
    (
        "link layer address",
        "an Ethernet address is missing here; IP addresses go after host or net without ether",
    ),
    (
        "non-ether expression",
        "an Ethernet address goes after ether host, ether src or ether dst",
    ),
    (
        "data size",
        "a field has 1, 2 or 4 bytes, as in ip[2:2]; write one of these",
    ),
    (
        "illegal qualifier of 'port",
        "only tcp, udp and sctp can stand before port and portrange; write one of them or none",
    ),
    (
        "'port",
        "port and portrange take numbers; write host or net before an address",
    ),
    (
        "'proto",
        "proto takes a number; write host or net before an address",
    ),
    (
        "modifier applied",
        "this word has no such addresses: ip, arp and rarp go with IPv4, ip6 with IPv6, ether with Ethernet \
         addresses; write tcp and host 192.0.2.1 for both",
    ),
    (
        "proto' is bogus",
        "only ether, ip, ip6 and iso can stand before proto; write one of them or none",
    ),
    (
        "does not encapsulate",
        "only ether, ip, ip6 and iso can stand before proto; write one of them or none",
    ),
    ("broadcast filters", "only ether can stand before broadcast"),
    (
        "multicast filters",
        "only ether, ip and ip6 can stand before multicast",
    ),
    (
        "index operation",
        "the bytes of this protocol cannot be read by their offset; those of ether, ip, ip6, tcp, udp, icmp and \
         icmp6 can",
    ),
    (
        "syntax",
        "the words are known but form no expression; each test needs its value, each operator two sides",
    ),
];

/// libpcap's messages repeat parts of the text, so only what they stand for is passed on.
fn explain(error: &pcap::Error) -> FilterError {
    let said = match error {
        pcap::Error::PcapError(text) => text.as_str(),
        _ => "",
    };
    if said.contains("rejects all packets") {
        return FilterError::RejectsAll;
    }
    let advice = ADVICE.iter().find(|(needle, _)| said.contains(needle)).map_or(
        "the expression does not fit Ethernet frames; check what each word applies to",
        |(_, advice)| *advice,
    );
    FilterError::Syntax { advice }
}
