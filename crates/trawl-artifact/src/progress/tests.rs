//! Records written and read back, and every way in which a directory can lie.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

const UID: &str = "0b5e0f1a-uid";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap()
}

fn filter() -> ProgressBody {
    ProgressBody::Filter(FilterVerdict {
        accepted: true,
        rejects_all: false,
        message: None,
    })
}

fn started() -> ProgressBody {
    let (interface, mode) = ("mirror0".into(), "zero-copy".into());
    ProgressBody::Started(CaptureStarted {
        interface,
        mode,
        started_at: at(1),
    })
}

fn ended() -> ProgressBody {
    ProgressBody::Ended(CaptureEnded {
        stop_reason: StopReason::Duration,
        ended_at: at(2),
        packet_count: 1,
        size_bytes: 200,
        sha256: "a".repeat(64),
    })
}

fn result(reason: Option<FailureReason>) -> ProgressBody {
    ProgressBody::Result(CaptureResult {
        outcome: if reason.is_none() {
            Outcome::Succeeded
        } else {
            Outcome::Failed
        },
        reason,
        stop_reason: None,
        packet_count: Some(0),
        size_bytes: None,
        sha256: None,
        exit_code: reason.map_or(0, FailureReason::exit_code),
        message: None,
    })
}

fn written(bodies: &[ProgressBody]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let writer = ProgressWriter::new(directory.path(), UID);
    for (n, body) in bodies.iter().enumerate() {
        writer.write(body.clone(), at(n as i64)).unwrap();
    }
    directory
}

fn read(directory: &Path) -> Result<Vec<ProgressRecord>, ProgressError> {
    ProgressReader::new(directory, UID).read()
}

/// Changes one record on disk behind the writer's back.
fn tamper(directory: &Path, file: &str, change: impl FnOnce(&mut Value)) {
    let path = directory.join(file);
    let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut value);
    fs::write(&path, value.to_string()).unwrap();
}

#[test]
fn what_was_written_is_read_in_order_and_nothing_else_is_left() {
    let bodies = [filter(), started(), ended(), result(None)];
    let directory = written(&bodies);
    let read = read(directory.path()).unwrap();
    assert_eq!(read.into_iter().map(|r| r.body).collect::<Vec<_>>(), bodies);
    let mut files: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(files, RECORD_FILES);
}

#[test]
fn an_empty_directory_is_no_error_and_a_missing_one_neither() {
    let directory = tempfile::tempdir().unwrap();
    assert!(read(directory.path()).unwrap().is_empty());
    assert!(read(&directory.path().join("later")).unwrap().is_empty());
}

#[test]
fn a_record_is_never_replaced() {
    let directory = written(&[filter()]);
    let before = fs::read(directory.path().join("01-filter.json")).unwrap();
    let again = ProgressWriter::new(directory.path(), UID).write(filter(), at(9));
    assert!(
        matches!(
            again,
            Err(ProgressError::AlreadyWritten {
                file: "01-filter.json"
            })
        ),
        "{again:?}"
    );
    assert_eq!(fs::read(directory.path().join("01-filter.json")).unwrap(), before);
}

#[test]
fn a_half_written_record_of_a_killed_writer_is_not_seen_and_not_in_the_way() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(".01-filter.json.tmp"), b"{\"sche").unwrap();
    assert!(read(directory.path()).unwrap().is_empty());
    ProgressWriter::new(directory.path(), UID)
        .write(filter(), at(0))
        .unwrap();
    assert_eq!(read(directory.path()).unwrap().len(), 1);
}

#[test]
fn a_failure_may_come_at_any_time_and_a_success_only_at_the_end() {
    let failed = || result(Some(FailureReason::CaptureFailed));
    for bodies in [
        vec![failed()],
        vec![filter(), failed()],
        vec![filter(), started(), failed()],
        vec![filter(), started(), ended(), failed()],
        vec![filter(), started(), ended(), result(None)],
    ] {
        assert!(read(written(&bodies).path()).is_ok(), "{bodies:?}");
    }
    for bodies in [
        vec![result(None)],
        vec![filter(), result(None)],
        vec![filter(), started(), result(None)],
        vec![started()],
        vec![filter(), ended()],
        vec![ended()],
    ] {
        let read = read(written(&bodies).path());
        assert!(
            matches!(read, Err(ProgressError::WrongOrder { .. })),
            "{bodies:?}: {read:?}"
        );
    }
}

