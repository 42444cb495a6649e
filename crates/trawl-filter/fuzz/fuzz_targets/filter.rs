//! Any text compiles or is refused, any frame is judged; nothing panics and nothing takes long.
//! `cargo +nightly fuzz run filter` in crates/trawl-filter.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &[u8])| {
    let (text, frame) = input;
    match trawl_filter::compile(text) {
        Ok(filter) => {
            let _ = filter.matches(frame, frame.len() as u32);
        }
        Err(error) => assert!(!matches!(error, trawl_filter::FilterError::TooSlow), "{text}"),
    }
});
