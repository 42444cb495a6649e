//! A filter as a tree of tests, and as text with every test written out in full.

use crate::libpcap::NEVER;
use crate::words::{Kind, Word};

/// What a filter says.
#[derive(Clone, Debug)]
pub(crate) enum Node<'a> {
    Both(Box<Self>, Box<Self>),
    Either(Box<Self>, Box<Self>),
    Not(Box<Self>),
    Test(Test<'a>),
}

/// One test, and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Test<'a> {
    pub(crate) position: usize,
    pub(crate) what: What<'a>,
}

/// The words before a value, inherited by the values that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub(crate) protocol: Option<&'a str>,
    /// `src`, `dst` or both of them.
    pub(crate) direction: Option<&'static str>,
    /// `host`, `net`, `port`, `portrange` or `proto`.
    pub(crate) kind: Option<&'a str>,
}

/// What a test looks at.
#[derive(Clone, Debug)]
pub(crate) enum What<'a> {
    /// `tcp dst port 443`: a value with its qualifiers.
    Value(Head<'a>, Vec<Word<'a>>),
    /// `tcp`.
    Protocol(&'a str),
    /// `ether broadcast`.
    Cast(Option<&'a str>, &'a str),
    /// `less 64`.
    Length(&'a str, &'a str),
    /// `vlan 100` and what else moves the tests behind it.
    Shift(&'a str, Option<&'a str>),
    /// `tcp[13] & 2 != 0`, with the fields that it loads.
    Relation(Vec<Word<'a>>, Vec<Access<'a>>),
}

/// `ether[12:2]` in a relation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access<'a> {
    pub(crate) protocol: &'a str,
    /// Offset and size when they are plain numbers.
    pub(crate) range: Option<(u32, u32)>,
}

/// Whether a test may make the filter true by holding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polarity {
    Positive,
    Negative,
}

impl<'a> Node<'a> {
    /// Every test in the order of the text, with its polarity.
    pub(crate) fn tests(&self) -> Vec<(&Test<'a>, Polarity)> {
        let mut found = Vec::new();
        self.collect(Polarity::Positive, &mut found);
        found
    }

    fn collect<'n>(&'n self, polarity: Polarity, found: &mut Vec<(&'n Test<'a>, Polarity)>) {
        match self {
            Self::Both(a, b) | Self::Either(a, b) => {
                a.collect(polarity, found);
                b.collect(polarity, found);
            }
            Self::Not(inner) => inner.collect(polarity.flipped(), found),
            Self::Test(test) => found.push((test, polarity)),
        }
    }

    /// The text with every test written out and brackets wherever the order matters.
    pub(crate) fn text(&self) -> String {
        self.write(Polarity::Positive, &|test, _| test.text())
    }

    /// The text as it is to be read for a later fragment.
    pub(crate) fn text_for_later_fragments(&self) -> String {
        self.write(Polarity::Positive, &Test::text_for_later_fragments)
    }

    fn write(&self, polarity: Polarity, test: &impl Fn(&Test<'a>, Polarity) -> String) -> String {
        let side = |node: &Self, bare: bool| {
            let text = node.write(polarity, test);
            if bare || matches!(node, Self::Not(_) | Self::Test(_)) {
                text
            } else {
                format!("({text})")
            }
        };
        match self {
            Self::Both(a, b) => {
                let bare = matches!(**a, Self::Both(..));
                format!("{} and {}", side(a, bare), side(b, false))
            }
            Self::Either(a, b) => {
                let bare = matches!(**a, Self::Either(..));
                format!("{} or {}", side(a, bare), side(b, false))
            }
            Self::Not(inner) => {
                let text = inner.write(polarity.flipped(), test);
                match **inner {
                    Self::Test(Test {
                        what: What::Relation(..),
                        ..
                    })
                    | Self::Both(..)
                    | Self::Either(..) => format!("not ({text})"),
                    _ => format!("not {text}"),
                }
            }
            Self::Test(found) => test(found, polarity),
        }
    }
}

impl Polarity {
    fn flipped(self) -> Self {
        match self {
            Self::Positive => Self::Negative,
            Self::Negative => Self::Positive,
        }
    }
}

