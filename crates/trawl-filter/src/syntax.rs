//! libpcap's grammar: `and` and `or` bind equally and from the left, `not` binds tighter, and a value without
//! qualifiers takes those of the value before it.

use crate::tree::{Head, Node, Test, What};
use crate::words::{Kind, Word};

/// Brackets and negations within each other; what is deeper is left to libpcap alone.
const MAX_DEPTH: usize = 64;
/// Words that name a protocol in front of a test, or are one.
const PROTOCOLS: &[&str] = &[
    "aarp", "ah", "arp", "atalk", "carp", "clnp", "csnp", "decnet", "es-is", "esis", "esp", "ether", "icmp",
    "icmp6", "igmp", "igrp", "iih", "ip", "ip6", "ipx", "is-is", "isis", "iso", "l1", "l2", "lat", "link",
    "lsp", "mopdl", "moprc", "netbeui", "pim", "psnp", "rarp", "sca", "sctp", "snp", "stp", "tcp", "udp",
    "vrrp",
];

/// Where the words stop forming an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Misread {
    pub(crate) position: usize,
    pub(crate) advice: &'static str,
}

/// Reads words that are not empty.
pub(crate) fn parse<'a>(words: &[Word<'a>]) -> Result<Node<'a>, Misread> {
    let mut reader = Reader {
        words,
        at: 0,
        depth: 0,
    };
    let node = reader.expression(None)?.node;
    match reader.peek(0) {
        None => Ok(node),
        Some(word) => Err(reader.left_over(word)),
    }
}

/// An operand with what it leaves for the values that follow.
struct Read<'a> {
    node: Node<'a>,
    head: Option<Head<'a>>,
    /// It was a value without qualifiers of its own, or several of them in brackets.
    is_value: bool,
}

pub(crate) struct Reader<'w, 'a> {
    words: &'w [Word<'a>],
    at: usize,
    depth: usize,
}

