//! Every state and fact of a CaptureJob, and what follows from it.

use std::time::Duration;

use trawl_api::conditions::{ConditionType, Reason};
use trawl_api::{FailedPhase, FailureReason, JobPhase, Outcome, RunnerResult};

use super::fixture::{Bench, at, failed_job, verified};
use super::*;

const CREATED: JobFact = JobFact::Active;

fn phase(d: &Decision) -> Option<JobPhase> {
    d.status.as_ref().and_then(|s| s.phase)
}

fn failure(d: &Decision) -> (FailureReason, FailedPhase, i32) {
    let failure = d
        .status
        .as_ref()
        .and_then(|s| s.failure.as_ref())
        .expect("a failure");
    (failure.reason, failure.failed_phase, failure.attempts)
}

fn condition(d: &Decision, type_: ConditionType) -> (String, String) {
    let conditions = &d.status.as_ref().expect("a status").conditions;
    let c = conditions
        .iter()
        .find(|c| c.type_ == type_.as_str())
        .expect("the condition");
    (c.status.clone(), c.reason.clone())
}

fn says(d: &Decision, type_: ConditionType, status: &str, reason: Reason) {
    assert_eq!(
        condition(d, type_),
        (status.to_owned(), reason.as_str().to_owned())
    );
}

#[test]
fn a_ready_target_gets_a_finalizer_and_one_job() {
    let mut bench = Bench::new();
    bench.finalizer = false;
    let d = bench.decide();
    assert_eq!(
        d.actions,
        [Action::AddFinalizer, Action::CreateJob],
        "the finalizer holds before anything is made"
    );
    assert_eq!(phase(&d), Some(JobPhase::Pending));
    says(&d, ConditionType::TargetReady, "True", Reason::TargetReady);
    says(&d, ConditionType::Downloadable, "False", Reason::NotDownloadable);
    says(&d, ConditionType::RetentionEnforced, "Unknown", Reason::Pending);
}

#[test]
fn each_reason_why_a_target_is_not_ready_is_told_waited_for_and_failed_with() {
    use FailureReason::{TapInactive, TargetUnavailable};
    type Change = fn(&mut Bench);
    let cases: [(&str, Change, Reason, FailureReason); 12] = [
        ("no tap", |b| b.tap = None, Reason::TapNotFound, TapInactive),
        (
            "tap deleted",
            |b| b.tap_mut().deleting = true,
            Reason::TapNotActive,
            TapInactive,
        ),
        (
            "tap refused",
            |b| b.tap_condition("Accepted", "False", 1),
            Reason::TapNotActive,
            TapInactive,
        ),
        (
            "tap accepted at an older generation",
            |b| b.tap_mut().generation = 2,
            Reason::TapNotActive,
            TapInactive,
        ),
        (
            "targets unresolved",
            |b| b.tap_condition("TargetsResolved", "Unknown", 1),
            Reason::TapNotActive,
            TapInactive,
        ),
        (
            "tap in Error",
            |b| b.tap_mut().status.phase = Some(trawl_api::TapPhase::Error),
            Reason::TapNotActive,
            TapInactive,
        ),
        (
            "tap Pending",
            |b| b.tap_mut().status.phase = Some(trawl_api::TapPhase::Pending),
            Reason::TapNotActive,
            TapInactive,
        ),
        (
            "sensor never reported",
            |b| b.tap_mut().status.targets.clear(),
            Reason::TapNotActive,
            TapInactive,
        ),
        (
            "sensor silent",
            |b| b.heartbeat(-90),
            Reason::TargetUnavailable,
            TargetUnavailable,
        ),
        (
            "sensor not ready",
            |b| b.tap_condition("WorkloadReady", "False", 1),
            Reason::TargetUnavailable,
            TargetUnavailable,
        ),
        (
            "no node",
            |b| b.node = NodeFact::Absent,
            Reason::TargetUnavailable,
            TargetUnavailable,
        ),
        (
            "node not chosen",
            |b| b.node = NodeFact::NotSelected,
            Reason::TargetUnavailable,
            TargetUnavailable,
        ),
    ];
    for (name, change, reason, failed_with) in cases {
        let mut bench = Bench::new();
        change(&mut bench);
        let d = bench.decide();
        assert_eq!(
            (d.actions.len(), phase(&d)),
            (0, Some(JobPhase::Pending)),
            "{name}: waits"
        );
        says(&d, ConditionType::TargetReady, "False", reason);
        assert!(d.requeue.is_some_and(|r| r <= Duration::from_secs(15)), "{name}");

        bench.created_at = at(-179);
        assert_eq!(
            bench.decide().requeue,
            Some(Duration::from_secs(1)),
            "{name}: no longer than the wait"
        );
        bench.created_at = at(-180);
        let d = bench.decide();
        assert_eq!(failure(&d), (failed_with, FailedPhase::Pending, 0), "{name}");
        assert!(d.actions.is_empty() && d.requeue.is_none(), "{name}");
    }
}

