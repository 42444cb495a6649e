//! Webhooks that are down, and a ledger that is: nothing happens that nobody judged and recorded.

use std::process::Command;

use serde_json::json;
use trawl_audit::Decision;

use crate::cases;
use crate::support::hooks::{Hooks, named, tap};

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_that_are_down_refuse_until_they_are_back() {
    let mut hooks = Hooks::new().await;
    let stored = hooks.analyst().create(&tap("before")).await.unwrap();
    hooks.stop().await;
    for sample in cases::samples() {
        let object = named(&sample, "down");
        let refusal = hooks.admin().create(&object).await.expect_err("nobody judges");
        assert_eq!(refusal.code, 500, "{sample}: {refusal:?}");
        assert!(
            refusal.message.contains("failed calling webhook"),
            "{}",
            refusal.message
        );
        assert_eq!(hooks.admin().get(&object).await.expect_err("not there").code, 404);
    }
    assert!(
        hooks.admin().delete(&stored).await.is_err(),
        "nor is anything deleted"
    );
    hooks.start().await;
    hooks.analyst().create(&tap("after")).await.expect("served again");
    hooks.end().await;
}

/// A file system in memory that holds next to nothing.
struct Full(tempfile::TempDir);

impl Full {
    fn mount() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"])
            .arg(directory.path())
            .status();
        assert!(mounted.unwrap().success(), "mounting a tmpfs needs root");
        Self(directory)
    }

    fn ballast(&self) -> std::path::PathBuf {
        self.0.path().join("ballast")
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_without_room_refuses_what_it_cannot_record_and_nothing_is_created() {
    let disk = Full::mount();
    let mut hooks = Hooks::installed().await;
    hooks.keep_ledger_in(disk.0.path());
    hooks.start().await;
    hooks.analyst().create(&tap("before")).await.unwrap();
    // As much as there is room for.
    let _ = std::fs::write(disk.ballast(), vec![0; 64 << 10]);
    let records = hooks.records().len();
    let refusal = loop {
        // The page that the last record began may take a few more.
        match hooks
            .analyst()
            .create(&tap(&format!("room-{}", hooks.records().len())))
            .await
        {
            Ok(_) => assert!(hooks.records().len() < records + 10, "the disk is not full"),
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal.code, 500, "{refusal:?}");
    for words in ["AuditUnavailable", "No space left", "docs/audit.md"] {
        assert!(refusal.message.contains(words), "{}", refusal.message);
    }
    let object = tap("full");
    hooks.analyst().create(&object).await.expect_err("still full");
    assert_eq!(
        hooks
            .admin()
            .get(&object)
            .await
            .expect_err("nothing is created")
            .code,
        404
    );
    // A refusal needs no ledger to stay one, and is told for its own reason.
    let mut bad = named("capturejob-manual", "bad");
    bad["spec"]["filter"] = "host and".into();
    let refusal = hooks.analyst().create(&bad).await.expect_err("refused");
    assert_eq!((refusal.code, refusal.causes[0].0.as_str()), (422, "spec.filter"));
    // Controllers go on, and so does the deletion of a job.
    let mut before = hooks.admin().get(&tap("before")).await.unwrap();
    before["metadata"]["finalizers"] = json!(["trawl.cloud/test"]);
    before = hooks
        .analyst()
        .replace(&before)
        .await
        .expect("a finalizer needs no record");
    before["metadata"]["finalizers"] = json!([]);
    hooks
        .analyst()
        .replace(&before)
        .await
        .expect("nor does taking it away");
    assert!(
        hooks
            .records()
            .iter()
            .all(|r| r.entry.decision == Decision::Allowed)
    );

    std::fs::remove_file(disk.ballast()).unwrap();
    hooks
        .analyst()
        .create(&object)
        .await
        .expect("there is room again");
    assert_eq!(hooks.records_of("full").len(), 1);
    hooks.end().await;
}
