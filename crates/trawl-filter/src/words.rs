//! Filter text to words, all of which mean the same everywhere and need no look-up.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::{FilterError, MAX_FILTER_BYTES};

/// Words that libpcap knows and that mean something in an Ethernet frame.
const KEYWORDS: &[&str] = &[
    "aarp",
    "ah",
    "and",
    "arp",
    "atalk",
    "broadcast",
    "carp",
    "clnp",
    "csnp",
    "decnet",
    "dst",
    "es-is",
    "esis",
    "esp",
    "ether",
    "geneve",
    "greater",
    "host",
    "icmp",
    "icmp6",
    "igmp",
    "igrp",
    "iih",
    "ip",
    "ip6",
    "ipx",
    "is-is",
    "isis",
    "iso",
    "l1",
    "l2",
    "lat",
    "len",
    "length",
    "less",
    "link",
    "lsp",
    "mask",
    "mopdl",
    "moprc",
    "mpls",
    "multicast",
    "net",
    "netbeui",
    "not",
    "or",
    "pim",
    "port",
    "portrange",
    "pppoed",
    "pppoes",
    "proto",
    "psnp",
    "rarp",
    "sca",
    "sctp",
    "snp",
    "src",
    "stp",
    "tcp",
    "udp",
    "vlan",
    "vrrp",
];

/// Named offsets and values that libpcap has built in.
const CONSTANTS: &[&str] = &[
    "icmp-echo",
    "icmp-echoreply",
    "icmp-ireq",
    "icmp-ireqreply",
    "icmp-maskreply",
    "icmp-maskreq",
    "icmp-paramprob",
    "icmp-redirect",
    "icmp-routeradvert",
    "icmp-routersolicit",
    "icmp-sourcequench",
    "icmp-timxceed",
    "icmp-tstamp",
    "icmp-tstampreply",
    "icmp-unreach",
    "icmp6-destinationrunreach",
    "icmp6-echo",
    "icmp6-echoreply",
    "icmp6-homeagentdiscoveryreply",
    "icmp6-homeagentdiscoveryrequest",
    "icmp6-inversediscoveryneighboradvert",
    "icmp6-inversediscoverysolicit",
    "icmp6-maskreply",
    "icmp6-maskreq",
    "icmp6-mobileprefixadvert",
    "icmp6-mobileprefixsolicit",
    "icmp6-multicastlistenerdone",
    "icmp6-multicastlistenerquery",
    "icmp6-multicastlistenerreportv1",
    "icmp6-multicastlistenerreportv2",
    "icmp6-multicastrouteradvert",
    "icmp6-multicastroutersolicit",
    "icmp6-multicastrouterterm",
    "icmp6-neighboradvert",
    "icmp6-neighborsolicit",
    "icmp6-nodeinformationquery",
    "icmp6-nodeinformationresponse",
    "icmp6-packettoobig",
    "icmp6-parameterproblem",
    "icmp6-redirect",
    "icmp6-routeradvert",
    "icmp6-routerrenum",
    "icmp6-routersolicit",
    "icmp6-timeexceeded",
    "icmp6code",
    "icmp6type",
    "icmpcode",
    "icmptype",
    "tcp-ack",
    "tcp-cwr",
    "tcp-ece",
    "tcp-fin",
    "tcp-push",
    "tcp-rst",
    "tcp-syn",
    "tcp-urg",
    "tcpflags",
];

/// Two-character operators before their one-character beginnings.
const OPERATORS: &[&str] = &[
    "&&", "||", "<<", ">>", "<=", ">=", "==", "!=", "(", ")", "[", "]", "+", "-", "*", "/", "%", "&", "|",
    "^", "<", ">", "=", "!", ":",
];

/// One word and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// 1-based byte of the text.
    pub position: usize,
    /// The word as it was written.
    pub text: &'a str,
    /// What it is.
    pub kind: Kind,
}

