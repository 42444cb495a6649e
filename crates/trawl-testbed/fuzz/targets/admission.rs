//! Any body as a request for admission: understood or refused, and whatever object it carries is judged and completed
//! without a panic.
#![no_main]
#![allow(dead_code)]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use trawl_admission::{Caller, Kind, Operation, Request, Rules, TapReference, mutate, validate};
use trawl_api::MirrorProvider;

// The file itself: its crate brings every adapter of the operator.
#[path = "../../../trawl-operator/src/webhook/review.rs"]
mod review;

fuzz_target!(|body: &[u8]| {
    let Ok(asked) = review::Asked::read(body) else {
        return;
    };
    let rules = Rules {
        namespace: "trawl-system".into(),
        worker: "system:serviceaccount:trawl-system:trawl-worker".into(),
        retention_administrators: vec!["trawl:retention-administrators".into()],
        retention_ceiling: Duration::from_secs(14 * 24 * 3600),
        providers: vec![MirrorProvider::MikroTikRouterOS7],
        filter: trawl_filter::Options::default(),
    };
    for kind in Kind::ALL {
        let request = Request {
            kind,
            operation: match asked.operation.as_str() {
                "UPDATE" => Operation::Update,
                "DELETE" => Operation::Delete,
                _ => Operation::Create,
            },
            namespace: asked.namespace.clone(),
            object: asked.object.clone(),
            old: asked.old_object.clone(),
            caller: Caller {
                username: asked.user_info.username.clone(),
                groups: asked.user_info.groups.clone().unwrap_or_default(),
            },
            now: jiff::Timestamp::UNIX_EPOCH,
            tap: TapReference::Unknown,
        };
        for warning in validate(&rules, &request).warnings {
            assert!(warning.len() <= 256);
        }
        assert!(mutate(&rules, &request).patch.iter().all(Value::is_object));
    }
});