impl<'a> Reader<'_, 'a> {
    pub(crate) fn peek(&self, ahead: usize) -> Option<Word<'a>> {
        self.words.get(self.at + ahead).copied()
    }

    pub(crate) fn next_is(&self, ahead: usize, texts: &[&str]) -> bool {
        self.peek(ahead).is_some_and(|word| texts.contains(&word.text))
    }

    pub(crate) fn take(&mut self) -> Option<Word<'a>> {
        let word = self.peek(0);
        self.at += usize::from(word.is_some());
        word
    }

    pub(crate) fn since(&self, start: usize) -> Vec<Word<'a>> {
        self.words[start..self.at].to_vec()
    }

    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// An error at the next word, or behind the last.
    pub(crate) fn misread(&self, advice: &'static str) -> Misread {
        let behind = self.words.last().map_or(1, |w| w.position + w.text.len());
        Misread {
            position: self.peek(0).map_or(behind, |w| w.position),
            advice,
        }
    }

    pub(crate) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Misread>,
    ) -> Result<T, Misread> {
        if self.depth >= MAX_DEPTH {
            return Err(self.misread("the brackets are nested too deep; write fewer"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn left_over(&self, word: Word<'a>) -> Misread {
        let advice = match word.kind {
            Kind::Operator if word.text == "/" => {
                "a mask is only allowed behind a whole address or net prefix, as in net 10.0.0.0/8"
            }
            Kind::Operator => "this operator has no two sides here; each test needs its value",
            Kind::Known => "two tests need and or or between them",
            _ => "two values need and or or between them",
        };
        Misread {
            position: word.position,
            advice,
        }
    }

    fn expression(&mut self, head: Option<Head<'a>>) -> Result<Read<'a>, Misread> {
        let mut left = self.operand(head)?;
        while let Some(word) = self.peek(0) {
            let both = match word.text {
                "and" | "&&" => true,
                "or" | "||" => false,
                _ => break,
            };
            self.at += 1;
            let place = self.misread(
                "the brackets began with a value that takes its qualifiers from before them; write host, net or \
                 port before that value as well",
            );
            let right = self.operand(left.head)?;
            if left.is_value && !right.is_value {
                return Err(place);
            }
            let sides = (Box::new(left.node), Box::new(right.node));
            left = Read {
                node: if both {
                    Node::Both(sides.0, sides.1)
                } else {
                    Node::Either(sides.0, sides.1)
                },
                head: right.head,
                is_value: left.is_value,
            };
        }
        Ok(left)
    }

    fn operand(&mut self, head: Option<Head<'a>>) -> Result<Read<'a>, Misread> {
        let Some(word) = self.peek(0) else {
            return Err(
                self.misread("the text ends where a test is missing; write it, such as host 192.0.2.1")
            );
        };
        match word.text {
            "not" | "!" => {
                self.at += 1;
                let inner = self.deeper(|reader| reader.operand(head))?;
                Ok(Read {
                    node: Node::Not(Box::new(inner.node)),
                    ..inner
                })
            }
            _ if self.begins_relation() => self.term(What::relation),
            "(" => {
                self.at += 1;
                let inner = self.deeper(|reader| reader.expression(head))?;
                match self.peek(0) {
                    Some(word) if word.text == ")" => self.at += 1,
                    Some(word) => return Err(self.left_over(word)),
                    None => return Err(self.misread("a bracket is missing")),
                }
                // Values in brackets pass on what they were given, and so do tests.
                let head = if inner.is_value { inner.head } else { head };
                Ok(Read { head, ..inner })
            }
            _ if !matches!(word.kind, Kind::Known | Kind::Operator) => {
                let Some(head) = head else {
                    return Err(self.misread(
                        "nothing says what this value is; write host, net, port, portrange or proto before it",
                    ));
                };
                self.value(head)
            }
            _ => self.qualified(word),
        }
    }

    /// A test that begins with a keyword.
    fn qualified(&mut self, word: Word<'a>) -> Result<Read<'a>, Misread> {
        let protocol = PROTOCOLS.contains(&word.text).then_some(word.text);
        let start = usize::from(protocol.is_some());
        if self.next_is(
            start,
            &["src", "dst", "host", "net", "port", "portrange", "proto"],
        ) {
            self.at += start;
            let head = self.head(protocol)?;
            let mut read = self.deeper(|reader| reader.values(head))?;
            if let Node::Test(test) = &mut read.node {
                test.position = word.position;
            }
            read.is_value = false;
            return Ok(read);
        }
        if self.next_is(start, &["broadcast", "multicast"]) {
            self.at += start;
            return self.term(|reader| {
                let word = reader.take().map_or("", |w| w.text);
                Ok(What::Cast(protocol, word))
            });
        }
        match (word.text, protocol) {
            ("ether" | "link", _) => {
                self.at += 1;
                Err(self.misread("ether needs host, proto, broadcast, multicast or [ after it"))
            }
            (_, Some(protocol)) => self.term(|reader| {
                reader.at += 1;
                Ok(What::Protocol(protocol))
            }),
            ("less" | "greater", _) => self.term(|reader| {
                reader.at += 1;
                match reader.number() {
                    Some(number) => Ok(What::Length(word.text, number)),
                    None => Err(reader.misread("less and greater need a number of bytes after them")),
                }
            }),
            ("vlan" | "mpls" | "pppoes" | "geneve", _) => self.term(|reader| {
                reader.at += 1;
                Ok(What::Shift(word.text, reader.number()))
            }),
            ("pppoed", _) => self.term(|reader| {
                reader.at += 1;
                Ok(What::Shift("pppoed", None))
            }),
            _ => {
                Err(self.misread("a test is missing here; write it, such as host 192.0.2.1 or tcp port 443"))
            }
        }
    }

    fn head(&mut self, protocol: Option<&'a str>) -> Result<Head<'a>, Misread> {
        let mut head = Head {
            protocol,
            direction: None,
            kind: None,
        };
        if self.next_is(0, &["src", "dst"]) {
            let first = self.take().map_or("", |w| w.text);
            let other = if first == "src" { "dst" } else { "src" };
            head.direction = Some(if first == "src" { "src" } else { "dst" });
            if self.next_is(0, &["or", "||", "and", "&&"]) && self.next_is(1, &[other]) {
                let both = self.next_is(0, &["and", "&&"]);
                head.direction = Some(if both { "src and dst" } else { "src or dst" });
                self.at += 2;
            }
        }
        if self.next_is(0, &["host", "net", "port", "portrange"])
            || (head.direction.is_none() && self.next_is(0, &["proto"]))
        {
            head.kind = self.take().map(|w| w.text);
        }
        Ok(head)
    }

    /// What follows the qualifiers: a value, a negated one, or several in brackets.
    fn values(&mut self, head: Head<'a>) -> Result<Read<'a>, Misread> {
        const ADVICE: &str = "the words before need a value here: an address after host, a number after port";
        let begins = self.peek(0).is_some_and(|word| {
            matches!(word.text, "not" | "!" | "(") || !matches!(word.kind, Kind::Known | Kind::Operator)
        });
        if !begins {
            return Err(self.misread(ADVICE));
        }
        if self.next_is(0, &["not", "!", "("]) {
            let place = self.misread(ADVICE);
            let read = self.operand(Some(head))?;
            return if read.is_value { Ok(read) } else { Err(place) };
        }
        self.value(head)
    }

    fn value(&mut self, head: Head<'a>) -> Result<Read<'a>, Misread> {
        let (start, position) = (self.at, self.peek(0).map_or(1, |w| w.position));
        let first = self.take().map(|w| w.kind);
        let masked = matches!(first, Some(Kind::Address | Kind::Prefix));
        if masked && self.next_is(0, &["/", "mask"]) {
            self.at += 1;
            if !self
                .peek(0)
                .is_some_and(|w| !matches!(w.kind, Kind::Known | Kind::Operator))
            {
                return Err(
                    self.misread("a mask is missing; write a number of bits after /, an address after mask")
                );
            }
            self.at += 1;
        }
        let what = What::Value(head, self.since(start));
        Ok(Read {
            node: Node::Test(Test { position, what }),
            head: Some(head),
            is_value: true,
        })
    }

    fn number(&mut self) -> Option<&'a str> {
        let number = self.peek(0).filter(|w| w.kind == Kind::Number)?;
        self.at += 1;
        Some(number.text)
    }

    fn term(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<What<'a>, Misread>,
    ) -> Result<Read<'a>, Misread> {
        let position = self.peek(0).map_or(1, |w| w.position);
        let what = read(self)?;
        Ok(Read {
            node: Node::Test(Test { position, what }),
            head: None,
            is_value: false,
        })
    }
}

/// Whether a word names a protocol.
pub(crate) fn is_protocol(word: &str) -> bool {
    PROTOCOLS.contains(&word)
}
