use std::time::Duration;

use anyhow::{Context, Result};
use trawl_api::{CaptureJob, FailureReason, JobPhase};
use trawl_testbed::objects::{self, JobRequest};

use crate::support::*;

fn failure(job: &CaptureJob) -> Option<FailureReason> {
    Some(job.status.as_ref()?.failure.as_ref()?.reason)
}

#[tokio::test]
async fn a_filter_that_cannot_work_is_refused_at_the_door_without_being_repeated() -> Result<()> {
    let line = line().await?;
    let before = objects::jobs(&line.client)
        .list(&Default::default())
        .await?
        .items
        .len();
    for filter in [
        "host 10.0.0.1 and and",
        "host www.example.com",
        "ip6 host ::1 and host 10.1.1.1",
    ] {
        let answer = objects::create_job(&line.client, &request(&line, Some(filter), "3s", "1Mi")).await;
        let refusal = format!("{:#}", answer.err().context("it was accepted")?);
        assert!(refusal.contains("spec.filter: "), "{refusal}");
        assert!(!refusal.contains(filter), "the refusal echoes the filter");
    }
    let after = objects::jobs(&line.client)
        .list(&Default::default())
        .await?
        .items
        .len();
    assert_eq!(after, before, "nothing was created");
    Ok(())
}

#[tokio::test]
async fn a_tap_on_an_interface_that_does_not_exist_says_so_and_its_job_fails_without_an_artifact()
-> Result<()> {
    let line = line().await?;
    let name = "no-such-interface";
    let tap = objects::create_mirror_tap(&line.client, name, &line.node, "nosuch9").await?;
    let api = objects::taps(&line.client);
    objects::wait_until(
        "the tap says what is missing",
        SOON,
        async || Ok(api.get(name).await?),
        |t| {
            t.status.as_ref().is_some_and(|s| {
                s.phase != Some(trawl_api::TapPhase::Active)
                    && s.conditions
                        .iter()
                        .any(|c| c.status != "True" && c.message.contains("nosuch9"))
            })
        },
    )
    .await?;
    let job = objects::create_job(
        &line.client,
        &JobRequest {
            tap: name,
            node: &line.node,
            filter: None,
            duration: "2s",
            max_size: "1Mi",
            snaplen: 0,
            pre_trigger: None,
        },
    )
    .await?;
    let job = objects::wait_for_job(
        &line.client,
        &job.metadata.name.clone().context("name")?,
        "failed",
        Duration::from_secs(240),
        objects::is_terminal,
    )
    .await?;
    assert_eq!(objects::phase(&job), Some(JobPhase::Failed));
    assert!(
        matches!(
            failure(&job),
            Some(
                FailureReason::TapInactive
                    | FailureReason::InterfaceUnavailable
                    | FailureReason::TargetUnavailable
            )
        ),
        "{:?}",
        job.status
    );
    store_holds_nothing_of(&job)?;
    objects::delete_job(&line.client, &job).await?;
    api.delete(name, &Default::default()).await?;
    objects::nothing_left_of(
        &line.client,
        "trawl.cloud/tap-uid",
        &tap.metadata.uid.context("uid")?,
    )
    .await
}