impl Word<'_> {
    fn is_ip6(&self) -> bool {
        self.kind == Kind::Address && self.text.contains(':')
    }

    /// 0-based byte of the text behind it.
    fn end(&self) -> usize {
        self.position - 1 + self.text.len()
    }
}

/// What a word may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A keyword or a named constant of libpcap.
    Known,
    /// An operator or bracket.
    Operator,
    /// Decimal without leading zeros, or hexadecimal, within 32 bits.
    Number,
    /// Two port numbers with a hyphen.
    Range,
    /// An IPv4, IPv6 or Ethernet address in full.
    Address,
    /// The first 1 to 3 octets of a network.
    Prefix,
}

/// Takes a filter apart.
///
/// # Errors
/// [`FilterError::TooLong`], [`FilterError::NotPrintable`], or [`FilterError::Refused`] at the first word that is
/// not allowed.
pub fn split(text: &str) -> Result<Vec<Word<'_>>, FilterError> {
    if text.len() > MAX_FILTER_BYTES {
        return Err(FilterError::TooLong { length: text.len() });
    }
    if let Some(at) = text.bytes().position(|b| !(b' '..=b'~').contains(&b)) {
        return Err(FilterError::NotPrintable { position: at + 1 });
    }
    let mut words: Vec<Word<'_>> = Vec::new();
    let mut open: Vec<Word<'_>> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(' ') {
            at += 1;
            continue;
        }
        let indexing = open.iter().any(|w| w.text == "[");
        let length = rest.bytes().take_while(|b| is_word_byte(*b, indexing)).count();
        let word = if length > 0 {
            let text = &rest[..length];
            Word {
                position: at + 1,
                text,
                kind: classify(text, words.last(), at + 1)?,
            }
        } else if rest.starts_with('%') && words.last().is_some_and(|w| w.is_ip6() && w.end() == at) {
            return Err(refuse(
                at + 1,
                "an address here has no zone, which means something on one machine only; leave out % and what follows",
            ));
        } else {
            operator(rest, at + 1)?
        };
        balance(word, &mut open)?;
        at += word.text.len();
        words.push(word);
    }
    match open.last() {
        Some(word) => Err(refuse(word.position, "this bracket is never closed; close it")),
        None => Ok(words),
    }
}

/// The words with one space between them: libpcap then cannot see other borders than were checked here.
#[must_use]
pub fn join(words: &[Word<'_>]) -> String {
    words.iter().map(|w| w.text).collect::<Vec<_>>().join(" ")
}

fn is_word_byte(byte: u8, indexing: bool) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'.' | b'-') && !(byte == b'-' && indexing)
        || (byte == b':' && !indexing)
}

fn refuse(position: usize, advice: &'static str) -> FilterError {
    FilterError::Refused { position, advice }
}

fn operator(rest: &str, position: usize) -> Result<Word<'_>, FilterError> {
    if rest.starts_with('\\') {
        return Err(refuse(
            position,
            "a protocol name after \\ is not allowed; write the protocol's number",
        ));
    }
    let found = OPERATORS.iter().find(|op| rest.starts_with(**op));
    let length = found
        .ok_or(refuse(
            position,
            "this character has no meaning in a filter; remove it",
        ))?
        .len();
    Ok(Word {
        position,
        text: &rest[..length],
        kind: Kind::Operator,
    })
}

fn balance<'a>(word: Word<'a>, open: &mut Vec<Word<'a>>) -> Result<(), FilterError> {
    let opener = match word.text {
        "(" | "[" => {
            open.push(word);
            return Ok(());
        }
        ")" => "(",
        "]" => "[",
        _ => return Ok(()),
    };
    match open.pop() {
        Some(w) if w.text == opener => Ok(()),
        _ => Err(refuse(
            word.position,
            "this bracket was never opened; remove it or open it",
        )),
    }
}

