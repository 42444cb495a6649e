//! pcapng (draft-ietf-opsawg-pcapng).

use std::io::Read;

use super::{FileError, MAX_BLOCK, Order, Packet, Source};

pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const ORDER_MAGIC: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const EPB_QUEUE: u16 = 6;
const MAX_INTERFACES: usize = 4096;

/// What stamps of an interface mean.
#[derive(Clone, Copy, Debug)]
struct Interface {
    snaplen: u32,
    /// Ticks in a second.
    per_second: u128,
    offset_seconds: i64,
}

#[derive(Debug)]
pub(crate) struct Reader<R> {
    source: Source<R>,
    order: Order,
    interfaces: Vec<Interface>,
    /// The current block behind its type and length.
    body: Vec<u8>,
}

/// Where the packet lies in the block.
struct Found {
    interface: u32,
    queue: Option<u32>,
    stamp_ns: Option<u64>,
    wire_length: u32,
    at: usize,
    length: usize,
}

impl<R: Read> Reader<R> {
    /// The four bytes of the magic number have been read.
    pub fn new(source: Source<R>) -> Result<Self, FileError> {
        let mut reader = Self {
            source,
            order: Order::Little,
            interfaces: vec![],
            body: vec![],
        };
        reader.section(0)?;
        Ok(reader)
    }

    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, FileError> {
        loop {
            let at = self.source.at;
            let mut kind = [0; 4];
            if !self.source.fill(&mut kind, at)? {
                return Ok(None);
            }
            if kind == MAGIC {
                self.section(at)?;
                continue;
            }
            self.block(at)?;
            if let Some(found) = self.judge(self.order.u32(&kind, 0), at)? {
                let bytes = &self.body[found.at..found.at + found.length];
                return Ok(Some(Packet {
                    interface: found.interface,
                    queue: found.queue,
                    stamp_ns: found.stamp_ns,
                    wire_length: found.wire_length,
                    bytes,
                }));
            }
        }
    }

    /// A section header behind its type, which is the same in both byte orders.
    fn section(&mut self, at: u64) -> Result<(), FileError> {
        let mut head = [0; 8];
        self.source.fill_all(&mut head, at)?;
        let mut magic = [head[4], head[5], head[6], head[7]];
        self.order = if magic == ORDER_MAGIC {
            Order::Big
        } else {
            Order::Little
        };
        if self.order == Order::Little {
            magic.reverse();
        }
        if magic != ORDER_MAGIC {
            return broken(at, "a section header without its byte order");
        }
        let length = self.order.u32(&head, 0);
        if length < 28 {
            return Err(FileError::Length { at, length });
        }
        self.rest(at, length, 12)?;
        if self.order.u16(&self.body, 0) != 1 {
            return broken(at, "a version of pcapng that is unknown");
        }
        self.interfaces.clear();
        Ok(())
    }

    /// Reads the rest of a block, of which the type has been read.
    fn block(&mut self, at: u64) -> Result<(), FileError> {
        let mut length = [0; 4];
        self.source.fill_all(&mut length, at)?;
        let length = self.order.u32(&length, 0);
        self.rest(at, length, 8)
    }

    /// Reads what follows the first `read` bytes of a block, and leaves its body without the length at its end.
    fn rest(&mut self, at: u64, length: u32, read: u32) -> Result<(), FileError> {
        if length < read + 4 || !length.is_multiple_of(4) || length > MAX_BLOCK {
            return Err(FileError::Length { at, length });
        }
        self.body.resize((length - read) as usize, 0);
        self.source.fill_all(&mut self.body, at)?;
        let tail = self.body.len() - 4;
        if self.order.u32(&self.body, tail) != length {
            return broken(at, "its two lengths differ");
        }
        self.body.truncate(tail);
        Ok(())
    }

    fn judge(&mut self, kind: u32, at: u64) -> Result<Option<Found>, FileError> {
        match kind {
            INTERFACE => self.interface(at).map(|()| None),
            ENHANCED_PACKET | OBSOLETE_PACKET => self.packet(kind, at).map(Some),
            SIMPLE_PACKET => self.simple_packet(at).map(Some),
            _ => Ok(None),
        }
    }