#[test]
fn a_capture_cannot_start_after_its_filter_was_refused() {
    let refused = FilterVerdict {
        accepted: false,
        rejects_all: true,
        message: Some("never matches".into()),
    };
    let directory = written(&[ProgressBody::Filter(refused), started()]);
    assert!(matches!(
        read(directory.path()),
        Err(ProgressError::WrongOrder { .. })
    ));
}

#[test]
fn a_record_older_than_its_predecessor_is_out_of_order() {
    let directory = tempfile::tempdir().unwrap();
    let writer = ProgressWriter::new(directory.path(), UID);
    writer.write(filter(), at(5)).unwrap();
    writer.write(started(), at(4)).unwrap();
    assert!(matches!(
        read(directory.path()),
        Err(ProgressError::WrongOrder { .. })
    ));
}

#[test]
fn symbolic_links_and_other_things_are_refused() {
    let target = written(&[filter()]);
    let directory = tempfile::tempdir().unwrap();
    symlink(
        target.path().join("01-filter.json"),
        directory.path().join("01-filter.json"),
    )
    .unwrap();
    assert!(matches!(
        read(directory.path()),
        Err(ProgressError::NotRegular { .. })
    ));
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("01-filter.json")).unwrap();
    assert!(matches!(
        read(directory.path()),
        Err(ProgressError::NotRegular { .. })
    ));
}

#[test]
fn a_record_over_16_kib_is_refused_unread() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("01-filter.json"), vec![b' '; 16 * 1024 + 1]).unwrap();
    assert!(matches!(
        read(directory.path()),
        Err(ProgressError::TooLarge { .. })
    ));
}

#[test]
fn a_tampered_record_is_refused_for_the_reason_that_is_wrong_with_it() {
    type Change = fn(&mut Value);
    type Expected = fn(&ProgressError) -> bool;
    let table: [(Change, Expected); 9] = [
        (
            |v| v["schema"] = json!("trawl.capture-progress/v2"),
            |e| matches!(e, ProgressError::Schema { .. }),
        ),
        (
            |v| v["jobUid"] = json!("another"),
            |e| matches!(e, ProgressError::WrongJob { .. }),
        ),
        (
            |v| v["sequence"] = json!(2),
            |e| matches!(e, ProgressError::WrongSequence { .. }),
        ),
        (
            |v| v["extra"] = json!(1),
            |e| matches!(e, ProgressError::Malformed { .. }),
        ),
        (
            |v| v["body"]["value"]["extra"] = json!(1),
            |e| matches!(e, ProgressError::Malformed { .. }),
        ),
        (
            |v| v["recordedAt"] = json!("yesterday"),
            |e| matches!(e, ProgressError::Malformed { .. }),
        ),
        (
            |v| v["body"]["value"]["message"] = json!("x".repeat(513)),
            |e| matches!(e, ProgressError::Field { .. }),
        ),
        (
            |v| *v = json!([]),
            |e| matches!(e, ProgressError::Malformed { .. }),
        ),
        (
            |v| v["body"] = json!({"type": "Started", "value": {"interface": "a", "mode": "copy", "startedAt": "2026-08-29T19:30:20Z"}}),
            |e| matches!(e, ProgressError::WrongSequence { .. }),
        ),
    ];
    for (n, (change, expected)) in table.into_iter().enumerate() {
        let directory = written(&[filter()]);
        tamper(directory.path(), "01-filter.json", change);
        let error = read(directory.path()).unwrap_err();
        assert!(expected(&error), "change {n}: {error}");
        assert!(error.to_string().starts_with("01-filter.json: "), "{error}");
    }
}

#[test]
fn a_result_must_agree_with_itself() {
    for (field, value) in [
        ("exitCode", json!(13)),
        ("reason", json!("UploadFailed")),
        ("outcome", json!("Failed")),
    ] {
        let directory = written(&[filter(), started(), ended(), result(None)]);
        tamper(directory.path(), "09-result.json", |v| {
            v["body"]["value"][field] = value
        });
        let error = read(directory.path()).unwrap_err();
        assert!(matches!(error, ProgressError::Field { .. }), "{field}: {error}");
    }
}