#[test]
fn one_nodes_sensor_does_not_stop_captures_of_a_node_tap_on_another() {
    let mut bench = Bench::new();
    bench.tap_condition("WorkloadReady", "False", 1);
    bench.tap_mut().type_ = trawl_api::TapType::NodeInterface;
    assert_eq!(bench.decide().actions, [Action::CreateJob]);
}

#[test]
fn a_request_that_can_never_run_fails_at_once_and_makes_nothing() {
    let mut bench = Bench::new();
    bench.namespace_ok = false;
    let d = bench.decide();
    says(&d, ConditionType::Accepted, "False", Reason::WrongNamespace);
    assert_eq!((phase(&d), d.actions.len()), (Some(JobPhase::Failed), 0));

    let mut bench = Bench::new();
    bench.spec.duration = trawl_api::GoDuration::parse("2h").unwrap();
    let d = bench.decide();
    says(&d, ConditionType::Accepted, "False", Reason::InvalidSpec);
    assert_eq!(
        failure(&d),
        (FailureReason::InvalidBounds, FailedPhase::Pending, 0)
    );

    let mut bench = Bench::new();
    bench.spec.filter = Some("host \u{7}".into());
    assert_eq!(failure(&bench.decide()).0, FailureReason::InvalidFilter);

    let mut bench = Bench::policy();
    bench.spec.target_node = None;
    assert_eq!(
        failure(&bench.decide()),
        (FailureReason::TargetUnavailable, FailedPhase::Pending, 0)
    );

    let mut bench = Bench::new();
    bench.job = JobFact::Foreign;
    let d = bench.decide();
    assert_eq!(
        failure(&d),
        (FailureReason::InternalError, FailedPhase::Pending, 0)
    );
    assert!(d.actions.is_empty(), "a stranger's Job is not touched");
}

#[test]
fn the_phase_of_a_running_job_follows_the_reporter_and_never_goes_back() {
    let mut bench = Bench::new();
    bench.job = CREATED;
    assert_eq!(phase(&bench.decide()), Some(JobPhase::Pending));
    assert_eq!(
        bench.decide().status.unwrap().runner_job_ref.unwrap().name,
        "trawl-capture-uid"
    );
    bench.status.started_at = Some(at(-2).into());
    assert_eq!(phase(&bench.decide()), Some(JobPhase::Capturing));
    bench.status.capture_ended_at = Some(at(-1).into());
    assert_eq!(phase(&bench.decide()), Some(JobPhase::Storing));
    bench.status.phase = Some(JobPhase::Storing);
    bench.status.capture_ended_at = None;
    assert_eq!(
        phase(&bench.decide()),
        Some(JobPhase::Storing),
        "not behind what was shown"
    );
    assert!(bench.decide().actions.is_empty());
}

