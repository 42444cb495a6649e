//! Things that go away, come back, or were never ours.

use crate::support::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_ends_without_an_artifact_fails_by_its_exit_code() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("exit", "mirror").await;
    world.until("exit", "a Job", |s| s.runner_job_ref.is_some()).await;
    world.kubelet.end_runner(&job.uid().unwrap(), 12).await;
    let status = world.until_phase("exit", JobPhase::Failed).await;
    assert_eq!(status.failure.unwrap().reason, FailureReason::InvalidFilter);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_deleted_while_capturing_leaves_nothing() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("gone", "mirror").await;
    let uid = job.uid().unwrap();
    world.kubelet.capture_pod(&uid).await;
    world.report("gone", started()).await;
    world.until_phase("gone", JobPhase::Capturing).await;
    let file = pcapng(1);
    world
        .upload(&job, &file, &manifest(&job, &file, Outcome::Failed))
        .await;
    world
        .captures()
        .delete("gone", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the capture to be gone", async || {
        world
            .captures()
            .get_opt("gone")
            .await
            .ok()?
            .is_none()
            .then_some(())
    })
    .await;
    assert!(world.jobs_of(&uid).await.is_empty(), "no Job");
    assert_eq!(world.objects(&uid).await, 0, "no object");
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), &world.namespace);
    let name = capture_objects_name(&uid);
    eventually("its account to be collected", async || {
        accounts.get_opt(&name).await.ok()?.is_none().then_some(())
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_restarted_in_every_phase_converges_with_one_job() {
    let mut world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("often", "mirror").await;
    world.restart_operator().await;
    let uid = job.uid().unwrap();
    world
        .until("often", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    let first = world.jobs_of(&uid).await[0].uid();
    world.restart_operator().await;
    world.kubelet.capture_pod(&uid).await;
    world.report("often", started()).await;
    world.restart_operator().await;
    world.until_phase("often", JobPhase::Capturing).await;
    world.kill_operator().await;
    let file = pcapng(4);
    let claims = manifest(&job, &file, Outcome::Succeeded);
    world.upload(&job, &file, &claims).await;
    world.report("often", result(&claims)).await;
    world.start_operator();
    tokio::time::sleep(Duration::from_millis(30)).await;
    world.restart_operator().await;
    let status = world.until_phase("often", JobPhase::Completed).await;
    world.restart_operator().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let jobs = world.jobs_of(&uid).await;
    assert_eq!((jobs.len(), jobs[0].uid()), (1, first), "one Job, the first one");
    let later = world.captures().get("often").await.unwrap();
    assert_eq!(later.status.unwrap(), status, "a terminal state stays");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vanished_job_is_not_run_a_second_time() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("lost", "mirror").await;
    let uid = job.uid().unwrap();
    world.until("lost", "a Job", |s| s.runner_job_ref.is_some()).await;
    let background = DeleteParams::background();
    world
        .jobs()
        .delete(&capture_objects_name(&uid), &background)
        .await
        .unwrap();
    let status = world.until_phase("lost", JobPhase::Failed).await;
    assert_eq!(status.failure.unwrap().reason, FailureReason::InternalError);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(world.jobs_of(&uid).await.is_empty());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_the_same_name_that_is_not_ours_is_never_adopted() {
    let mut world = World::new().await;
    world.live_tap("mirror").await;
    world.kill_operator().await;
    let job = world.make_capture("foreign", "mirror").await;
    let uid = job.uid().unwrap();
    let stranger = serde_json::from_value(json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": capture_objects_name(&uid)},
        "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "x", "image": "x"}]}}}}))
    .unwrap();
    let stranger = world
        .jobs()
        .create(&PostParams::default(), &stranger)
        .await
        .unwrap();
    world.start_operator();
    let status = world.until_phase("foreign", JobPhase::Failed).await;
    assert_eq!(status.failure.unwrap().reason, FailureReason::InternalError);
    world
        .captures()
        .delete("foreign", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the capture to be gone", async || {
        world
            .captures()
            .get_opt("foreign")
            .await
            .ok()?
            .is_none()
            .then_some(())
    })
    .await;
    let still = world.jobs().get(&capture_objects_name(&uid)).await.unwrap();
    assert_eq!(
        still.uid(),
        stranger.uid(),
        "it is not touched, not even on deletion"
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_meant_for_a_deleted_job_never_reaches_its_namesake() {
    let mut world = World::new().await;
    world.kill_operator().await;
    let old = world.make_capture("namesake", "no-tap").await.uid().unwrap();
    world
        .captures()
        .delete("namesake", &DeleteParams::default())
        .await
        .unwrap();
    let new = eventually("the namesake", async || {
        let gone = world.captures().get_opt("namesake").await.ok()?.is_none();
        if gone {
            Some(world.make_capture("namesake", "no-tap").await)
        } else {
            None
        }
    })
    .await;
    assert_ne!(new.uid().unwrap(), old);
    let status = json!({"phase": "Failed"});
    let write = async |uid: &str| {
        trawl_kube::apply::apply_status(
            &world.captures(),
            "trawl-operator",
            "namesake",
            Some(uid),
            &status,
        )
        .await
    };
    let refused = write(&old).await.unwrap_err();
    assert!(trawl_kube::apply::is_conflict(&refused), "{refused}");
    assert_eq!(world.captures().get("namesake").await.unwrap().status, None);
    write(&new.uid().unwrap()).await.unwrap();
    world.end().await;
}
