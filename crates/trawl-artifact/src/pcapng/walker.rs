//! The streaming walk: bytes go in as they come, blocks are checked as they complete.

use super::blocks::{self, Order};
use super::{Interface, MAX_BLOCK, MAX_BUFFERED_BLOCK, MAX_COMMENTS, MAX_INTERFACES, WalkError};

/// What a walk has found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Packets of enhanced, simple and (obsolete) packet blocks.
    pub packets: u64,
    /// Packets that hold fewer bytes than were on the wire.
    pub truncated_packets: u64,
    /// Bytes from the start of the file to the end of the last whole block: where to cut a broken file.
    pub whole_bytes: u64,
    /// Stamp of the first packet in the file, nanoseconds since the epoch. Simple packets carry none.
    pub first_packet_ns: Option<u64>,
    /// Stamp of the last packet in the file, nanoseconds since the epoch.
    pub last_packet_ns: Option<u64>,
    /// Sections in the file.
    pub sections: u32,
    /// Interfaces of the last section.
    pub interfaces: Vec<Interface>,
    /// `shb_userappl` of the first section that has one.
    pub application: Option<String>,
    /// Comments of section headers, in order, at most [`MAX_COMMENTS`].
    pub comments: Vec<String>,
}

/// Walks a pcapng file that arrives in pieces of any size. Stays broken after the first error.
#[derive(Debug)]
pub struct Walker {
    summary: Summary,
    order: Order,
    /// Start of the current block, then the bytes of it that must be looked at.
    buffer: Vec<u8>,
    /// Bytes of the block to gather into `buffer` before it can be judged.
    wanted: usize,
    /// Length of the current block; 0 while unknown.
    length: u32,
    /// Packet data and options still to be passed over.
    skip: u32,
    phase: Phase,
    /// The packet of the current block: counted once the block is whole.
    packet: Option<Packet>,
    error: Option<WalkError>,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    stamp: Option<u64>,
    truncated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Type, length and, for a section header, the byte order.
    Head,
    /// As much of the body as is looked at.
    Body,
    /// The rest of the body.
    Skip,
    /// The repeated length.
    Tail,
}

/// Bytes that every block has, and within which a section header tells its byte order.
const HEAD: usize = 12;

impl Default for Walker {
    fn default() -> Self {
        Self::new()
    }
}

impl Walker {
    pub fn new() -> Self {
        Self {
            summary: Summary::default(),
            order: Order::Little,
            buffer: Vec::with_capacity(256),
            wanted: HEAD,
            length: 0,
            skip: 0,
            phase: Phase::Head,
            packet: None,
            error: None,
        }
    }

    /// What was found so far: after an error, all that precedes the block at fault.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Takes the next bytes of the file. The first error is returned again by every later call.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), WalkError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        while !bytes.is_empty() {
            if let Err(error) = self.step(&mut bytes) {
                self.error = Some(error.clone());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Ends the walk. A file that stops inside a block, or holds none, is an error.
    pub fn finish(self) -> Result<Summary, WalkError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.phase != Phase::Head || !self.buffer.is_empty() {
            return Err(WalkError::Incomplete {
                at: self.summary.whole_bytes,
            });
        }
        if self.summary.sections == 0 {
            return Err(WalkError::Empty);
        }
        Ok(self.summary)
    }

    fn step(&mut self, bytes: &mut &[u8]) -> Result<(), WalkError> {
        if self.phase == Phase::Skip {
            let n = (self.skip as usize).min(bytes.len());
            *bytes = &bytes[n..];
            self.skip -= n as u32;
            if self.skip == 0 {
                self.expect_tail();
            }
            return Ok(());
        }
        let n = (self.wanted - self.buffer.len()).min(bytes.len());
        self.buffer.extend_from_slice(&bytes[..n]);
        *bytes = &bytes[n..];
        if self.buffer.len() < self.wanted {
            return Ok(());
        }
        match self.phase {
            Phase::Head => self.head(),
            Phase::Body => self.body(),
            Phase::Tail => self.tail(),
            Phase::Skip => Ok(()),
        }
    }

    fn at(&self) -> u64 {
        self.summary.whole_bytes
    }

    /// Type and length are known: decides how much of the body is needed.
    fn head(&mut self) -> Result<(), WalkError> {
        let at = self.at();
        let raw_type = self.buffer.get(..4).unwrap_or_default();
        if raw_type == blocks::SECTION_HEADER.to_be_bytes() {
            let magic = self.buffer.get(8..12).unwrap_or_default();
            self.order = Order::from_magic(magic).ok_or(WalkError::BadByteOrder { at })?;
        } else if self.summary.sections == 0 {
            return Err(WalkError::NotPcapng);
        }
        self.length = self.order.u32(&self.buffer, 4);
        let length = self.length;
        // Bytes up to which the body is looked at, and the shortest legal block of the kind.
        let (looked_at, shortest) = match self.kind() {
            blocks::SECTION_HEADER => (length.saturating_sub(4), 28),
            blocks::INTERFACE_DESCRIPTION => (length.saturating_sub(4), 20),
            blocks::ENHANCED_PACKET | blocks::PACKET => (28, 32),
            blocks::SIMPLE_PACKET => (12, 16),
            _ => (8, 12),
        };
        if !length.is_multiple_of(4) || length < shortest {
            return Err(WalkError::BadLength { at, length });
        }
        let whole = matches!(
            self.kind(),
            blocks::SECTION_HEADER | blocks::INTERFACE_DESCRIPTION
        );
        if length > if whole { MAX_BUFFERED_BLOCK } else { MAX_BLOCK } {
            return Err(WalkError::TooLarge { at, length });
        }
        self.wanted = looked_at as usize;
        if self.buffer.len() < self.wanted {
            self.phase = Phase::Body;
            return Ok(());
        }
        self.body()
    }

