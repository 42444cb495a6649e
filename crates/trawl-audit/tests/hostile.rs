//! A ledger whose process is killed and whose disk is full.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use trawl_audit::{Action, Actor, Decision, Entry, Ledger, LedgerError, LocalLedger, Resource, verify};

const CHILD: &str = "TRAWL_AUDIT_TEST_CHILD";

fn entry(key: &str) -> Entry {
    Entry {
        recorded_at: jiff::Timestamp::now(),
        action: Action::CaptureJobManualCreate,
        decision: Decision::Allowed,
        reason: "Accepted".into(),
        message: "CaptureJob c may be created".into(),
        actor: Actor {
            username: "alice".into(),
            ..Actor::default()
        },
        resource: Resource {
            kind: "CaptureJob".into(),
            ..Resource::default()
        },
        request_id: key.into(),
        stable_key: key.into(),
        initiated_by: "test".into(),
    }
}

/// Commits without end and prints each key once it is acknowledged.
async fn commit_forever(directory: &Path) -> ! {
    let (ledger, opened) = LocalLedger::open(directory).expect("the child opens it");
    for n in opened.walk.records.. {
        let kept = ledger.commit(entry(&n.to_string())).await.expect("committed");
        println!("\ncommitted {}", kept.entry.stable_key);
    }
    unreachable!("the parent kills it long before")
}

#[tokio::test]
async fn all_that_was_acknowledged_is_there_after_the_process_was_killed() {
    if let Ok(directory) = std::env::var(CHILD) {
        commit_forever(Path::new(&directory)).await;
    }
    let directory = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "--nocapture",
                "all_that_was_acknowledged_is_there_after_the_process_was_killed",
            ])
            .env(CHILD, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = Vec::new();
        while acknowledged.len() < 50 + round * 17 {
            let line = lines.next().expect("the child goes on").unwrap();
            acknowledged.extend(line.strip_prefix("committed ").map(str::to_owned));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before it died.
        let rest = lines.map_while(Result::ok);
        acknowledged.extend(rest.filter_map(|l| Some(l.strip_prefix("committed ")?.to_owned())));

        let (ledger, opened) = LocalLedger::open(directory.path()).unwrap();
        let text = std::fs::read_to_string(&opened.path).unwrap();
        for key in &acknowledged {
            assert!(
                text.contains(&format!("\"stableKey\":\"{key}\"")),
                "{key} is lost"
            );
        }
        assert_eq!(verify(&opened.path).unwrap().records, opened.walk.records);
        drop(ledger);
        // The thread lets go of the file a moment later.
        while let Err(LedgerError::Unavailable(_)) = LocalLedger::open(directory.path()) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// A file system of 64 KiB of memory.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(directory.path())
            .status()
            .unwrap();
        assert!(mounted.success(), "mounting a tmpfs needs root");
        Self(directory)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn a_full_disk_refuses_and_leaves_the_file_whole_and_room_makes_it_work_again() {
    let small = Small::mount();
    let ballast = small.0.path().join("ballast");
    std::fs::write(&ballast, vec![0; 20 << 10]).unwrap();
    let (ledger, opened) = LocalLedger::open(small.0.path()).unwrap();
    let mut kept = 0;
    let why = loop {
        match ledger.commit(entry(&kept.to_string())).await {
            Ok(_) => kept += 1,
            Err(LedgerError::Unavailable(why)) => break why,
            Err(other) => panic!("{other}"),
        }
        assert!(kept < 1000, "64 KiB do not hold that");
    };
    assert!(why.contains("No space left"), "{why}");
    let walk = verify(&opened.path).unwrap();
    assert_eq!((walk.records, walk.unfinished), (kept, 0));
    assert!(ledger.commit(entry("again")).await.is_err());
    std::fs::remove_file(&ballast).unwrap();
    ledger.commit(entry("again")).await.unwrap();
    assert_eq!(verify(&opened.path).unwrap().records, kept + 1);
}