fn classify(word: &str, before: Option<&Word<'_>>, position: usize) -> Result<Kind, FilterError> {
    let before = before.map_or("", |w| w.text);
    if word == "broadcast" && before == "ip" {
        return Err(refuse(
            position,
            "the network's mask is not known here; write ether broadcast, or the address",
        ));
    }
    let kind = if KEYWORDS.contains(&word) || CONSTANTS.contains(&word) {
        Kind::Known
    } else if word == "-" {
        Kind::Operator
    } else {
        value(word, position)?
    };
    match (before, kind) {
        ("host", Kind::Number | Kind::Prefix | Kind::Range) => Err(refuse(
            position,
            "a host needs a whole address, such as 192.0.2.1 or 2001:db8::1",
        )),
        ("net" | "mask", Kind::Prefix) => Ok(kind),
        (_, Kind::Prefix) => Err(refuse(
            position,
            "an address of fewer than 4 octets is only allowed after net; write all 4",
        )),
        ("portrange", Kind::Range) => Ok(kind),
        (_, Kind::Range) => Err(refuse(position, "a range is only allowed after portrange")),
        _ => Ok(kind),
    }
}

fn value(word: &str, position: usize) -> Result<Kind, FilterError> {
    if word.contains(':') {
        return colon_address(word, position);
    }
    if let Some(hex) = word.strip_prefix("0x") {
        return match u32::from_str_radix(hex, 16) {
            Ok(_) if !hex.starts_with('+') => Ok(Kind::Number),
            _ => Err(refuse(position, "not a hexadecimal number of at most 32 bits")),
        };
    }
    if word.bytes().all(|b| b.is_ascii_digit()) {
        return decimal(word, u32::MAX, position).map(|()| Kind::Number);
    }
    if word.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return dotted(word, position);
    }
    if let Some((low, high)) = word.split_once('-')
        && [low, high]
            .iter()
            .all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    {
        decimal(low, 65535, position)?;
        return decimal(high, 65535, position).map(|()| Kind::Range);
    }
    Err(refuse(position, unknown(word)))
}

fn unknown(word: &str) -> &'static str {
    match word {
        "gateway" => "gateway needs a host name, and names are not looked up; write ether host and not host",
        "inbound" | "outbound" | "ifindex" => {
            "direction and interface are not in the frame; filter by address"
        }
        "protochain" => "protochain is not supported; write the protocol's number after proto",
        "type" | "subtype" | "direction" | "wlan" | "radio" => {
            "this is for wireless frames; captures here are Ethernet"
        }
        _ if word.bytes().any(|b| b.is_ascii_uppercase()) => {
            "not a filter word; keywords are lower case, and names are not looked up: write numbers and addresses"
        }
        _ => {
            "not a filter word; names are not looked up: write hosts as addresses, ports and protocols as numbers, and \
             put spaces around -"
        }
    }
}

fn decimal(digits: &str, limit: u32, position: usize) -> Result<(), FilterError> {
    if digits.len() > 1 && digits.starts_with('0') {
        return Err(refuse(
            position,
            "a number must not begin with 0; remove the zeros",
        ));
    }
    match digits.parse::<u32>() {
        Ok(n) if n <= limit => Ok(()),
        _ => Err(refuse(
            position,
            "the number is too large; ports end at 65535, other numbers at 4294967295",
        )),
    }
}

fn dotted(word: &str, position: usize) -> Result<Kind, FilterError> {
    const ADVICE: &str = "not an IPv4 address; write 4 numbers of 0 to 255 without leading zeros";
    let octets: Vec<_> = word.split('.').collect();
    if octets
        .iter()
        .any(|o| o.parse::<u8>().is_err() || (o.len() > 1 && o.starts_with('0')))
        || octets.len() > 4
    {
        return Err(refuse(position, ADVICE));
    }
    if octets.len() < 4 {
        return Ok(Kind::Prefix);
    }
    word.parse::<Ipv4Addr>()
        .map(|_| Kind::Address)
        .map_err(|_| refuse(position, ADVICE))
}