    fn kind(&self) -> u32 {
        self.order.u32(&self.buffer, 0)
    }

    /// All that must be looked at is there: judges it and passes over the rest.
    fn body(&mut self) -> Result<(), WalkError> {
        match self.kind() {
            blocks::SECTION_HEADER => self.section()?,
            blocks::INTERFACE_DESCRIPTION => self.interface()?,
            blocks::ENHANCED_PACKET => {
                let interface = self.order.u32(&self.buffer, 8);
                self.packet(interface)?;
            }
            blocks::PACKET => {
                let interface = u32::from(self.order.u16(&self.buffer, 8));
                self.packet(interface)?;
            }
            blocks::SIMPLE_PACKET => self.simple_packet()?,
            _ => {}
        }
        // The head may already hold the trailing length of the shortest blocks.
        if self.buffer.len() > self.length as usize - 4 {
            self.phase = Phase::Tail;
            self.buffer.drain(..self.buffer.len() - 4);
            return self.tail();
        }
        self.skip = self.length - 4 - self.buffer.len() as u32;
        if self.skip == 0 {
            self.expect_tail();
        } else {
            self.phase = Phase::Skip;
        }
        Ok(())
    }

    fn expect_tail(&mut self) {
        self.phase = Phase::Tail;
        self.buffer.clear();
        self.wanted = 4;
    }

    fn tail(&mut self) -> Result<(), WalkError> {
        let (at, leading) = (self.at(), self.length);
        let trailing = self.order.u32(&self.buffer, 0);
        if trailing != leading {
            return Err(WalkError::LengthMismatch {
                at,
                leading,
                trailing,
            });
        }
        self.summary.whole_bytes += u64::from(leading);
        if let Some(packet) = self.packet.take() {
            self.count(packet);
        }
        self.phase = Phase::Head;
        self.buffer.clear();
        self.wanted = HEAD;
        Ok(())
    }

    fn section(&mut self) -> Result<(), WalkError> {
        let at = self.at();
        let (major, minor) = (self.order.u16(&self.buffer, 12), self.order.u16(&self.buffer, 14));
        if major != 1 || !matches!(minor, 0 | 2) {
            return Err(WalkError::BadVersion { at, major, minor });
        }
        self.summary.sections = self.summary.sections.saturating_add(1);
        self.summary.interfaces.clear();
        let Summary {
            application,
            comments,
            ..
        } = &mut self.summary;
        blocks::options(self.order, &self.buffer[24..], at, |code, value| {
            match code {
                blocks::OPT_COMMENT if comments.len() < MAX_COMMENTS => comments.push(blocks::text(value)),
                blocks::SHB_USERAPPL if application.is_none() => *application = Some(blocks::text(value)),
                _ => {}
            }
            Ok(())
        })
    }

    fn interface(&mut self) -> Result<(), WalkError> {
        let at = self.at();
        if self.summary.interfaces.len() == MAX_INTERFACES {
            return Err(WalkError::TooManyInterfaces { at });
        }
        let found = blocks::interface(self.order, &self.buffer[8..], at)?;
        self.summary.interfaces.push(found);
        Ok(())
    }

    fn packet(&mut self, interface: u32) -> Result<(), WalkError> {
        let at = self.at();
        let described = usize::try_from(interface)
            .ok()
            .and_then(|i| self.summary.interfaces.get(i));
        let described = described.ok_or(WalkError::UnknownInterface { at, interface })?;
        let word = |at| self.order.u32(&self.buffer, at);
        let (ticks, captured) = (u64::from(word(12)) << 32 | u64::from(word(16)), word(20));
        if captured > self.length - 32 {
            return Err(WalkError::PacketTooLong { at, captured });
        }
        let stamp = described.resolution.nanoseconds(ticks, described.offset_secs);
        let stamp = stamp.ok_or(WalkError::BadTimestamp { at })?;
        self.packet = Some(Packet {
            stamp: Some(stamp),
            truncated: captured < word(24),
        });
        Ok(())
    }

    fn simple_packet(&mut self) -> Result<(), WalkError> {
        let at = self.at();
        let first = self
            .summary
            .interfaces
            .first()
            .ok_or(WalkError::UnknownInterface { at, interface: 0 })?;
        let original = self.order.u32(&self.buffer, 8);
        let captured = if first.snaplen == 0 {
            original
        } else {
            original.min(first.snaplen)
        };
        if captured > self.length - 16 {
            return Err(WalkError::PacketTooLong { at, captured });
        }
        self.packet = Some(Packet {
            stamp: None,
            truncated: captured < original,
        });
        Ok(())
    }

    fn count(&mut self, packet: Packet) {
        self.summary.packets += 1;
        self.summary.truncated_packets += u64::from(packet.truncated);
        if let Some(stamp) = packet.stamp {
            self.summary.first_packet_ns.get_or_insert(stamp);
            self.summary.last_packet_ns = Some(stamp);
        }
    }
}
