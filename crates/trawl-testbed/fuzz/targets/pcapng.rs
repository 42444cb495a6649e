//! Any bytes, in any pieces: no panic, no count beyond the file, and the same verdict whatever the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_artifact::pcapng::Walker;

fuzz_target!(|input: (u8, &[u8])| {
    let (chunk, bytes) = input;
    let mut whole = Walker::new();
    let mut pieces = Walker::new();
    let _ = whole.push(bytes);
    for piece in bytes.chunks(usize::from(chunk).max(1)) {
        let _ = pieces.push(piece);
    }
    assert_eq!(whole.summary(), pieces.summary());
    assert!(whole.summary().whole_bytes <= bytes.len() as u64);
    // The shortest packet block has 16 bytes.
    assert!(whole.summary().packets <= bytes.len() as u64 / 16);
    let salvaged = whole.summary().clone();
    assert_eq!(whole.finish(), pieces.finish());
    let cut = &bytes[..salvaged.whole_bytes as usize];
    if !cut.is_empty() {
        let mut again = Walker::new();
        again.push(cut).expect("what was whole stays whole");
        assert_eq!(
            again.finish().expect("a salvaged file is a file").packets,
            salvaged.packets
        );
    }
});
