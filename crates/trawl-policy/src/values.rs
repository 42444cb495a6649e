//! What comes off the wire, as types that render to one word each.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU16,
};

use crate::Placeholder;

/// Why a value of an event is not used. The value itself is never repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Not an address in full, or one with a zone.
    #[error("not an IPv4 or IPv6 address in full, without a zone")]
    Address,
    /// Not a port of a packet.
    #[error("not a port from 1 to 65535")]
    Port,
    /// A protocol that templates have no word for.
    #[error("not one of the protocols tcp, udp, icmp, icmp6 and sctp")]
    Protocol,
    /// A severity outside of the contract.
    #[error("not a severity from 1 to 4")]
    Severity,
}

/// An address in its canonical form: IPv4 in IPv6 is IPv4, and there is no zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address(IpAddr);

impl Address {
    /// Reads any form that analyzers print, such as IPv6 with leading zeros.
    ///
    /// # Errors
    /// [`ValueError::Address`]; zones are refused too, because no packet carries one.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        text.parse::<IpAddr>()
            .map(Self::from)
            .map_err(|_| ValueError::Address)
    }

    /// The address.
    #[must_use]
    pub fn get(self) -> IpAddr {
        self.0
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(v4) => v4.fmt(f),
            IpAddr::V6(v6) => f.write_str(&plain(v6)),
        }
    }
}

/// IPv6 without dotted numbers in it, which filters refuse.
fn plain(address: Ipv6Addr) -> String {
    let text = address.to_string();
    if !text.contains('.') {
        return text;
    }
    address.segments().map(|segment| format!("{segment:x}")).join(":")
}

/// A port of TCP, UDP or SCTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Port(NonZeroU16);

impl Port {
    /// A port from 1 to 65535; analyzers write 0 where there is none.
    ///
    /// # Errors
    /// [`ValueError::Port`].
    pub fn new(number: u32) -> Result<Self, ValueError> {
        u16::try_from(number)
            .ok()
            .and_then(NonZeroU16::new)
            .map(Self)
            .ok_or(ValueError::Port)
    }
}

/// A transport protocol with a word in the filter language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP of IPv4.
    Icmp,
    /// ICMP of IPv6.
    Icmp6,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Tcp, Self::Udp, Self::Icmp, Self::Icmp6, Self::Sctp];

    /// Reads the spellings of EVE (`TCP`, `IPv6-ICMP`), of Hubble (`ICMPv4`, `ICMPv6`) and of filters (`icmp6`), in
    /// any case.
    ///
    /// # Errors
    /// [`ValueError::Protocol`].
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        const SPELLINGS: [(&str, Protocol); 8] = [
            ("tcp", Protocol::Tcp),
            ("udp", Protocol::Udp),
            ("icmp", Protocol::Icmp),
            ("icmpv4", Protocol::Icmp),
            ("icmp6", Protocol::Icmp6),
            ("icmpv6", Protocol::Icmp6),
            ("ipv6-icmp", Protocol::Icmp6),
            ("sctp", Protocol::Sctp),
        ];
        SPELLINGS
            .into_iter()
            .find(|(spelling, _)| spelling.eq_ignore_ascii_case(text))
            .map(|(_, protocol)| protocol)
            .ok_or(ValueError::Protocol)
    }

    /// The word of the filter language.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::Icmp6 => "icmp6",
            Self::Sctp => "sctp",
        }
    }

    /// Whether its packets carry ports.
    #[must_use]
    pub const fn has_ports(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp | Self::Sctp)
    }
}

/// Severity of an alert, 1 (highest) to 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Severity(u8);

impl Severity {
    /// A severity from 1 to 4.
    ///
    /// # Errors
    /// [`ValueError::Severity`].
    pub fn new(number: i64) -> Result<Self, ValueError> {
        match u8::try_from(number) {
            Ok(n @ 1..=4) => Ok(Self(n)),
            _ => Err(ValueError::Severity),
        }
    }
}

