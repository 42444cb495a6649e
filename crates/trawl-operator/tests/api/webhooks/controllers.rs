//! The controllers work behind the webhooks as they do without them.

use trawl_audit::Action;

use crate::support::hooks::Hooks;
use crate::support::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_completes_and_goes_away_behind_the_webhooks_and_only_what_people_did_is_recorded() {
    let world = World::new().await;
    let hooks = Hooks::around(&world).await;
    world.live_tap("mirror").await;
    let job = world.make_capture("hooked", "mirror").await;
    let uid = job.uid().unwrap();
    world
        .until("hooked", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    let spec = world.runner_spec(&uid).await;
    assert_eq!(
        spec.requester.as_deref(),
        Some("admin"),
        "who asked goes into the manifest"
    );
    let file = pcapng(5);
    let claims = manifest(&job, &file, Outcome::Succeeded);
    world.upload(&job, &file, &claims).await;
    world.report("hooked", result(&claims)).await;
    world.until_phase("hooked", JobPhase::Completed).await;
    world
        .captures()
        .delete("hooked", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the capture to be gone", async || {
        let left = world.captures().get_opt("hooked").await.ok()?;
        left.is_none().then_some(())
    })
    .await;
    let actions: Vec<_> = hooks.records().iter().map(|r| r.entry.action).collect();
    assert_eq!(
        actions,
        [Action::NetworkTapCreate, Action::CaptureJobManualCreate],
        "finalizers and statuses are no acts of people"
    );
    world.end().await;
    hooks.end().await;
}
