//! Whatever a peer sends: no panic, no body over the limit, what is accepted survives being sent again, and what is
//! refused is refused in words that hold nothing of the peer's bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_control::codec::{Decoder, encode, parse};
use trawl_control::limits::{check, check_attach, check_trigger};
use trawl_control::server::read_request;
use trawl_control::{ErrorReply, MAX_MESSAGE_BYTES, PROTOCOL_VERSION, Reply, Request, RequestBody};

/// A word that no message of ours contains.
const MARK: &str = "hunter2";
const NOW_NS: u64 = 1_800_000_000_000_000_000;

fuzz_target!(|stream: &[u8]| {
    let mut decoder = Decoder::default();
    for mut piece in stream.chunks(7) {
        while !piece.is_empty() {
            match decoder.feed(&mut piece) {
                Ok(Some(body)) => {
                    assert!(body.len() <= MAX_MESSAGE_BYTES);
                    request(&body);
                    reply(&body);
                }
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }
});

fn request(body: &[u8]) {
    let body = match read_request(body) {
        Ok(body) => body,
        Err(refusal) => return silent(&refusal),
    };
    match &body {
        RequestBody::Capture(capture) => {
            let checked = check(capture).and_then(|()| check_trigger(capture, NOW_NS));
            if let Err(refusal) = checked {
                silent(&refusal);
            }
        }
        RequestBody::Attach(attach) => {
            if let Err(refusal) = check_attach(attach) {
                silent(&refusal);
            }
        }
        _ => {}
    }
    let request = Request {
        version: PROTOCOL_VERSION,
        body,
    };
    let frame = encode(&request).expect("what was read can be sent");
    assert_eq!(parse::<Request>(&frame[4..]).expect("and read again"), request);
}

fn silent(refusal: &ErrorReply) {
    assert!(!refusal.message.is_empty() && !refusal.message.contains(MARK));
    assert!(encode(&Reply::Error(refusal.clone())).is_ok());
}

/// What a client takes from a daemon that lies.
fn reply(body: &[u8]) {
    if let Ok(Reply::Ended(ended)) = parse::<Reply>(body) {
        // Numbers that add up to more than there are must not end the client.
        let _ = ended.balance.adds_up();
    }
}
