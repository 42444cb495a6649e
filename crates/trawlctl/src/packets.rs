//! Packets of pcapng (draft-ietf-opsawg-pcapng) and pcap (draft-ietf-opsawg-pcap) files, one after the other.
//!
//! No length is trusted, and no more than one block is held.

use std::io::{self, Read};

/// Largest block or packet that is accepted, in bytes.
const MAX_BLOCK: u32 = 16 << 20;
/// Most interfaces that one section may describe.
const MAX_INTERFACES: usize = 4096;
const ETHERNET: u32 = 1;

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Why reading stops. Offsets are bytes from the start of the file to the start of the block or record.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("is neither a pcapng nor a pcap file")]
    Foreign,
    #[error("is compressed; decompress it first, for example with zstd -d or gunzip")]
    Compressed,
    #[error("is empty")]
    Empty,
    #[error("ends in the middle of a block that begins at byte {at}")]
    Cut { at: u64 },
    #[error("the block at byte {at} is damaged: {what}")]
    Damaged { at: u64, what: &'static str },
    #[error("the packet at byte {at} is of link type {link}; filters are for Ethernet frames (link type 1)")]
    LinkType { at: u64, link: u32 },
}

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its length on the wire, in bytes.
    pub wire_length: u32,
    /// What the file holds of it.
    pub data: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    /// The number at `at` of bytes whose length was checked; 0 beyond their end.
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes
            .get(at..at + 4)
            .and_then(|word| word.try_into().ok())
            .unwrap_or([0; 4]);
        match self {
            Self::Little => u32::from_le_bytes(word),
            Self::Big => u32::from_be_bytes(word),
        }
    }

    fn u16(self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes
            .get(at..at + 2)
            .and_then(|word| word.try_into().ok())
            .unwrap_or([0; 2]);
        u32::from(match self {
            Self::Little => u16::from_le_bytes(word),
            Self::Big => u16::from_be_bytes(word),
        })
    }
}

/// Link type and snaplen of an interface.
type Interface = (u32, u32);

#[derive(Debug)]
enum Format {
    Pcap { link: u32 },
    Pcapng { interfaces: Vec<Interface> },
}

/// A capture file that is being read.
pub struct PacketFile<R> {
    reader: R,
    order: Order,
    format: Format,
    /// Bytes before the block or record that is read next.
    at: u64,
}

