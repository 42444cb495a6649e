//! pcap, with microseconds or nanoseconds (draft-ietf-opsawg-pcap).

use std::io::Read;

use super::{FileError, MAX_BLOCK, Order, Packet, Source};

#[derive(Debug)]
pub(crate) struct Reader<R> {
    source: Source<R>,
    order: Order,
    /// Nanoseconds of one tick.
    tick: u64,
    data: Vec<u8>,
}

impl<R: Read> Reader<R> {
    pub fn new(mut source: Source<R>, magic: [u8; 4]) -> Result<Self, FileError> {
        let (order, tick) = match u32::from_le_bytes(magic) {
            0xa1b2_c3d4 => (Order::Little, 1000),
            0xa1b2_3c4d => (Order::Little, 1),
            0xd4c3_b2a1 => (Order::Big, 1000),
            0x4d3c_b2a1 => (Order::Big, 1),
            _ => return Err(FileError::Unknown),
        };
        let mut header = [0; 20];
        source.fill_all(&mut header, 0)?;
        if order.u16(&header, 0) != 2 {
            let what = "a version of pcap that nobody writes";
            return Err(FileError::Broken { at: 0, what });
        }
        Ok(Self {
            source,
            order,
            tick,
            data: vec![],
        })
    }

    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, FileError> {
        let (order, at) = (self.order, self.source.at);
        let mut header = [0; 16];
        if !self.source.fill(&mut header, at)? {
            return Ok(None);
        }
        let length = order.u32(&header, 8);
        if length > MAX_BLOCK {
            return Err(FileError::Length { at, length });
        }
        self.data.resize(length as usize, 0);
        self.source.fill_all(&mut self.data, at)?;
        let (seconds, ticks) = (u64::from(order.u32(&header, 0)), u64::from(order.u32(&header, 4)));
        Ok(Some(Packet {
            interface: 0,
            queue: None,
            // Two 32-bit numbers cannot overflow this.
            stamp_ns: Some(seconds * 1_000_000_000 + ticks * self.tick),
            wire_length: order.u32(&header, 12),
            bytes: &self.data,
        }))
    }
}
