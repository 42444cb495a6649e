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

/// libpcap's messages repeat parts of the text, so only what they stand for is passed on.
fn explain(error: &pcap::Error) -> FilterError {
    let said = match error {
        pcap::Error::PcapError(text) => text.as_str(),
        _ => "",
    };
    if said.contains("rejects all packets") {
        return FilterError::RejectsAll;
    }
    let known = [
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
            "the network has bits set outside of its mask; clear them",
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
            "too large",
            "a number is larger than its field; ports end at 65535, VLANs at 4095",
        ),
        (
            "greater than",
            "a number is larger than its field; ports end at 65535, VLANs at 4095",
        ),
        ("illegal port", "a port is out of range; ports end at 65535"),
        (
            "modifier",
            "a word such as tcp or ether stands before something that it cannot qualify",
        ),
        (
            "qualifier",
            "a word such as tcp or ether stands before something that it cannot qualify",
        ),
        ("non-network", "an offset or value does not fit its protocol"),
        (
            "syntax",
            "the words are known but form no expression; each test needs its value, each operator two sides",
        ),
        (
            "parse",
            "the words are known but form no expression; each test needs its value, each operator two sides",
        ),
    ];
    let advice = known.iter().find(|(needle, _)| said.contains(needle)).map_or(
        "the expression does not fit Ethernet frames; check what each word applies to",
        |(_, advice)| *advice,
    );
    FilterError::Syntax { advice }
}
