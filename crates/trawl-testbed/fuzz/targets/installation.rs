//! Any text as a configuration file: no panic, and what is accepted survives being written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_config::installation::Installation;

fuzz_target!(|text: &str| {
    if let Ok(config) = Installation::from_yaml(text) {
        let again = serde_json::to_string(&config).expect("a file that was read can be written");
        assert_eq!(Installation::from_yaml(&again).expect("and read again"), config);
    }
});