impl<R: Read> PacketFile<R> {
    /// Reads the beginning, which says what kind of file it is.
    pub fn open(mut reader: R) -> Result<Self, PacketError> {
        let mut head = [0; 12];
        let got = fill(&mut reader, &mut head)?;
        let magic: [u8; 4] = match head[..got].first_chunk() {
            Some(magic) => *magic,
            None if got == 0 => return Err(PacketError::Empty),
            None => return Err(PacketError::Foreign),
        };
        let (order, classic) = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, true),
            [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, true),
            [0x0a, 0x0d, 0x0d, 0x0a] => (Order::Little, false),
            [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd] => return Err(PacketError::Compressed),
            _ => return Err(PacketError::Foreign),
        };
        if got < head.len() {
            return Err(PacketError::Cut { at: 0 });
        }
        let mut file = Self {
            reader,
            order,
            format: Format::Pcapng {
                interfaces: Vec::new(),
            },
            at: 0,
        };
        if classic {
            let rest = file.take(12, 0)?;
            // The upper bits say whether frames end in a check sequence.
            let link = order.u32(&rest, 8) & 0x0fff_ffff;
            file.format = Format::Pcap { link };
            file.at = 24;
        } else {
            file.section(&head)?;
        }
        Ok(file)
    }

    /// The next packet, or `None` after the last.
    pub fn next(&mut self) -> Result<Option<Packet>, PacketError> {
        match &self.format {
            Format::Pcap { link } => {
                let link = *link;
                self.record(link)
            }
            Format::Pcapng { .. } => loop {
                match self.block()? {
                    Block::Packet(packet) => return Ok(Some(packet)),
                    Block::Other => {}
                    Block::End => return Ok(None),
                }
            },
        }
    }

    fn record(&mut self, link: u32) -> Result<Option<Packet>, PacketError> {
        let at = self.at;
        let mut head = [0; 16];
        match fill(&mut self.reader, &mut head)? {
            0 => return Ok(None),
            16 => {}
            _ => return Err(PacketError::Cut { at }),
        }
        let (captured, wire_length) = (self.order.u32(&head, 8), self.order.u32(&head, 12));
        if captured > MAX_BLOCK {
            return Err(damaged(at, "its length is larger than any packet"));
        }
        if link != ETHERNET {
            return Err(PacketError::LinkType { at, link });
        }
        let data = self.take(captured, at)?;
        self.at = at + 16 + u64::from(captured);
        Ok(Some(Packet {
            wire_length: wire_length.max(captured),
            data,
        }))
    }

    fn block(&mut self) -> Result<Block, PacketError> {
        let at = self.at;
        let mut head = [0; 12];
        match fill(&mut self.reader, &mut head)? {
            0 => return Ok(Block::End),
            12 => {}
            _ => return Err(PacketError::Cut { at }),
        }
        let kind = self.order.u32(&head, 0);
        if kind == SECTION_HEADER {
            self.section(&head)?;
            return Ok(Block::Other);
        }
        let length = self.order.u32(&head, 4);
        let body = self.body(length, &head)?;
        let Format::Pcapng { interfaces } = &mut self.format else {
            return Ok(Block::End);
        };
        let order = self.order;
        match kind {
            INTERFACE => {
                if body.len() < 8 || interfaces.len() == MAX_INTERFACES {
                    return Err(damaged(at, "it describes no interface that can be used"));
                }
                interfaces.push((order.u16(&body, 0), order.u32(&body, 4)));
                Ok(Block::Other)
            }
            ENHANCED_PACKET | OLD_PACKET => {
                let number = if kind == ENHANCED_PACKET {
                    order.u32(&body, 0)
                } else {
                    order.u16(&body, 0)
                };
                let interface = usize::try_from(number)
                    .ok()
                    .and_then(|n| interfaces.get(n))
                    .copied();
                packet(
                    at,
                    interface,
                    &body,
                    20,
                    order.u32(&body, 12),
                    order.u32(&body, 16),
                )
            }
            SIMPLE_PACKET => {
                let wire = order.u32(&body, 0);
                let interface = interfaces.first().copied();
                let snaplen = interface.map_or(0, |(_, snaplen)| snaplen);
                let captured = if snaplen == 0 { wire } else { wire.min(snaplen) };
                packet(at, interface, &body, 4, captured, wire)
            }
            _ => Ok(Block::Other),
        }
    }

    /// A section header, which says in which order its bytes are; its interfaces are its own.
    fn section(&mut self, head: &[u8; 12]) -> Result<(), PacketError> {
        self.order = match head[8..12] {
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            _ => return Err(damaged(self.at, "a section header without a byte order")),
        };
        self.format = Format::Pcapng {
            interfaces: Vec::new(),
        };
        let length = self.order.u32(head, 4);
        if length < 28 {
            return Err(damaged(self.at, "a section header that is too short"));
        }
        self.body(length, head).map(|_| ())
    }

    /// The body of a block whose first 12 bytes are known; checks the repeated length and goes on to the next block.
    fn body(&mut self, length: u32, head: &[u8; 12]) -> Result<Vec<u8>, PacketError> {
        let at = self.at;
        if length < 12 || !length.is_multiple_of(4) {
            return Err(damaged(at, "its length is no length of a block"));
        }
        if length > MAX_BLOCK {
            return Err(damaged(at, "it is larger than 16 MiB"));
        }
        let rest = self.take(length - 12, at)?;
        let mut body = head[8..].to_vec();
        body.extend(rest);
        let trailer = body.split_off(body.len() - 4);
        if self.order.u32(&trailer, 0) != length {
            return Err(damaged(at, "its two lengths differ"));
        }
        self.at = at + u64::from(length);
        Ok(body)
    }

    fn take(&mut self, length: u32, at: u64) -> Result<Vec<u8>, PacketError> {
        let mut bytes = Vec::new();
        let got = (&mut self.reader)
            .take(u64::from(length))
            .read_to_end(&mut bytes)?;
        if got < length as usize {
            return Err(PacketError::Cut { at });
        }
        Ok(bytes)
    }
}

enum Block {
    Packet(Packet),
    Other,
    End,
}

fn damaged(at: u64, what: &'static str) -> PacketError {
    PacketError::Damaged { at, what }
}

fn packet(
    at: u64,
    interface: Option<Interface>,
    body: &[u8],
    start: usize,
    captured: u32,
    wire_length: u32,
) -> Result<Block, PacketError> {
    let (link, _) = interface.ok_or(damaged(at, "its interface is not described"))?;
    if link != ETHERNET {
        return Err(PacketError::LinkType { at, link });
    }
    let end = usize::try_from(captured)
        .ok()
        .and_then(|length| start.checked_add(length));
    let data = end.and_then(|end| body.get(start..end));
    let data = data
        .ok_or(damaged(at, "its packet is longer than the block"))?
        .to_vec();
    Ok(Block::Packet(Packet {
        wire_length: wire_length.max(captured),
        data,
    }))
}

/// Reads until the buffer is full or the file ends.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match reader.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

#[cfg(test)]
#[path = "packets_tests.rs"]
mod tests;
