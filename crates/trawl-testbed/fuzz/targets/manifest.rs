//! Any bytes as a manifest: no panic, and what is accepted survives being written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_artifact::manifest::Manifest;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(manifest) = Manifest::from_json(bytes) {
        let again = manifest
            .to_json()
            .expect("a manifest that was read can be written");
        assert_eq!(Manifest::from_json(&again).expect("and read again"), manifest);
    }
});
