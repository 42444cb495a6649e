//! Whatever a peer sends: no panic, no body over the limit, and what is accepted survives being sent again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_control::codec::{Decoder, encode, parse};
use trawl_control::{MAX_MESSAGE_BYTES, Reply, Request};

fuzz_target!(|stream: &[u8]| {
    let mut decoder = Decoder::default();
    for mut piece in stream.chunks(7) {
        while !piece.is_empty() {
            match decoder.feed(&mut piece) {
                Ok(Some(body)) => {
                    assert!(body.len() <= MAX_MESSAGE_BYTES);
                    if let Ok(request) = parse::<Request>(&body) {
                        let frame = encode(&request).expect("what was read can be sent");
                        assert_eq!(parse::<Request>(&frame[4..]).expect("and read again"), request);
                    }
                    let _ = parse::<Reply>(&body);
                }
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }
});
