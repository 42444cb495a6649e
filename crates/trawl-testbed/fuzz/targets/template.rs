//! Any text is a template or an error; what an event fills in is one word in each slot and changes no other word.
//! The text ends with the first line; what follows is the event.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_api::TriggerType;
use trawl_filter::{Options, words};
use trawl_policy::{Address, Port, Protocol, Severity, Template, Values, check};

/// Stands in a copy of every text, and must stand in no message.
const MARK: &str = "confidential0815";

/// An event made of bytes.
fn event(bytes: &[u8]) -> Values {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(1);
    let address = |from: usize| {
        let bytes: [u8; 16] = std::array::from_fn(|at| byte(from + at));
        let address: std::net::IpAddr = match bytes[0] {
            0 => [bytes[1], bytes[2], bytes[3], bytes[4]].into(),
            _ => bytes.into(),
        };
        Some(Address::from(address))
    };
    let port = |at: usize| Port::new(u32::from(u16::from_be_bytes([byte(at), byte(at + 1)]))).ok();
    Values {
        source_ip: address(0),
        source_port: port(32),
        destination_ip: address(16),
        destination_port: port(34),
        protocol: Protocol::ALL.get(usize::from(byte(36))).copied(),
        rule_id: Some(u32::from_be_bytes([byte(37), byte(38), byte(39), byte(40)])),
        severity: Severity::new(byte(41).into()).ok(),
    }
}

fuzz_target!(|input: &[u8]| {
    let (text, rest) = match input.iter().position(|b| *b == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &[][..]),
    };
    let Ok(text) = str::from_utf8(text) else { return };
    if let Ok(text) = str::from_utf8(rest) {
        let _ = (Address::parse(text), Protocol::parse(text));
    }
    for trigger in [TriggerType::SuricataAlert, TriggerType::HubbleDrop] {
        for marked in [format!("{text} {MARK}"), text.replace(' ', MARK)] {
            assert!(
                !refusal(&marked, trigger).contains(MARK),
                "a refusal repeats the text"
            );
        }
        let template = match Template::parse(text, trigger) {
            Ok(template) => template,
            Err(error) => {
                assert!(error.to_string().is_ascii());
                continue;
            }
        };
        let (known, event) = (event(&[]), event(rest));
        let (Ok(one), Ok(other)) = (template.render(&known), template.render(&event)) else {
            continue;
        };
        let (Ok(one), Ok(other)) = (words::split(&one), words::split(&other)) else {
            continue;
        };
        assert_eq!(
            one.len(),
            other.len(),
            "an event changed how many words there are"
        );
        let differing = one
            .iter()
            .zip(&other)
            .filter(|(one, other)| one.text != other.text);
        let slots = template.placeholders().count();
        assert!(
            differing.count() <= slots,
            "an event changed a word that it does not fill in"
        );
        for (one, other) in one.iter().zip(&other) {
            assert_eq!(one.kind, other.kind, "an event changed what a word is");
        }
    }
});

/// Why a text is no template; empty when it is one.
fn refusal(text: &str, trigger: TriggerType) -> String {
    match Template::parse(text, trigger) {
        Err(error) => error.to_string(),
        Ok(template) => {
            check(&template, &Options::default()).map_or_else(|error| error.to_string(), |_| String::new())
        }
    }
}