#[test]
fn a_finished_runner_is_looked_at_before_its_job_is_over() {
    let mut bench = Bench::running();
    bench.result(Outcome::Succeeded, None, 0);
    let d = bench.decide();
    assert_eq!(
        (phase(&d), d.actions),
        (Some(JobPhase::Storing), vec![Action::VerifyArtifact])
    );
}

#[test]
fn a_verified_artifact_completes_whatever_the_job_says() {
    for job in [
        CREATED,
        JobFact::Succeeded,
        failed_job("BackoffLimitExceeded"),
        JobFact::Absent,
        JobFact::Foreign,
    ] {
        let mut bench = Bench::running();
        bench.job = job.clone();
        bench.artifact = ArtifactFact::Verified(verified(Outcome::Succeeded));
        let d = bench.decide();
        assert_eq!(
            (phase(&d), d.actions.len()),
            (Some(JobPhase::Completed), 0),
            "{job:?}"
        );
        says(
            &d,
            ConditionType::ArtifactVerified,
            "True",
            Reason::ArtifactVerified,
        );
        says(&d, ConditionType::Downloadable, "True", Reason::Downloadable);
        let status = d.status.unwrap();
        assert_eq!((status.packet_count, status.size_bytes), (Some(7), Some(900)));
        assert_eq!(status.completed_at, Some(at(0).into()));
        assert_eq!(
            status.retention_deadline,
            Some(at(3600).into()),
            "completedAt + retention"
        );
    }
}

#[test]
fn a_capture_that_never_ended_failed_while_capturing_although_its_job_ended_and_storing_was_shown() {
    let mut bench = Bench::running();
    bench.status.phase = Some(JobPhase::Storing);
    bench.job = failed_job("BackoffLimitExceeded");
    bench.runner = RunnerFact::Exited {
        code: 137,
        reason: Some("Error".into()),
    };
    bench.artifact = ArtifactFact::Absent;
    assert_eq!(
        failure(&bench.decide()),
        (FailureReason::CaptureFailed, FailedPhase::Capturing, 1)
    );
}

#[test]
fn a_partial_artifact_fails_with_the_runners_reason_and_stays_referenced() {
    let mut bench = Bench::running();
    bench.result(Outcome::Failed, Some(FailureReason::InterfaceUnavailable), 11);
    bench.artifact = ArtifactFact::Verified(verified(Outcome::Failed));
    let d = bench.decide();
    assert_eq!(
        failure(&d),
        (FailureReason::InterfaceUnavailable, FailedPhase::Capturing, 1)
    );
    says(
        &d,
        ConditionType::ArtifactVerified,
        "True",
        Reason::ArtifactVerified,
    );
    says(&d, ConditionType::Downloadable, "False", Reason::NotDownloadable);
    assert!(d.actions.is_empty(), "it is evidence, and kept");
    let status = d.status.unwrap();
    assert!(status.artifact.is_some() && status.retention_deadline.is_some());

    bench.status.runner_result = None;
    assert_eq!(
        failure(&bench.decide()).0,
        FailureReason::CaptureFailed,
        "nobody said why"
    );
}

#[test]
fn wrong_bytes_fail_and_are_deleted_and_the_deletion_is_repeated() {
    let mut bench = Bench::running();
    bench.artifact = ArtifactFact::Mismatch("sha256".into());
    let d = bench.decide();
    assert_eq!(
        failure(&d),
        (FailureReason::ArtifactMismatch, FailedPhase::Capturing, 1)
    );
    assert_eq!(d.actions, [Action::DeleteArtifact]);
    says(
        &d,
        ConditionType::ArtifactVerified,
        "False",
        Reason::ChecksumMismatch,
    );
    bench.status = d.status.unwrap();
    bench.artifact = ArtifactFact::NotLooked;
    let again = bench.decide();
    assert_eq!(
        (again.status, again.actions),
        (None, vec![Action::DeleteArtifact])
    );
}

