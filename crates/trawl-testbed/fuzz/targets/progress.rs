//! Any bytes as any record: no panic, and what is accepted survives being written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_artifact::progress::{RECORD_FILES, parse};

fuzz_target!(|bytes: &[u8]| {
    for (file, sequence) in RECORD_FILES.into_iter().zip([1, 2, 3, 9]) {
        if let Ok(record) = parse(bytes, file, sequence, "uid") {
            let again = serde_json::to_vec(&record).expect("a record that was read can be written");
            assert_eq!(
                parse(&again, file, sequence, "uid").expect("and read again"),
                record
            );
        }
    }
});
