//! Laws that hold for any sequence of facts, however the world and the operator's crashes interleave.

use proptest::prelude::*;
use trawl_api::{FailureReason, JobPhase, Outcome};

use super::fixture::{Bench, at, failed_job, verified};
use super::*;

/// One thing that the world may do between two looks.
#[derive(Clone, Debug)]
enum Step {
    Tap(bool),
    Node(NodeFact),
    Job(JobFact),
    Started,
    Ended,
    Result(Outcome, i32),
    Artifact(ArtifactFact),
    Generation,
    Wait(i64),
    /// The operator decides, acts, and writes the status; or stops after acting.
    Look { written: bool },
}

fn job() -> impl Strategy<Value = JobFact> {
    prop_oneof![
        Just(JobFact::Absent),
        Just(JobFact::Foreign),
        Just(JobFact::Active),
        Just(JobFact::Succeeded),
        Just(failed_job("BackoffLimitExceeded")),
        Just(failed_job("DeadlineExceeded")),
    ]
}

fn artifact() -> impl Strategy<Value = ArtifactFact> {
    prop_oneof![
        3 => Just(ArtifactFact::NotLooked),
        1 => Just(ArtifactFact::Absent),
        1 => Just(ArtifactFact::Incomplete("half".into())),
        1 => Just(ArtifactFact::Unreachable("away".into())),
        1 => Just(ArtifactFact::Mismatch("wrong".into())),
        1 => Just(ArtifactFact::Verified(verified(Outcome::Succeeded))),
        1 => Just(ArtifactFact::Verified(verified(Outcome::Failed))),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![Just(Outcome::Succeeded), Just(Outcome::Failed)];
    let node = prop_oneof![Just(NodeFact::Absent), Just(NodeFact::NotReady), Just(NodeFact::Eligible)];
    prop_oneof![
        1 => any::<bool>().prop_map(Step::Tap),
        1 => node.prop_map(Step::Node),
        1 => job().prop_map(Step::Job),
        1 => Just(Step::Started),
        1 => Just(Step::Ended),
        1 => (outcome, 0i32..20).prop_map(|(o, c)| Step::Result(o, c)),
        1 => artifact().prop_map(Step::Artifact),
        1 => Just(Step::Generation),
        1 => (1i64..400).prop_map(Step::Wait),
        6 => any::<bool>().prop_map(|written| Step::Look { written }),
    ]
}

fn is_terminal(phase: Option<JobPhase>) -> bool {
    matches!(phase, Some(JobPhase::Completed | JobPhase::Failed | JobPhase::Expired))
}

/// Plays the steps; `check` sees every decision together with the phase before it.
fn play(steps: &[Step], mut check: impl FnMut(Option<JobPhase>, &Decision, &Bench)) {
    let mut bench = Bench::new();
    for step in steps {
        match step.clone() {
            Step::Tap(there) => {
                let fresh = Bench::new().tap;
                bench.tap = if there { fresh } else { None };
            }
            Step::Node(node) => bench.node = node,
            // Before a Job was made there is none of ours; afterwards the world may do anything to it.
            Step::Job(job) if bench.status.runner_job_ref.is_some() || job == JobFact::Foreign => bench.job = job,
            Step::Job(_) => {}
            Step::Started if bench.status.runner_job_ref.is_some() => bench.status.started_at = Some(at(0).into()),
            Step::Ended if bench.status.started_at.is_some() => bench.status.capture_ended_at = Some(at(0).into()),
            Step::Result(outcome, code) if bench.status.runner_job_ref.is_some() => {
                bench.result(outcome, FailureReason::from_exit_code(code), code);
            }
            Step::Started | Step::Ended | Step::Result(..) => {}
            Step::Artifact(artifact) => bench.artifact = artifact,
            Step::Generation => bench.generation += 1,
            Step::Wait(seconds) => bench.created_at = bench.created_at - k8s_openapi::jiff::SignedDuration::from_secs(seconds),
            Step::Look { written } => look(&mut bench, written, &mut check),
        }
    }
}

fn look(bench: &mut Bench, written: bool, check: &mut impl FnMut(Option<JobPhase>, &Decision, &Bench)) {
    let before = bench.status.phase;
    let decision = bench.decide();
    check(before, &decision, bench);
    if decision.actions.contains(&Action::CreateJob) {
        bench.job = JobFact::Active;
        return;
    }
    if let Some(status) = decision.status.filter(|_| written) {
        let reporter = bench.status.clone();
        bench.status = status;
        bench.status.started_at = reporter.started_at;
        bench.status.capture_ended_at = reporter.capture_ended_at;
        bench.status.runner_result = reporter.runner_result;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_terminal_phase_is_absorbing(steps in prop::collection::vec(step(), 1..50)) {
        play(&steps, |before, decision, _| {
            if is_terminal(before) {
                let after = decision.status.as_ref().map_or(before, |s| s.phase);
                assert_eq!(after, before);
                assert!(!decision.actions.contains(&Action::CreateJob));
            }
        });
    }

    #[test]
    fn the_phase_never_goes_back(steps in prop::collection::vec(step(), 1..50)) {
        play(&steps, |before, decision, _| {
            if let Some(status) = &decision.status {
                assert!(status.phase >= before, "{before:?} -> {:?}", status.phase);
            }
        });
    }

    #[test]
    fn no_job_is_made_after_one_was_seen(steps in prop::collection::vec(step(), 1..50)) {
        let mut recorded = false;
        play(&steps, |_, decision, bench| {
            recorded |= bench.status.runner_job_ref.is_some();
            let creates = decision.actions.contains(&Action::CreateJob);
            assert!(!creates || (!recorded && bench.job == JobFact::Absent));
        });
    }

    #[test]
    fn completed_means_that_a_whole_artifact_was_verified_and_nothing_else_is_downloadable(
        steps in prop::collection::vec(step(), 1..50)
    ) {
        play(&steps, |before, decision, bench| {
            let Some(status) = &decision.status else { return };
            if status.phase == Some(JobPhase::Completed) && !is_terminal(before) {
                let whole = matches!(&bench.artifact, ArtifactFact::Verified(v) if v.outcome == Outcome::Succeeded);
                assert!(whole && status.artifact.is_some() && status.failure.is_none());
            }
            let downloadable = status.conditions.iter().any(|c| c.type_ == "Downloadable" && c.status == "True");
            assert_eq!(downloadable, status.phase == Some(JobPhase::Completed));
        });
    }

    #[test]
    fn an_unfinished_job_is_always_looked_at_again(steps in prop::collection::vec(step(), 1..50)) {
        play(&steps, |before, decision, _| {
            let after = decision.status.as_ref().map_or(before, |s| s.phase);
            assert!(is_terminal(after) || decision.requeue.is_some());
        });
    }
}
