//! Netlink's framing: a header, a structure, attributes (`Documentation/userspace-api/netlink/intro.rst`).

use super::Refusal;

const HEADER: usize = 16;
const REQUEST: u16 = 1;
const ACK: u16 = 4;
const DUMP: u16 = 0x300;
const DUMP_INTERRUPTED: u16 = 0x10;
const ACK_CAPPED: u16 = 0x100;
const ACK_WITH_ATTRIBUTES: u16 = 0x200;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NESTED: u16 = 1 << 15;
const KIND: u16 = 0x3fff;
const ACK_WORDS: u16 = 1;

/// A request that is being written.
#[derive(Debug)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// One that does or asks for one thing. `head` is the structure of the family.
    pub(crate) fn new(kind: u16, flags: u16, head: &[u8]) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&(REQUEST | ACK | flags).to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend_from_slice(head);
        pad(&mut bytes);
        Self(bytes)
    }

    /// One that asks for a list.
    pub(crate) fn list(kind: u16, head: &[u8]) -> Self {
        Self::new(kind, DUMP, head)
    }

    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let length = (4 + value.len()) as u16;
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        pad(&mut self.0);
        self
    }

    /// A text attribute, with the zero that ends it.
    pub(crate) fn text(self, kind: u16, value: &str) -> Self {
        self.attribute(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// An attribute that holds a structure (which may be empty) and attributes.
    pub(crate) fn nest(mut self, kind: u16, head: &[u8], inside: impl FnOnce(Self) -> Self) -> Self {
        let at = self.0.len();
        self.0.extend_from_slice(&[0, 0]);
        self.0.extend_from_slice(&(kind | NESTED).to_ne_bytes());
        self.0.extend_from_slice(head);
        let mut whole = inside(self);
        let length = (whole.0.len() - at) as u16;
        whole.0[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        whole
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

pub(super) fn number(message: &mut [u8], sequence: u32) {
    message[8..12].copy_from_slice(&sequence.to_ne_bytes());
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// One message of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part<'a> {
    kind: u16,
    flags: u16,
    pub(super) sequence: u32,
    /// The list changed while it was read.
    pub(super) interrupted: bool,
    pub(super) body: &'a [u8],
}

impl Part<'_> {
    /// Whether this is the end of the answer, and a good one.
    pub(super) fn end(&self) -> Result<bool, Refusal> {
        if self.kind != ERROR && self.kind != DONE {
            return Ok(false);
        }
        match word(self.body).map_or(0, u32::cast_signed) {
            0 => Ok(true),
            code => Err(Refusal {
                errno: code.saturating_neg(),
                words: self.words(),
            }),
        }
    }

    fn words(&self) -> Option<String> {
        if self.flags & ACK_WITH_ATTRIBUTES == 0 {
            return None;
        }
        let request = match self.kind {
            DONE => 0,
            _ if self.flags & ACK_CAPPED != 0 => HEADER,
            _ => (word(self.body.get(4..)?)? as usize).next_multiple_of(4),
        };
        let said = attributes(self.body.get(4 + request..)?);
        said.filter(|(kind, _)| *kind == ACK_WORDS)
            .map(|(_, value)| text(value))
            .next()
    }
}

/// The messages in what was received.
pub(super) fn parts(mut bytes: &[u8]) -> impl Iterator<Item = Part<'_>> {
    std::iter::from_fn(move || {
        let length = word(bytes)? as usize;
        let whole = bytes.get(..length).filter(|whole| whole.len() >= HEADER)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        let flags = half(&whole[6..])?;
        Some(Part {
            kind: half(&whole[4..])?,
            flags,
            sequence: word(&whole[8..])?,
            interrupted: flags & DUMP_INTERRUPTED != 0,
            body: &whole[HEADER..],
        })
    })
}

/// The attributes in these bytes; ends at the first that is none.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(half(bytes)?);
        let kind = half(bytes.get(2..)?)? & KIND;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The first four bytes as a number.
pub(crate) fn word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

fn half(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

/// A text up to its zero.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        let message = Message::new(7, 0, &[1, 2, 3, 4])
            .text(3, "eth0")
            .nest(18, &[], |m| {
                m.text(1, "veth")
                    .nest(2, &[9; 16], |m| m.attribute(4, &5u32.to_ne_bytes()))
            });
        let mut bytes = message.finish();
        number(&mut bytes, 42);
        let all: Vec<_> = parts(&bytes).collect();
        assert_eq!((all.len(), all[0].kind, all[0].sequence), (1, 7, 42));
        let inner: Vec<_> = attributes(&all[0].body[4..]).collect();
        assert_eq!(inner[0], (3, &b"eth0\0"[..]));
        let nested: Vec<_> = attributes(inner[1].1).collect();
        assert_eq!((inner[1].0, text(nested[0].1)), (18, "veth".to_owned()));
        let innermost: Vec<_> = attributes(&nested[1].1[16..]).collect();
        assert_eq!(innermost, [(4, &5u32.to_ne_bytes()[..])]);
    }

    #[test]
    fn bytes_that_are_no_messages_end_the_reading_and_do_not_panic() {
        for length in 0..64 {
            for fill in [0u8, 1, 3, 4, 16, 17, 255] {
                let bytes = vec![fill; length];
                assert!(parts(&bytes).count() <= length);
                assert!(attributes(&bytes).count() <= length);
            }
        }
    }
}
