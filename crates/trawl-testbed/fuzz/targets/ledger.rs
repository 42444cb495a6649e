//! Any bytes as a ledger: no panic, and what holds as a whole holds again when it is cut after its last whole line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_audit::verify_from;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(walk) = verify_from(bytes) {
        assert_eq!(walk.bytes + walk.unfinished, bytes.len() as u64);
        let whole = verify_from(&bytes[..walk.bytes as usize]).expect("whole lines");
        assert_eq!(
            (whole.records, whole.unfinished, whole.last),
            (walk.records, 0, walk.last)
        );
    }
});