#[test]
fn an_unreachable_store_holds_everything() {
    for job in [
        CREATED,
        JobFact::Succeeded,
        failed_job("DeadlineExceeded"),
        JobFact::Absent,
    ] {
        let mut bench = Bench::running();
        bench.job = job;
        bench.artifact = ArtifactFact::Unreachable("no connection".into());
        let d = bench.decide();
        assert_eq!((phase(&d), d.actions.len()), (Some(JobPhase::Capturing), 0));
        assert_eq!(d.requeue, Some(Duration::from_secs(15)));
        says(
            &d,
            ConditionType::ArtifactVerified,
            "Unknown",
            Reason::StorageFailure,
        );
    }
}

#[test]
fn without_an_artifact_the_reporter_is_believed_before_the_exit_code_and_that_before_the_job() {
    use FailureReason::*;
    let exited = |code| RunnerFact::Exited {
        code,
        reason: Some("Error".into()),
    };
    let failed = || failed_job("BackoffLimitExceeded");
    let reporter = |b: &mut Bench| b.result(Outcome::Failed, Some(UploadFailed), 15);
    let nothing = |_: &mut Bench| {};
    type Change = fn(&mut Bench);
    let cases: [(&str, JobFact, RunnerFact, Change, FailureReason); 8] = [
        ("reporter", failed(), exited(12), reporter, UploadFailed),
        (
            "reporter without reason",
            failed(),
            exited(12),
            |b| b.result(Outcome::Failed, None, 13),
            CaptureFailed,
        ),
        ("exit code", failed(), exited(12), nothing, InvalidFilter),
        (
            "killed while capturing",
            failed(),
            exited(137),
            nothing,
            CaptureFailed,
        ),
        (
            "killed while storing",
            failed(),
            exited(137),
            |b| b.status.capture_ended_at = Some(at(-1).into()),
            UploadFailed,
        ),
        (
            "killed before the start",
            failed(),
            exited(137),
            |b| b.status.started_at = None,
            InternalError,
        ),
        (
            "deadline before the start",
            failed_job("DeadlineExceeded"),
            RunnerFact::Waiting(Some("ImagePullBackOff".into())),
            |b| b.status.started_at = None,
            TargetUnavailable,
        ),
        (
            "succeeded with nothing",
            JobFact::Succeeded,
            exited(0),
            nothing,
            ArtifactMissing,
        ),
    ];
    for (name, job, runner, change, reason) in cases {
        let mut bench = Bench::running();
        bench.status.phase = Some(JobPhase::Pending);
        (bench.job, bench.runner) = (job, runner);
        change(&mut bench);
        assert_eq!(
            bench.decide().actions,
            [Action::VerifyArtifact],
            "{name}: the store is asked first"
        );
        bench.artifact = ArtifactFact::Absent;
        let d = bench.decide();
        assert_eq!(failure(&d).0, reason, "{name}");
        says(
            &d,
            ConditionType::ArtifactVerified,
            "False",
            Reason::ArtifactMissing,
        );
    }
}

#[test]
fn half_an_artifact_fails_like_none_and_is_removed() {
    let mut bench = Bench::running();
    bench.job = failed_job("BackoffLimitExceeded");
    bench.artifact = ArtifactFact::Incomplete("a capture without its manifest".into());
    let d = bench.decide();
    assert_eq!(
        (failure(&d).0, d.actions.clone()),
        (FailureReason::CaptureFailed, vec![Action::DeleteArtifact])
    );
}

