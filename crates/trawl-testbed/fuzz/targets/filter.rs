//! Any text compiles or is refused, and is explained; nothing panics. The text ends with the first line, the rest is
//! a frame.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_filter::{FilterError, MAX_FILTER_BYTES, Options, compile_with, trace, words};

fuzz_target!(|input: &[u8]| {
    let (text, frame) = match input.iter().position(|b| *b == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &[][..]),
    };
    let Ok(text) = str::from_utf8(text) else { return };
    let options = Options {
        literal: false,
        tunnels: true,
    };
    let length = frame.len() as u32;
    match compile_with(text, &options) {
        Ok(compiled) => {
            assert!(
                words::split(text).is_ok(),
                "libpcap was asked about words that were refused"
            );
            let _ = compiled.filter.matches(&frame[..frame.len() / 2], length);
            let matched = compiled.filter.matches(frame, length);
            let _ = compiled.expansion.sentences();
            // Written out in full it is the same filter, unless that is longer or nested deeper than what is read.
            let nested =
                compiled.normalized.matches(['(', '!']).count() + compiled.normalized.matches("not").count();
            if compiled.normalized.len() <= MAX_FILTER_BYTES && nested < 60 {
                match compile_with(&compiled.normalized, &options) {
                    Ok(again) => {
                        assert_eq!(again.normalized, compiled.normalized);
                        assert_eq!(again.filter.matches(frame, length), matched);
                    }
                    Err(FilterError::TooSlow | FilterError::Internal(_)) => {}
                    Err(e) => panic!("{e}"),
                }
            }
            match trace(text, &options, frame, length) {
                Ok(traced) => assert_eq!(traced.matched, matched),
                Err(FilterError::TooSlow | FilterError::Internal(_)) => {}
                Err(e) => panic!("{e}"),
            }
        }
        Err(FilterError::TooLong { .. } | FilterError::NotPrintable { .. }) => {
            assert!(words::split(text).is_err());
        }
        // Slow texts keep their places; what libpcap made must always be understood.
        Err(FilterError::Internal(why)) => assert!(why.starts_with("too many"), "{why}"),
        Err(FilterError::Refused { position, .. }) => assert!((1..=text.len() + 1).contains(&position)),
        Err(FilterError::Syntax { .. } | FilterError::RejectsAll | FilterError::TooSlow) => {}
    }
});
