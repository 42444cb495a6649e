//! Any text as a filter template: parsed or refused; what is rendered has one word for each placeholder, and no
//! refusal repeats the text. The first byte chooses the trigger.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_api::TriggerType;
use trawl_filter::Options;
use trawl_policy::{Event, Template, check};

/// Stands in every text, and must stand in no message.
const MARK: &str = "confidential0815";

fuzz_target!(|input: &[u8]| {
    let Some((trigger, text)) = input.split_first() else {
        return;
    };
    let Ok(text) = str::from_utf8(text) else { return };
    let trigger = match trigger % 2 {
        0 => TriggerType::SuricataAlert,
        _ => TriggerType::HubbleDrop,
    };
    for text in [text.to_owned(), format!("{text} {MARK}"), text.replace(' ', MARK)] {
        if let Err(message) = judge(&text, trigger) {
            assert!(!message.contains(MARK), "a refusal repeats the text");
        }
    }
});

fn judge(text: &str, trigger: TriggerType) -> Result<(), String> {
    let template = Template::parse(text, trigger).map_err(|error| error.to_string())?;
    for event in Event::ALL {
        let Ok(rendered) = template.render(&event.specimen()) else {
            continue;
        };
        assert!(rendered.len() <= trawl_filter::MAX_FILTER_BYTES);
        assert!(!rendered.contains(['{', '}']), "a placeholder was left");
    }
    check(&template, &Options::default()).map_err(|error| error.to_string())?;
    Ok(())
}