fn colon_address(word: &str, position: usize) -> Result<Kind, FilterError> {
    let parts: Vec<_> = word.split(':').collect();
    let octet = |p: &&str| (1..=2).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_hexdigit());
    if parts.len() == 6 && parts.iter().all(octet) {
        return Ok(Kind::Address);
    }
    match word.parse::<Ipv6Addr>() {
        Ok(address) if address.to_ipv4_mapped().is_some() => Err(refuse(
            position,
            "an IPv4 address inside IPv6 matches nothing; write the IPv4 address",
        )),
        Ok(_) => Ok(Kind::Address),
        Err(_) => Err(refuse(
            position,
            "not an IPv6 or Ethernet address; write it in full, without a zone",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_at(text: &str) -> usize {
        match split(text) {
            Err(FilterError::Refused { position, .. }) => position,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_zone_is_named_as_one_and_a_remainder_is_not() {
        for text in ["host fe80::1%eth0", "host fe80::1%1"] {
            let Err(FilterError::Refused { position, advice }) = split(text) else {
                panic!("{text} passed");
            };
            assert_eq!(position, 13);
            assert!(advice.contains("zone"), "{advice}");
        }
        split("ip[0]%2 = 1").unwrap();
    }

    #[test]
    fn filters_that_analysts_write_are_taken() {
        for text in [
            "host 10.0.0.50 and host 192.168.1.100",
            "tcp port 443 or udp portrange 5000-6000",
            "net 10 or net 192.168.0.0/16 or net 10.1.0.0 mask 255.255.0.0",
            "ip6 host 2001:db8::1 and not ether host 02:00:00:00:00:01",
            "tcp[tcpflags]&(tcp-syn|tcp-fin)!=0",
            "ether[0:4]=0x01020304 && len>=100",
            "vlan 100 and (vlan or mpls) and ip proto 17",
            "ip[2:2]-((ip[0]&0xf)<<2)!=0",
            "ether broadcast or ether multicast",
            "less 64||greater 1500",
        ] {
            split(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        }
    }

    #[test]
    fn whatever_would_be_looked_up_is_refused_at_its_place() {
        for (text, position) in [
            ("host example.com", 6),
            ("host localhost", 6),
            ("tcp port http", 10),
            ("udp portrange ftp-http", 15),
            ("ether host router", 12),
            ("net loopback", 5),
            ("gateway 10.0.0.1", 1),
            ("ip proto \\tcp", 10),
            ("POLICY_DENIED", 1),
            ("TCP", 1),
            ("host abc", 6),
            ("host a.b", 6),
            ("len-14 > 3", 1),
        ] {
            assert_eq!(refused_at(text), position, "{text}");
        }
    }

    #[test]
    fn whatever_silently_means_something_else_is_refused() {
        for text in [
            "host 10.0.0",
            "host 010.0.0.50",
            "host 80",
            "port 0080",
            "host ::ffff:10.0.0.50",
            "host fe80::1%eth0",
            "ip broadcast",
            "port 99999999999",
            "host 10.0.0.300",
            "src 10.0",
            "portrange 1-99999",
            "tcp port 80 #",
            "inbound",
            "ifindex 3",
            "net 10.0.0.0.1",
            "0x1ffffffff = 3",
            "(tcp",
            "tcp)",
            "tcp[0)",
        ] {
            refused_at(text);
        }
    }

    #[test]
    fn an_error_never_repeats_the_text() {
        let error = split("host secret-server.example").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        assert!(error.contains("byte 6"), "{error}");
    }

    #[test]
    fn length_and_alphabet_are_bounded() {
        assert_eq!(
            split(&" ".repeat(1025)),
            Err(FilterError::TooLong { length: 1025 })
        );
        assert!(split(&" ".repeat(1024)).unwrap().is_empty());
        assert_eq!(split("tcp\n"), Err(FilterError::NotPrintable { position: 4 }));
        assert_eq!(
            split("host \u{e9}"),
            Err(FilterError::NotPrintable { position: 6 })
        );
    }
}