impl Test<'_> {
    /// The test in full.
    pub(crate) fn text(&self) -> String {
        match &self.what {
            What::Value(head, value) => {
                let kind = head.kind.or(usual_kind(value));
                let words = [head.protocol, head.direction, kind].into_iter().flatten();
                words
                    .chain([spelled(value).as_str()])
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            What::Protocol(protocol) => (*protocol).into(),
            What::Cast(protocol, word) | What::Shift(word, protocol) if protocol.is_none() => (*word).into(),
            What::Cast(protocol, word) => format!("{} {word}", protocol.unwrap_or_default()),
            What::Shift(word, number) => format!("{word} {}", number.unwrap_or_default()),
            What::Length(word, number) => format!("{word} {number}"),
            What::Relation(words, _) => spelled(words),
        }
    }

    /// The transports whose ports are tested.
    pub(crate) fn ports_of(&self) -> Option<&'static str> {
        let What::Value(head, _) = &self.what else {
            return None;
        };
        matches!(head.kind, Some("port" | "portrange")).then_some(match head.protocol {
            Some("tcp") => "tcp",
            Some("udp") => "udp",
            Some("sctp") => "sctp",
            _ => "(tcp or udp or sctp)",
        })
    }

    /// What is wrong with a value that libpcap takes all the same, for something that nobody means.
    pub(crate) fn objection(&self) -> Option<&'static str> {
        let What::Value(head, value) = &self.what else {
            return None;
        };
        let number = value.first().and_then(|word| number(word.text))?;
        const PROTOCOL: &str = "the number is too large; protocols end at 255, EtherTypes at 65535";
        let (limit, advice) = match (head.kind, head.protocol) {
            (None | Some("host"), _) => {
                return Some(
                    "a host needs a whole address, such as 192.0.2.1 or 2001:db8::1; for a port write port before it",
                );
            }
            // libpcap takes 443 for 1.187.0.0/16: how wide the network is would depend on the number.
            (Some("net"), _) => (
                0xff,
                "a network that is a single number is its first octet, at most 255; write it in full, such as net \
                 10.0.0.0/8",
            ),
            (Some("proto"), Some("ether" | "link")) => (0xffff, PROTOCOL),
            (Some("proto"), _) => (0xff, PROTOCOL),
            _ => return None,
        };
        (number > limit).then_some(advice)
    }

    /// Whether the test reads an ICMPv6 header, which later fragments do not have.
    fn reads_icmp6(&self) -> bool {
        matches!(&self.what, What::Relation(_, fields) if fields.iter().any(|f| f.protocol == "icmp6"))
    }

    /// Whether the test is another one for later fragments.
    pub(crate) fn differs_for_later_fragments(&self) -> bool {
        self.ports_of().is_some() || self.reads_icmp6()
    }

    pub(crate) fn text_for_later_fragments(&self, polarity: Polarity) -> String {
        match (self.ports_of(), polarity) {
            (Some(transports), Polarity::Positive) => transports.into(),
            (Some(_), Polarity::Negative) => NEVER.into(),
            (None, _) if self.reads_icmp6() => NEVER.into(),
            (None, _) => self.text(),
        }
    }
}

/// What libpcap takes an address to be when nothing says it.
fn usual_kind(value: &[Word<'_>]) -> Option<&'static str> {
    match value {
        [
            Word {
                kind: Kind::Address, ..
            },
        ] => Some("host"),
        _ => None,
    }
}

/// Words as people write them.
fn spelled(words: &[Word<'_>]) -> String {
    let mut text = String::new();
    let mut before = "";
    for word in words {
        let tight =
            matches!(before, "" | "[" | "(" | ":" | "/") || matches!(word.text, "[" | "]" | ")" | ":" | "/");
        // In a relation `/` divides, in a network it does not.
        let divides = words.len() > 3 && (word.text == "/" || before == "/");
        if !tight || (divides && !text.is_empty()) {
            text.push(' ');
        }
        text.push_str(word.text);
        before = word.text;
    }
    text
}

/// A number as the words allow it.
pub(crate) fn number(word: &str) -> Option<u32> {
    match word.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}