#[test]
fn a_vanished_job_is_an_internal_error_and_never_a_second_run() {
    for trace in [
        |b: &mut Bench| b.status.runner_job_ref = Some(trawl_api::LocalRef::new("trawl-capture-uid")),
        |b: &mut Bench| b.status.started_at = Some(at(-1).into()),
        |b: &mut Bench| b.status.resolved_interface = Some("mirror0".into()),
        |b: &mut Bench| b.status.phase = Some(JobPhase::Capturing),
    ] {
        let mut bench = Bench::new();
        trace(&mut bench);
        bench.cleanup.pods = true;
        assert!(
            bench.decide().actions.is_empty(),
            "a runner that is still ending may store something"
        );
        bench.cleanup.pods = false;
        assert_eq!(bench.decide().actions, [Action::VerifyArtifact]);
        bench.artifact = ArtifactFact::Absent;
        let d = bench.decide();
        assert_eq!((failure(&d).0, failure(&d).2), (FailureReason::InternalError, 1));
        assert!(!d.actions.contains(&Action::CreateJob));
    }
}

#[test]
fn a_terminal_state_stays_and_only_a_changed_retention_moves_its_deadline() {
    for phase_ in [JobPhase::Completed, JobPhase::Failed, JobPhase::Expired] {
        let mut bench = Bench::running();
        bench.artifact = ArtifactFact::Verified(verified(Outcome::Succeeded));
        bench.status = bench.decide().status.unwrap();
        bench.status.phase = Some(phase_);
        bench.artifact = ArtifactFact::Mismatch("later".into());
        (bench.job, bench.tap) = (JobFact::Absent, None);
        assert_eq!(bench.decide().status, None, "{phase_:?}");

        bench.spec.retention = Some(trawl_api::GoDuration::parse("2h").unwrap());
        bench.generation = 2;
        let status = bench.decide().status.unwrap();
        assert_eq!(
            (status.phase, status.observed_generation),
            (Some(phase_), Some(2))
        );
        let deadline = if phase_ == JobPhase::Expired {
            at(3600)
        } else {
            at(7200)
        };
        assert_eq!(status.retention_deadline, Some(deadline.into()), "{phase_:?}");
        let verified = status
            .conditions
            .iter()
            .find(|c| c.type_ == "ArtifactVerified")
            .unwrap();
        assert_eq!(
            (verified.status.as_str(), verified.observed_generation),
            ("True", Some(2)),
            "carried forward"
        );
    }
}

#[test]
fn deletion_takes_the_job_then_its_pods_then_the_objects_then_the_finalizer() {
    let mut bench = Bench::running();
    bench.deleting = true;
    bench.cleanup = CleanupFact {
        job: true,
        pods: true,
        objects: ObjectsFact::NotLooked,
    };
    assert_eq!(bench.decide().actions, [Action::DeleteJob]);
    bench.cleanup.job = false;
    let d = bench.decide();
    assert!(d.actions.is_empty() && d.requeue.is_some(), "waits for the pods");
    bench.cleanup.pods = false;
    assert_eq!(bench.decide().actions, [Action::DeleteObjects]);
    bench.cleanup.objects = ObjectsFact::Unreachable;
    let d = bench.decide();
    assert!(d.actions.is_empty() && d.requeue.is_some(), "the finalizer holds");
    bench.cleanup.objects = ObjectsFact::Gone;
    assert_eq!(bench.decide().actions, [Action::RemoveFinalizer]);
    assert_eq!(bench.decide().status, None);
    bench.finalizer = false;
    assert_eq!(bench.decide(), Decision::default());
}

#[test]
fn what_comes_from_outside_is_cleaned_before_it_enters_the_status() {
    let mut bench = Bench::running();
    bench.job = failed_job("BackoffLimitExceeded");
    bench.artifact = ArtifactFact::Absent;
    bench.status.runner_result = Some(RunnerResult {
        outcome: Outcome::Failed,
        reason: Some(FailureReason::UploadFailed),
        stop_reason: None,
        packet_count: None,
        size_bytes: None,
        sha256: None,
        exit_code: 15,
        message: Some(format!("line\nbreak {}", "x".repeat(600))),
    });
    let message = bench.decide().status.unwrap().failure.unwrap().message;
    assert!(message.len() <= 512 && !message.contains('\n'));
}
