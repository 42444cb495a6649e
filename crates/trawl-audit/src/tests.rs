use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, Instant},
};

use crate::*;

fn entry(key: &str) -> Entry {
    Entry {
        recorded_at: jiff::Timestamp::now(),
        action: Action::NetworkTapCreate,
        decision: Decision::Allowed,
        reason: "Accepted".into(),
        message: "NetworkTap mirror may be created".into(),
        actor: Actor {
            username: "alice".into(),
            uid: String::new(),
            groups: vec!["system:authenticated".into()],
        },
        resource: Resource {
            group: "trawl.cloud".into(),
            kind: "NetworkTap".into(),
            namespace: "trawl-system".into(),
            name: "mirror".into(),
            uid: String::new(),
        },
        request_id: key.into(),
        stable_key: format!("admission/{key}"),
        initiated_by: "trawl-operator".into(),
    }
}

/// Opens the ledger as soon as the last one in this process has let go of it.
fn open(directory: &Path) -> Result<(LocalLedger, Opened), LedgerError> {
    let start = Instant::now();
    loop {
        match LocalLedger::open(directory) {
            Err(LedgerError::Unavailable(why))
                if why.contains("another process") && start.elapsed() < Duration::from_secs(5) =>
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            other => return other,
        }
    }
}

#[tokio::test]
async fn a_record_is_in_the_file_when_commit_returns_and_names_the_one_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let (ledger, opened) = open(directory.path()).unwrap();
    assert_eq!(opened.walk, Walk::default());
    let mut records = Vec::new();
    for key in ["a", "b", "c"] {
        records.push(ledger.commit(entry(key)).await.unwrap());
        let text = fs::read_to_string(&opened.path).unwrap();
        let last: Record = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(Some(&last), records.last());
    }
    assert_eq!(records[0].previous, "");
    assert_eq!((records[1].previous.len(), records[2].previous.len()), (64, 64));
    assert_eq!(records[0].schema, "trawl.audit/v1");
    let mode = fs::metadata(&opened.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let walk = verify(&opened.path).unwrap();
    assert_eq!((walk.records, walk.unfinished), (3, 0));
}

#[tokio::test]
async fn a_retry_gets_the_first_record_and_another_content_under_its_key_is_a_conflict() {
    let directory = tempfile::tempdir().unwrap();
    let (ledger, opened) = open(directory.path()).unwrap();
    let first = ledger.commit(entry("a")).await.unwrap();
    ledger.commit(entry("b")).await.unwrap();
    let later = entry("a");
    assert_ne!(later.recorded_at, first.entry.recorded_at);
    assert_eq!(ledger.commit(later).await.unwrap(), first);
    let other = Entry {
        decision: Decision::Denied,
        ..entry("a")
    };
    assert!(matches!(
        ledger.commit(other.clone()).await,
        Err(LedgerError::Conflict)
    ));
    drop(ledger);
    let (ledger, _) = open(directory.path()).unwrap();
    assert_eq!(
        ledger.commit(entry("a")).await.unwrap(),
        first,
        "also after a restart"
    );
    assert!(matches!(ledger.commit(other).await, Err(LedgerError::Conflict)));
    assert_eq!(verify(&opened.path).unwrap().records, 2);
}

#[tokio::test]
async fn five_hundred_commits_at_once_are_one_chain_and_equal_ones_are_one_record() {
    let directory = tempfile::tempdir().unwrap();
    let (ledger, opened) = open(directory.path()).unwrap();
    let all = (0..500).map(|n| {
        let ledger = ledger.clone();
        tokio::spawn(async move { ledger.commit(entry(&(n % 250).to_string())).await.unwrap() })
    });
    let mut keys: Vec<_> = futures_all(all).await.into_iter().map(|r| r.ledger_key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 250);
    assert_eq!(verify(&opened.path).unwrap().records, 250);
}

async fn futures_all<T: Send + 'static>(tasks: impl Iterator<Item = tokio::task::JoinHandle<T>>) -> Vec<T> {
    let tasks: Vec<_> = tasks.collect();
    let mut out = Vec::new();
    for task in tasks {
        out.push(task.await.unwrap());
    }
    out
}

#[tokio::test]
async fn an_unfinished_last_line_is_cut_off_and_said() {
    let directory = tempfile::tempdir().unwrap();
    let (ledger, opened) = open(directory.path()).unwrap();
    ledger.commit(entry("a")).await.unwrap();
    drop(ledger);
    let whole = fs::read(&opened.path).unwrap();
    for part in [1, whole.len() / 2, whole.len() - 1] {
        let torn = [&whole[..], &whole[..part]].concat();
        fs::write(&opened.path, torn).unwrap();
        assert_eq!(verify(&opened.path).unwrap().unfinished, part as u64);
        let (ledger, opened) = open(directory.path()).unwrap();
        assert_eq!(opened.walk.unfinished, part as u64);
        assert_eq!(fs::read(&opened.path).unwrap(), whole);
        drop(ledger);
    }
}