    fn interface(&mut self, at: u64) -> Result<(), FileError> {
        if self.body.len() < 8 {
            return broken(at, "an interface description that is too short");
        }
        if self.interfaces.len() == MAX_INTERFACES {
            return broken(at, "more interfaces than anybody has");
        }
        let mut interface = Interface {
            snaplen: self.order.u32(&self.body, 4),
            per_second: 1_000_000,
            offset_seconds: 0,
        };
        self.options(8, at, |order, code, value| match (code, value.len()) {
            (IF_TSRESOL, 1) => interface.per_second = resolution(value[0]),
            (IF_TSOFFSET, 8) => interface.offset_seconds = seconds(order, value),
            _ => {}
        })?;
        self.interfaces.push(interface);
        Ok(())
    }

    /// Enhanced and obsolete packets differ in how wide the interface is.
    fn packet(&self, kind: u32, at: u64) -> Result<Found, FileError> {
        if self.body.len() < 20 {
            return broken(at, "a packet block that is too short");
        }
        let word = |i: usize| self.order.u32(&self.body, 4 * i);
        let interface = if kind == ENHANCED_PACKET {
            word(0)
        } else {
            u32::from(self.order.u16(&self.body, 0))
        };
        let Some(described) = self.interfaces.get(interface as usize) else {
            return broken(at, "a packet of an interface that is not described");
        };
        let ticks = (u64::from(word(1)) << 32) | u64::from(word(2));
        let length = self.length(word(3), 20, at)?;
        let mut queue = None;
        if kind == ENHANCED_PACKET {
            self.options(20 + length.next_multiple_of(4), at, |order, code, value| {
                if code == EPB_QUEUE && value.len() == 4 {
                    queue = Some(order.u32(value, 0));
                }
            })?;
        }
        let Some(stamp_ns) = described.nanoseconds(ticks) else {
            return broken(at, "a stamp beyond the year 2554 or before 1970");
        };
        Ok(Found {
            interface,
            queue,
            stamp_ns: Some(stamp_ns),
            wire_length: word(4),
            at: 20,
            length,
        })
    }

    fn simple_packet(&self, at: u64) -> Result<Found, FileError> {
        let Some(interface) = self.interfaces.first() else {
            return broken(at, "a packet of an interface that is not described");
        };
        if self.body.len() < 4 {
            return broken(at, "a packet block that is too short");
        }
        let wire_length = self.order.u32(&self.body, 0);
        let limit = if interface.snaplen == 0 {
            u32::MAX
        } else {
            interface.snaplen
        };
        Ok(Found {
            interface: 0,
            queue: None,
            stamp_ns: None,
            wire_length,
            at: 4,
            length: self.length(wire_length.min(limit), 4, at)?,
        })
    }

    fn length(&self, said: u32, header: usize, at: u64) -> Result<usize, FileError> {
        match usize::try_from(said) {
            Ok(length) if length <= self.body.len() - header => Ok(length),
            _ => broken(at, "a packet longer than its block"),
        }
    }

    /// Calls `each` with code and value of every option from `from` in the body.
    fn options(
        &self,
        from: usize,
        at: u64,
        mut each: impl FnMut(Order, u16, &[u8]),
    ) -> Result<(), FileError> {
        let mut rest = self.body.get(from..).unwrap_or_default();
        while rest.len() >= 4 {
            let (code, length) = (self.order.u16(rest, 0), usize::from(self.order.u16(rest, 2)));
            if code == 0 {
                break;
            }
            let Some(value) = rest.get(4..4 + length) else {
                return broken(at, "an option longer than its block");
            };
            each(self.order, code, value);
            rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(())
    }
}

impl Interface {
    fn nanoseconds(&self, ticks: u64) -> Option<u64> {
        let since = u128::from(ticks).checked_mul(1_000_000_000)? / self.per_second;
        let total = i128::try_from(since).ok()? + i128::from(self.offset_seconds) * 1_000_000_000;
        u64::try_from(total).ok()
    }
}

/// Ticks in a second: a power of 10, or of 2 when the highest bit is set. What does not fit says: stamps of 0.
fn resolution(value: u8) -> u128 {
    let power = u32::from(value & 0x7f);
    let base: u128 = if value & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(power).unwrap_or(u128::MAX)
}

fn seconds(order: Order, value: &[u8]) -> i64 {
    let (first, second) = (u64::from(order.u32(value, 0)), u64::from(order.u32(value, 4)));
    let (high, low) = if order == Order::Big {
        (first, second)
    } else {
        (second, first)
    };
    ((high << 32) | low).cast_signed()
}

fn broken<T>(at: u64, what: &'static str) -> Result<T, FileError> {
    Err(FileError::Broken { at, what })
}
