//! Comparisons of header bytes and lengths: `tcp[13] & 2 != 0`, `len - 14 > 100`.

use crate::syntax::{Misread, Reader, is_protocol};
use crate::tree::{Access, What, number};
use crate::words::Kind;

const CALCULATES: &[&str] = &["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"];
const COMPARES: &[&str] = &["=", "==", "!=", "<", ">", "<=", ">="];

impl<'a> What<'a> {
    /// Reads one comparison.
    pub(crate) fn relation(reader: &mut Reader<'_, 'a>) -> Result<Self, Misread> {
        let start = reader.place();
        let mut fields = Vec::new();
        reader.sum(&mut fields)?;
        if !reader.next_is(0, COMPARES) {
            return Err(
                reader.misread("a value is compared with nothing; write = or another comparison after it")
            );
        }
        reader.take();
        reader.sum(&mut fields)?;
        Ok(Self::Relation(reader.since(start), fields))
    }
}

impl<'a> Reader<'_, 'a> {
    /// Whether a comparison begins here, and not a test of another kind.
    pub(crate) fn begins_relation(&self) -> bool {
        let Some(word) = self.peek(0) else { return false };
        match word.kind {
            Kind::Number => self.calculates(1),
            Kind::Known if is_protocol(word.text) => self.next_is(1, &["["]),
            Kind::Known => matches!(word.text, "len" | "length") || is_constant(word.text),
            Kind::Operator if word.text == "-" => true,
            Kind::Operator if word.text == "(" => {
                self.closed_by().is_some_and(|ahead| self.calculates(ahead + 1))
            }
            _ => false,
        }
    }

    fn calculates(&self, ahead: usize) -> bool {
        self.next_is(ahead, CALCULATES) || self.next_is(ahead, COMPARES)
    }

    /// How far ahead the bracket is that closes the one that is next.
    fn closed_by(&self) -> Option<usize> {
        let (mut open, mut ahead) = (0usize, 0);
        loop {
            match self.peek(ahead)?.text {
                "(" => open += 1,
                ")" => open -= 1,
                _ => {}
            }
            if open == 0 {
                return Some(ahead);
            }
            ahead += 1;
        }
    }

    fn sum(&mut self, fields: &mut Vec<Access<'a>>) -> Result<(), Misread> {
        self.term_of_sum(fields)?;
        while self.next_is(0, CALCULATES) {
            self.take();
            self.term_of_sum(fields)?;
        }
        Ok(())
    }

    fn term_of_sum(&mut self, fields: &mut Vec<Access<'a>>) -> Result<(), Misread> {
        const ADVICE: &str = "a number or a header field such as tcp[13] is missing here";
        let Some(word) = self.take() else {
            return Err(self.misread(ADVICE));
        };
        match (word.text, word.kind) {
            ("-", _) => self.deeper(|reader| reader.term_of_sum(fields)),
            ("(", _) => {
                self.deeper(|reader| reader.sum(fields))?;
                self.closing(")")
            }
            ("len" | "length", _) | (_, Kind::Number) => Ok(()),
            (protocol, _) if is_protocol(protocol) && self.next_is(0, &["["]) => self.field(protocol, fields),
            (constant, _) if is_constant(constant) => Ok(()),
            _ => Err(Misread {
                position: word.position,
                advice: ADVICE,
            }),
        }
    }

    fn field(&mut self, protocol: &'a str, fields: &mut Vec<Access<'a>>) -> Result<(), Misread> {
        self.take();
        let start = self.place();
        self.deeper(|reader| reader.sum(fields))?;
        let offset = match self.since(start).as_slice() {
            [word] => number(word.text),
            _ => None,
        };
        let mut size = Some(1);
        if self.next_is(0, &[":"]) {
            self.take();
            size = self.take().and_then(|word| number(word.text));
            if size.is_none() {
                return Err(self.misread("the size of a field is 1, 2 or 4"));
            }
        }
        fields.push(Access {
            protocol,
            range: offset.zip(size),
        });
        self.closing("]")
    }

    fn closing(&mut self, bracket: &str) -> Result<(), Misread> {
        if !self.next_is(0, &[bracket]) {
            return Err(self.misread("the expression in these brackets does not end before the next word"));
        }
        self.take();
        Ok(())
    }
}

fn is_constant(word: &str) -> bool {
    ["icmp-", "icmp6-", "tcp-"]
        .iter()
        .any(|begin| word.starts_with(begin))
        || matches!(
            word,
            "tcpflags" | "icmptype" | "icmpcode" | "icmp6type" | "icmp6code"
        )
}
