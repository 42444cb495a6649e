//! Any bytes as a capture file: no panic, no packet beyond the file, and one verdict for one file however it is read.
#![no_main]

use std::io::{self, Read};

use libfuzzer_sys::fuzz_target;
use trawl_traffic::file::Packets;
use trawl_traffic::verify::{Wanted, verify};

/// Gives a few bytes at a time.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.len().min(buffer.len()).min(self.1);
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let pieces = Pieces(bytes, usize::from(piece).max(1));
    let wanted = Wanted::default();
    let whole = verify(bytes, &wanted).expect("memory can be read");
    assert_eq!(whole, verify(pieces, &wanted).expect("memory can be read"));
    assert_eq!(whole.bytes, bytes.len() as u64);
    let Ok(mut packets) = Packets::new(bytes) else {
        assert!(!whole.is_good());
        return;
    };
    let (mut count, mut total) = (0, 0);
    while let Ok(Some(packet)) = packets.next_packet() {
        count += 1;
        total += packet.bytes.len();
    }
    assert!(total <= bytes.len());
    assert_eq!(count, whole.packets);
});
