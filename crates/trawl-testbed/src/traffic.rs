//! Numbered Ethernet frames put on the far end of the mirror link.
//!
//! Each frame is IPv4/UDP from 10.9.0.1 to 10.9.0.2 and carries its number as a big-endian u64 at the start of
//! the payload, so that a file tells which frames it holds, and in which order.

use std::{thread, time::Duration};

use anyhow::{Context, Result};
use pcap::{Active, Capture};

/// Offset of the number in a frame: Ethernet 14, IPv4 20, UDP 8.
pub const NUMBER_OFFSET: usize = 42;
/// Shortest frame that can carry a number.
pub const MIN_FRAME: usize = NUMBER_OFFSET + 8;

/// One numbered frame of `size` bytes (without FCS) to UDP port `port`.
pub fn frame(number: u64, port: u16, size: usize) -> Vec<u8> {
    let size = size.max(MIN_FRAME);
    let ip_len = (size - 14) as u16;
    let mut f = Vec::with_capacity(size);
    f.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    let mut ip = [
        0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2,
    ];
    ip[2..4].copy_from_slice(&ip_len.to_be_bytes());
    let sum = ipv4_checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    f.extend(ip);
    f.extend(40_000u16.to_be_bytes());
    f.extend(port.to_be_bytes());
    f.extend((ip_len - 20).to_be_bytes());
    f.extend([0, 0]);
    f.extend(number.to_be_bytes());
    f.resize(size, 0xa5);
    f
}

fn ipv4_checksum(header: &[u8; 20]) -> u16 {
    let sum: u32 = header
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) as u16 + (folded >> 16) as u16)
}

/// The number in a frame made by [`frame`]; `None` for any other frame.
pub fn number_of(frame: &[u8]) -> Option<u64> {
    if frame.get(..6)? != [2, 0, 0, 0, 0, 2] {
        return None;
    }
    Some(u64::from_be_bytes(
        frame.get(NUMBER_OFFSET..MIN_FRAME)?.try_into().ok()?,
    ))
}

/// A raw sender on one interface of this network namespace.
pub struct Sender(Capture<Active>);

impl Sender {
    pub fn open(interface: &str) -> Result<Self> {
        let capture = Capture::from_device(interface)
            .and_then(|c| c.open())
            .with_context(|| {
                format!("cannot open {interface} for sending: run as root, in its network namespace")
            })?;
        Ok(Self(capture))
    }

    pub fn send(&mut self, frame: &[u8]) -> Result<()> {
        self.0.sendpacket(frame).context("frame not sent")
    }

    /// Sends frames `numbers` to `port`, one every `gap`.
    pub fn send_numbered(
        &mut self,
        numbers: std::ops::Range<u64>,
        port: u16,
        size: usize,
        gap: Duration,
    ) -> Result<()> {
        for n in numbers {
            self.send(&frame(n, port, size))?;
            if !gap.is_zero() {
                thread::sleep(gap);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_carries_its_number_and_a_valid_header_checksum() {
        let f = frame(77, 5000, 100);
        assert_eq!(f.len(), 100);
        assert_eq!(number_of(&f), Some(77));
        let sum: u32 = f[14..34]
            .chunks(2)
            .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
            .sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}
