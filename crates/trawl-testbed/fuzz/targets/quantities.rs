//! Any text as a duration and as a size: no panic, and what is accepted keeps its words and its value.
#![no_main]
#![allow(dead_code, unused_imports)]

use libfuzzer_sys::fuzz_target;

// The files themselves: their crate brings a Kubernetes client, which would multiply the time to compile.
#[path = "../../../trawl-api/src/limits.rs"]
mod limits;
#[path = "../../../trawl-api/src/quantities/mod.rs"]
mod quantities;

use quantities::{ByteSize, GoDuration};

fuzz_target!(|text: &str| {
    if let Ok(duration) = GoDuration::parse(text) {
        assert_eq!(duration.to_string(), text);
        assert!(u128::from(duration.as_millis()) <= duration.get().as_millis());
        let nanos = format!("{}ns", duration.get().as_nanos());
        // Digits are limited too, so that not every duration can be written in nanoseconds.
        if let Ok(same) = GoDuration::parse(&nanos) {
            assert_eq!(same, duration);
        }
    }
    if let Ok(size) = ByteSize::parse(text) {
        assert_eq!(size.to_string(), text);
        if let Ok(same) = ByteSize::parse(&size.bytes().to_string()) {
            assert_eq!(same, size);
        }
    }
});
