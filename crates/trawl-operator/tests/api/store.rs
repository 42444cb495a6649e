//! What the store holds decides, and a store that does not answer holds.

use crate::support::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_of_zero_packets_completes() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("empty", "mirror").await;
    world
        .until("empty", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    let file = pcapng(0);
    let claims = manifest(&job, &file, Outcome::Succeeded);
    world.upload(&job, &file, &claims).await;
    world.report("empty", result(&claims)).await;
    let status = world.until_phase("empty", JobPhase::Completed).await;
    assert_eq!(status.packet_count, Some(0));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_bytes_in_the_store_never_become_completed_and_are_removed() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("wrong", "mirror").await;
    world
        .until("wrong", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    let claims = manifest(&job, &pcapng(5), Outcome::Succeeded);
    let mut bytes = pcapng(5);
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    world.upload(&job, &bytes, &claims).await;
    world.report("wrong", result(&claims)).await;
    let status = world.until_phase("wrong", JobPhase::Failed).await;
    assert_eq!(status.failure.unwrap().reason, FailureReason::ArtifactMismatch);
    assert!(!is_true(&status.conditions, ConditionType::Downloadable, 1));
    let uid = job.uid().unwrap();
    eventually("the wrong objects to be gone", async || {
        (world.objects(&uid).await == 0).then_some(())
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_artifact_fails_with_the_runners_reason_and_stays_named_but_not_downloadable() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("partial", "mirror").await;
    world
        .until("partial", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    let file = pcapng(3);
    let claims = manifest(&job, &file, Outcome::Failed);
    world.upload(&job, &file, &claims).await;
    world.report("partial", result(&claims)).await;
    let status = world.until_phase("partial", JobPhase::Failed).await;
    assert_eq!(status.failure.unwrap().reason, FailureReason::CaptureFailed);
    assert_eq!(status.packet_count, Some(3));
    assert!(status.artifact.is_some() && status.retention_deadline.is_some());
    assert!(!is_true(&status.conditions, ConditionType::Downloadable, 1));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(
        world.objects(&job.uid().unwrap()).await,
        2,
        "what was captured is kept"
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_store_holds_the_capture_until_it_is_back() {
    let mut world = World::new().await;
    world.limits.job_requeue = Duration::from_secs(1);
    world.restart_operator().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("hold", "mirror").await;
    world.until("hold", "a Job", |s| s.runner_job_ref.is_some()).await;
    let file = pcapng(2);
    let claims = manifest(&job, &file, Outcome::Succeeded);
    world.upload(&job, &file, &claims).await;
    world.lose_store(true);
    world.report("hold", result(&claims)).await;
    let held = world
        .until("hold", "StorageFailure", |s| {
            s.conditions
                .iter()
                .any(|c| c.type_ == "ArtifactVerified" && c.reason == "StorageFailure")
        })
        .await;
    assert_eq!(
        held.phase,
        Some(JobPhase::Storing),
        "could not look is not nothing there"
    );
    world.lose_store(false);
    world.until_phase("hold", JobPhase::Completed).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_store_holds_the_finalizer_of_a_deleted_capture() {
    let mut world = World::new().await;
    world.limits.job_requeue = Duration::from_secs(1);
    world.restart_operator().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("held", "mirror").await;
    world.until("held", "a Job", |s| s.runner_job_ref.is_some()).await;
    let file = pcapng(1);
    world
        .upload(&job, &file, &manifest(&job, &file, Outcome::Succeeded))
        .await;
    world.lose_store(true);
    world
        .captures()
        .delete("held", &DeleteParams::default())
        .await
        .unwrap();
    let uid = job.uid().unwrap();
    eventually("its Job to be gone", async || {
        world.jobs_of(&uid).await.is_empty().then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(
        world.captures().get_opt("held").await.unwrap().is_some(),
        "its objects may still be there"
    );
    world.lose_store(false);
    eventually("the capture to be gone", async || {
        world
            .captures()
            .get_opt("held")
            .await
            .ok()?
            .is_none()
            .then_some(())
    })
    .await;
    assert_eq!(world.objects(&uid).await, 0);
    world.end().await;
}
