//! Any text as a range header: the gateway never promises bytes that are not there, trawlctl never believes it.
#![no_main]

use http::{HeaderMap, HeaderValue, header};
use libfuzzer_sys::fuzz_target;

// The files themselves: their crates bring a Kubernetes client, which would multiply the time to compile.
#[path = "../../../trawlctl/src/download/content_range.rs"]
mod content_range;
#[path = "../../../trawl-gateway/src/range.rs"]
mod range;

fuzz_target!(|input: (u64, &str)| {
    let (size, text) = input;
    if let Ok(value) = HeaderValue::from_str(text) {
        let headers = HeaderMap::from_iter([(header::RANGE, value)]);
        if let range::Wanted::Part(part) = range::wanted(&headers, size, None) {
            assert!(part.start < part.end && part.end <= size, "{part:?} of {size}");
            let answer = format!("bytes {}-{}/{size}", part.start, part.end - 1);
            assert_eq!(content_range::part(&answer), Some((part.start, size)));
        }
    }
    if let Some((first, total)) = content_range::part(text) {
        assert!(first < total);
    }
    let _ = content_range::unsatisfied(text);
});
