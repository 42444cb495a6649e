//! Any text on its way out: no panic, one line, and a second time changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_artifact::{
    sanitize::sanitize,
    text::{MAX_MESSAGE_BYTES, clean},
};

fuzz_target!(|text: &str| {
    let once = sanitize(text);
    assert!(!once.contains(char::is_control));
    assert_eq!(sanitize(&once), once);
    let cut = clean(&once, MAX_MESSAGE_BYTES);
    assert!(cut.len() <= MAX_MESSAGE_BYTES && once.starts_with(&cut));
});
