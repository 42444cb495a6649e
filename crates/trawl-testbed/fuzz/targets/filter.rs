//! Any text compiles or is refused, any frame is judged; nothing panics. The text ends with the first line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_filter::{FilterError, compile, words};

fuzz_target!(|input: &[u8]| {
    let (text, frame) = match input.iter().position(|b| *b == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &[][..]),
    };
    let Ok(text) = str::from_utf8(text) else { return };
    let split = words::split(text);
    match compile(text) {
        Ok(filter) => {
            assert!(split.is_ok(), "libpcap was asked about words that were refused");
            for length in [frame.len(), frame.len() / 2] {
                let _ = filter.matches(&frame[..length], frame.len() as u32);
            }
        }
        // Its words must be all that is wrong with a text that did not reach libpcap.
        Err(FilterError::TooLong { .. } | FilterError::NotPrintable { .. } | FilterError::Refused { .. }) => {
            assert!(split.is_err());
        }
        // Slow texts keep their places; what libpcap made must always be understood.
        Err(FilterError::Internal(why)) => assert!(why.starts_with("too many"), "{why}"),
        Err(FilterError::Syntax { .. } | FilterError::RejectsAll | FilterError::TooSlow) => {}
    }
});