#[tokio::test]
async fn a_changed_removed_or_inserted_line_keeps_the_ledger_shut_and_the_file_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let (ledger, opened) = open(directory.path()).unwrap();
    for key in ["a", "b", "c"] {
        ledger.commit(entry(key)).await.unwrap();
    }
    drop(ledger);
    let whole = fs::read_to_string(&opened.path).unwrap();
    let lines: Vec<_> = whole.split_inclusive('\n').collect();
    let changed = whole.replacen("alice", "mallo", 1);
    let removed = [lines[0], lines[2]].concat();
    let inserted = [lines[0], lines[0], lines[1], lines[2]].concat();
    let rubbish = [lines[0], "rubbish\n", lines[1]].concat();
    let headless = [lines[1], lines[2]].concat();
    for (damaged, at) in [
        (changed, "line 2"),
        (removed, "line 2"),
        (inserted, "line 2"),
        (rubbish, "line 2"),
        (headless, "line 1"),
    ] {
        fs::write(&opened.path, &damaged).unwrap();
        let why = open(directory.path()).unwrap_err().to_string();
        assert!(why.contains(at), "{why}");
        assert_eq!(fs::read_to_string(&opened.path).unwrap(), damaged);
        assert!(verify(&opened.path).is_err());
    }
}

#[test]
fn a_ledger_that_another_process_writes_to_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let _first = open(directory.path()).unwrap();
    let why = LocalLedger::open(directory.path()).unwrap_err().to_string();
    assert!(why.contains("another process"), "{why}");
}

#[tokio::test]
async fn secrets_and_control_characters_are_not_kept_and_a_message_has_a_bound() {
    let directory = tempfile::tempdir().unwrap();
    let (ledger, opened) = open(directory.path()).unwrap();
    let mut said = entry("a");
    said.message = format!("password=hunter2 \u{1b}[31m{}", "x".repeat(2000));
    let kept = ledger.commit(said.clone()).await.unwrap().entry;
    assert!(kept.message.len() <= 512, "{}", kept.message.len());
    let text = fs::read_to_string(&opened.path).unwrap();
    assert!(!text.contains("hunter2") && !text.contains('\u{1b}'));
    assert_eq!(
        ledger.commit(said).await.unwrap().entry,
        kept,
        "a retry is still the same"
    );
}

#[tokio::test]
async fn a_record_that_is_too_long_is_refused_and_its_neighbours_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (ledger, opened) = open(directory.path()).unwrap();
    let mut huge = entry("huge");
    huge.actor.groups = vec!["g".repeat(1 << 20)];
    assert!(matches!(
        ledger.commit(huge).await,
        Err(LedgerError::Unavailable(_))
    ));
    ledger.commit(entry("b")).await.unwrap();
    assert_eq!(verify(&opened.path).unwrap().records, 1);
}

#[tokio::test]
async fn nothing_is_committed_next_to_what_somebody_else_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let (ledger, opened) = open(directory.path()).unwrap();
    ledger.commit(entry("a")).await.unwrap();
    let whole = fs::read(&opened.path).unwrap();
    let touched = [&whole[..], b"x"].concat();
    fs::write(&opened.path, &touched).unwrap();
    let why = ledger.commit(entry("b")).await.unwrap_err().to_string();
    assert!(why.contains("somebody else"), "{why}");
    assert_eq!(fs::read(&opened.path).unwrap(), touched, "kept as evidence");
    fs::write(&opened.path, &whole).unwrap();
    ledger.commit(entry("b")).await.unwrap();
}

#[tokio::test]
async fn a_file_that_was_moved_removed_or_cut_while_open_takes_no_record_and_another_can_be_opened() {
    let moved = |path: &Path| fs::rename(path, path.with_extension("aside")).unwrap();
    let removed = |path: &Path| fs::remove_file(path).unwrap();
    let replaced = |path: &Path| {
        fs::remove_file(path).unwrap();
        fs::write(path, "").unwrap();
    };
    let cut = |path: &Path| {
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(0)
            .unwrap()
    };
    let all: [&dyn Fn(&Path); 4] = [&moved, &removed, &replaced, &cut];
    for harm in all {
        let directory = tempfile::tempdir().unwrap();
        let (ledger, opened) = open(directory.path()).unwrap();
        ledger.commit(entry("a")).await.unwrap();
        harm(&opened.path);
        let refused = ledger.commit(entry("b")).await.unwrap_err();
        assert!(matches!(refused, LedgerError::Unavailable(_)), "{refused}");
        while !ledger.is_lost() {
            tokio::task::yield_now().await;
        }
        let (another, opened) = open(directory.path()).unwrap();
        let kept = another.commit(entry("b")).await.unwrap();
        assert_eq!(kept.previous, "");
        assert_eq!(verify(&opened.path).unwrap().records, 1);
    }
}
