//! The whole Job against a daemon that misbehaves by name, with a store in a directory.

mod fake;

use std::path::{Path, PathBuf};
use std::time::Duration;

use fake::Scenario;
use tokio::sync::watch;
use trawl_artifact::manifest::Manifest;
use trawl_artifact::outcome::{FailureReason, Outcome, StopReason};
use trawl_artifact::progress::{CaptureResult, ProgressBody, ProgressReader};
use trawl_artifact::{Verifier, VerifyReport, keys};
use trawl_config::pods::{ObjectIdentity, RunnerSpec};
use trawl_config::store::{DirectoryConfig, StoreBackend, StoreConfig};
use trawl_control::ErrorCode;

use crate::{Settings, run};

/// Everything that one Job touches, in one directory.
struct Stage {
    root: tempfile::TempDir,
    spec: RunnerSpec,
    stop: watch::Sender<bool>,
    start_budget: Duration,
}

impl Stage {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["work", "progress", "store"] {
            std::fs::create_dir(root.path().join(directory)).unwrap();
        }
        let id = |name: &str| ObjectIdentity {
            namespace: "trawl-system".into(),
            name: name.into(),
            uid: format!("{name}-uid"),
        };
        let path = root.path().join("store").to_str().unwrap().to_owned();
        let spec = RunnerSpec {
            job: id("job"),
            tap: id("tap"),
            node: "node-1".into(),
            filter: Some("tcp port 443".into()),
            filter_tunnels: true,
            duration_ms: 2_000,
            max_size_bytes: 1 << 20,
            snaplen: 0,
            trigger_ns: None,
            pre_trigger_ms: 0,
            requester: Some("alice".into()),
            upload_budget_ms: 2_000,
            store: StoreConfig {
                profile: "local".into(),
                backend: StoreBackend::Directory(DirectoryConfig { path }),
            },
        };
        Self {
            root,
            spec,
            stop: watch::channel(false).0,
            start_budget: Duration::from_secs(5),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn serve(&self, scenario: Scenario) {
        fake::serve(&self.path("captured.sock"), scenario);
    }

    async fn run(&self) -> i32 {
        let settings = Settings {
            socket: self.path("captured.sock"),
            work_dir: self.path("work"),
            progress_dir: self.path("progress"),
            credentials_dir: self.path("credentials"),
            start_budget: self.start_budget,
        };
        run(self.spec.clone(), settings, self.stop.subscribe()).await
    }

    /// The records as the reporter will accept them, and the last word among them.
    fn records(&self) -> (Vec<ProgressBody>, CaptureResult) {
        let read = ProgressReader::new(self.path("progress"), "job-uid")
            .read()
            .unwrap();
        let bodies: Vec<_> = read.into_iter().map(|record| record.body).collect();
        let Some(ProgressBody::Result(result)) = bodies.last().cloned() else {
            panic!("no result: {bodies:?}")
        };
        (bodies, result)
    }

    fn stored(&self, key: &str) -> Option<Vec<u8>> {
        std::fs::read(Path::new(&self.path("store")).join(key)).ok()
    }

    /// The artifact, verified against its manifest.
    fn artifact(&self) -> (Manifest, VerifyReport) {
        let manifest = self
            .stored(&keys::manifest_key("trawl-system", "job-uid"))
            .expect("no manifest");
        let manifest = Manifest::from_json(&manifest).unwrap();
        let mut verifier = Verifier::new();
        verifier.push(
            &self
                .stored(&keys::capture_key("trawl-system", "job-uid"))
                .expect("no capture"),
        );
        let report = verifier.finish(&manifest).unwrap();
        (manifest, report)
    }

    fn assert_nothing_stored(&self) {
        assert_eq!(self.stored(&keys::capture_key("trawl-system", "job-uid")), None);
        assert_eq!(self.stored(&keys::manifest_key("trawl-system", "job-uid")), None);
    }

    fn assert_failed(&self, code: i32, reason: FailureReason) -> CaptureResult {
        let (_, result) = self.records();
        assert_eq!(
            (result.outcome, result.reason),
            (Outcome::Failed, Some(reason)),
            "{result:?}"
        );
        assert_eq!((result.exit_code, reason.exit_code()), (code, code));
        result
    }
}

#[tokio::test]
async fn a_capture_is_stored_with_a_manifest_that_verifies_and_four_records() {
    let stage = Stage::new();
    stage.serve(Scenario::Happy { packets: 1_000 });
    assert_eq!(stage.run().await, 0);
    let (bodies, result) = stage.records();
    assert_eq!(bodies.len(), 4);
    assert_eq!(
        (result.outcome, result.exit_code, result.packet_count),
        (Outcome::Succeeded, 0, Some(1_000))
    );
    let (manifest, report) = stage.artifact();
    assert_eq!(
        (report.packet_count, manifest.outcome, manifest.truncated),
        (1_000, Outcome::Succeeded, false)
    );
    assert_eq!(result.sha256, Some(report.sha256));
    assert_eq!(manifest.filter.as_deref(), Some("tcp port 443"));
    let expansion = manifest.expansion.unwrap();
    assert_eq!(
        (expansion.normalized.as_str(), expansion.vlan_tags),
        ("tcp port 443", 2)
    );
    assert!(expansion.tunnels, "as the operator's instruction says");
    assert_eq!(expansion.left_out[0].layer, "ip6ExtensionHeaders");
    assert_eq!(manifest.versions.captured, "fake-1");
    assert_eq!(manifest.loss_balance.unwrap().seen, 1_002);
    assert_eq!(
        manifest.first_packet.unwrap().as_nanosecond(),
        i128::from(fake::FIRST_NS)
    );
}

#[tokio::test]
async fn a_capture_without_packets_is_an_artifact_too() {
    let stage = Stage::new();
    stage.serve(Scenario::Happy { packets: 0 });
    assert_eq!(stage.run().await, 0);
    let (manifest, report) = stage.artifact();
    assert_eq!((report.packet_count, manifest.first_packet), (0, None));
}

#[tokio::test]
async fn when_captured_dies_the_whole_packets_are_stored_and_the_job_fails() {
    // A writer that broke but summed up exactly what is left is believed in its loss balance.
    for (scenario, expected, summed_up) in [
        (Scenario::Dies { packets: 5 }, "closed the connection", false),
        (
            Scenario::Breaks {
                packets: 5,
                message: "disk full",
            },
            "disk full",
            true,
        ),
    ] {
        let stage = Stage::new();
        stage.serve(scenario);
        assert_eq!(stage.run().await, 13);
        let result = stage.assert_failed(13, FailureReason::CaptureFailed);
        assert!(result.message.as_ref().unwrap().contains(expected), "{result:?}");
        assert_eq!(
            (result.stop_reason, result.packet_count),
            (Some(StopReason::Error), Some(5))
        );
        let (manifest, report) = stage.artifact();
        assert_eq!(
            (manifest.outcome, manifest.truncated, report.packet_count),
            (Outcome::Failed, !summed_up, 5)
        );
        assert_eq!(manifest.loss_balance.is_some(), summed_up);
    }
}

#[tokio::test]
async fn when_captured_dies_before_the_first_block_nothing_is_stored() {
    let stage = Stage::new();
    stage.serve(Scenario::DiesEmpty);
    assert_eq!(stage.run().await, 13);
    stage.assert_failed(13, FailureReason::CaptureFailed);
    stage.assert_nothing_stored();
}

#[tokio::test]
async fn every_refusal_ends_in_its_exit_code_and_stores_nothing() {
    for (code, exit, reason) in [
        (ErrorCode::InvalidBounds, 10, FailureReason::InvalidBounds),
        (
            ErrorCode::InterfaceConflict,
            11,
            FailureReason::InterfaceUnavailable,
        ),
        (ErrorCode::InvalidFilter, 12, FailureReason::InvalidFilter),
        (ErrorCode::FilterRejectsAll, 12, FailureReason::InvalidFilter),
        (ErrorCode::TooManyCaptures, 13, FailureReason::CaptureFailed),
        (ErrorCode::Internal, 16, FailureReason::InternalError),
    ] {
        let stage = Stage::new();
        stage.serve(Scenario::Refuses(code));
        assert_eq!(stage.run().await, exit, "{code:?}");
        stage.assert_failed(exit, reason);
        stage.assert_nothing_stored();
    }
}

#[tokio::test]
async fn a_refused_filter_is_recorded_as_such() {
    let stage = Stage::new();
    stage.serve(Scenario::Refuses(ErrorCode::FilterRejectsAll));
    stage.run().await;
    let (bodies, _) = stage.records();
    let ProgressBody::Filter(verdict) = &bodies[0] else {
        panic!("{bodies:?}")
    };
    assert!(!verdict.accepted && verdict.rejects_all && verdict.message.is_some());
}

#[tokio::test]
async fn a_file_that_is_not_what_captured_reports_is_not_stored() {
    for scenario in [Scenario::WrongHash, Scenario::WrongCount] {
        let stage = Stage::new();
        stage.serve(scenario);
        assert_eq!(stage.run().await, 13);
        stage.assert_failed(13, FailureReason::CaptureFailed);
        stage.assert_nothing_stored();
    }
}

#[tokio::test]
async fn a_cancelled_capture_is_finished_stored_and_failed() {
    let stage = Stage::new();
    stage.serve(Scenario::UntilCancelled);
    let stop = stage.stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.send(true).unwrap();
    });
    assert_eq!(stage.run().await, 13);
    let result = stage.assert_failed(13, FailureReason::CaptureFailed);
    assert_eq!(
        (result.stop_reason, result.packet_count),
        (Some(StopReason::Cancelled), Some(7))
    );
    let (manifest, _) = stage.artifact();
    assert_eq!(
        (manifest.outcome, manifest.stop_reason),
        (Outcome::Failed, StopReason::Cancelled)
    );
    assert!(
        !manifest.truncated && manifest.loss_balance.is_some(),
        "the writer finished this file"
    );
}