/// What an event says. Absent: the event does not say it, or what it says is not usable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// Address of the sender.
    pub source_ip: Option<Address>,
    /// Port of the sender.
    pub source_port: Option<Port>,
    /// Address of the receiver.
    pub destination_ip: Option<Address>,
    /// Port of the receiver.
    pub destination_port: Option<Port>,
    /// Transport protocol.
    pub protocol: Option<Protocol>,
    /// Id of the signature.
    pub rule_id: Option<u32>,
    /// Severity of the alert.
    pub severity: Option<Severity>,
}

impl Values {
    /// The one word that stands for a placeholder. Free text has none.
    #[must_use]
    pub fn word(&self, placeholder: Placeholder) -> Option<String> {
        match placeholder {
            Placeholder::SourceIp => self.source_ip.map(|a| a.to_string()),
            Placeholder::DestinationIp => self.destination_ip.map(|a| a.to_string()),
            Placeholder::SourcePort => self.source_port.map(|p| p.0.to_string()),
            Placeholder::DestinationPort => self.destination_port.map(|p| p.0.to_string()),
            Placeholder::Protocol => self.protocol.map(|p| p.word().to_owned()),
            Placeholder::RuleId => self.rule_id.map(|id| id.to_string()),
            Placeholder::Severity => self.severity.map(|s| s.0.to_string()),
            Placeholder::Category
            | Placeholder::DropReason
            | Placeholder::SourceNamespace
            | Placeholder::DestinationNamespace => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_canonical_and_what_is_no_address_is_refused() {
        for (text, word) in [
            ("10.0.0.50", "10.0.0.50"),
            ("::ffff:10.0.0.50", "10.0.0.50"),
            ("0000:0000:0000:0000:0000:ffff:0a00:0032", "10.0.0.50"),
            (
                "2607:f8b0:400a:0800:0000:0000:0000:200e",
                "2607:f8b0:400a:800::200e",
            ),
            ("2001:DB8::A", "2001:db8::a"),
            ("::", "::"),
            ("::1", "::1"),
            ("::10.0.0.50", "::a00:32"),
        ] {
            assert_eq!(Address::parse(text).expect(text).to_string(), word);
        }
        for text in [
            "",
            " ",
            "10.0.0",
            "10.0.0.050",
            "010.0.0.50",
            "10.0.0.256",
            "10.0.0.50/24",
            "10.0.0.50 or ip",
            "fe80::1%eth0",
            "host",
            "localhost",
            "10.0.0.50\n",
            "2001:db8::g",
            "1",
            "0x0a000032",
        ] {
            assert_eq!(Address::parse(text), Err(ValueError::Address), "{text:?}");
        }
    }

    #[test]
    fn ports_begin_at_1_and_end_at_65535() {
        for number in [1, 2, 443, 65_534, 65_535] {
            assert!(Port::new(number).is_ok(), "{number}");
        }
        for number in [0, 65_536, u32::MAX] {
            assert_eq!(Port::new(number), Err(ValueError::Port), "{number}");
        }
    }

    #[test]
    fn every_spelling_of_the_five_protocols_is_one_word_and_nothing_else_is() {
        for (text, word) in [
            ("TCP", "tcp"),
            ("UDP", "udp"),
            ("ICMP", "icmp"),
            ("ICMPv4", "icmp"),
            ("IPv6-ICMP", "icmp6"),
            ("ICMPv6", "icmp6"),
            ("icmp6", "icmp6"),
            ("SCTP", "sctp"),
        ] {
            assert_eq!(Protocol::parse(text).expect(text).word(), word);
        }
        for text in [
            "",
            "ESP",
            "GRE",
            "IGMP",
            "6",
            "tcp ",
            "tcp or udp",
            "icmp-echo",
            "ip",
            "TCP\0",
        ] {
            assert_eq!(Protocol::parse(text), Err(ValueError::Protocol), "{text:?}");
        }
    }

    #[test]
    fn severities_begin_at_1_and_end_at_4() {
        for number in 1..=4 {
            assert!(Severity::new(number).is_ok(), "{number}");
        }
        for number in [i64::MIN, -1, 0, 5, 256 + 1, i64::MAX] {
            assert_eq!(Severity::new(number), Err(ValueError::Severity), "{number}");
        }
    }
}