#[tokio::test]
async fn a_job_cancelled_before_it_began_fails_at_once() {
    let stage = Stage::new();
    stage.stop.send_replace(true);
    assert_eq!(
        tokio::time::timeout(Duration::from_secs(2), stage.run())
            .await
            .unwrap(),
        13
    );
    stage.assert_failed(13, FailureReason::CaptureFailed);
}

#[tokio::test]
async fn captured_that_comes_late_or_restarts_before_the_start_costs_nothing() {
    let stage = Stage::new();
    let socket = stage.path("captured.sock");
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(700)).await;
        fake::serve(&socket, Scenario::RestartedOnce);
    });
    assert_eq!(stage.run().await, 0);
    assert_eq!(stage.artifact().1.packet_count, 7);
}

#[tokio::test]
async fn captured_that_never_comes_is_an_unavailable_interface() {
    let stage = Stage {
        start_budget: Duration::from_secs(1),
        ..Stage::new()
    };
    assert_eq!(stage.run().await, 11);
    stage.assert_failed(11, FailureReason::InterfaceUnavailable);
}

#[tokio::test]
async fn a_file_over_the_size_bound_is_refused() {
    let stage = Stage::new();
    stage.serve(Scenario::Happy { packets: 12_000 });
    assert_eq!(stage.run().await, 14);
    stage.assert_failed(14, FailureReason::SizeExceeded);
    stage.assert_nothing_stored();
}

#[tokio::test]
async fn an_object_of_the_same_content_is_an_earlier_success_and_any_other_a_failure() {
    for (there, exit) in [(fake::pcapng(3), 0), (fake::pcapng(4), 15)] {
        let stage = Stage::new();
        let key = keys::capture_key("trawl-system", "job-uid");
        let place = stage.path("store").join(&key);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, &there).unwrap();
        stage.serve(Scenario::Happy { packets: 3 });
        assert_eq!(stage.run().await, exit);
        assert_eq!(stage.stored(&key), Some(there), "an object is never replaced");
        assert_eq!(
            stage
                .stored(&keys::manifest_key("trawl-system", "job-uid"))
                .is_some(),
            exit == 0
        );
    }
}

#[tokio::test]
async fn bounds_outside_the_contract_are_refused_before_anything_is_asked() {
    let mut stage = Stage::new();
    stage.spec.duration_ms = 0;
    assert_eq!(stage.run().await, 10);
    let result = stage.assert_failed(10, FailureReason::InvalidBounds);
    assert!(result.message.unwrap().starts_with("durationMs"));
}

#[tokio::test]
async fn a_store_that_is_not_there_is_a_failed_upload() {
    let stage = Stage::new();
    std::fs::remove_dir(stage.path("store")).unwrap();
    assert_eq!(stage.run().await, 15);
    stage.assert_failed(15, FailureReason::UploadFailed);
}
