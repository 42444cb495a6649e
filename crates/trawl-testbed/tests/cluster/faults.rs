use std::{fs, time::Duration};

use anyhow::{Context, Result};
use kube::ResourceExt;
use trawl_api::{CaptureJob, FailureReason, JobPhase};
use trawl_testbed::{
    files,
    line::{Line, var},
    node, objects,
    traffic::Sender,
};

use crate::support::*;

fn uid(job: &CaptureJob) -> Result<String> {
    job.uid().context("job without UID")
}

fn operator() -> Result<node::Process> {
    node::processes("trawl-operator", "")
        .into_iter()
        .next()
        .context("no operator process")
}

/// The S3 server's process.
fn store_server() -> Result<node::Process> {
    let endpoint = var("S3_ENDPOINT")?;
    let address = endpoint.rsplit('/').next().context("S3_ENDPOINT")?;
    node::processes("versitygw", address)
        .into_iter()
        .next()
        .context("no S3 server process")
}

async fn stays(line: &Line, job: &CaptureJob, phase: JobPhase) -> Result<()> {
    tokio::time::sleep(Duration::from_secs(5)).await;
    let again = objects::jobs(&line.client).get(&job.name_any()).await?;
    assert_eq!(objects::phase(&again), Some(phase), "a terminal phase moved");
    Ok(())
}

#[tokio::test]
async fn captured_killed_in_mid_capture_fails_the_job_once_and_the_next_job_works() -> Result<()> {
    let line = line().await?;
    let job = start(&line, &request(&line, Some(FILTER), "60s", "50Mi")).await?;
    Sender::open(&line.mirror_peer)?.send_numbered(0..100, PORT, 200, Duration::from_millis(2))?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let daemon = node::processes_in_netns("trawl-captured", &line.node_netns)?
        .into_iter()
        .next()
        .context("captured")?;
    node::signal(daemon.pid, "KILL")?;
    let job = finish(&line, &job).await?;
    let failure = job
        .status
        .as_ref()
        .and_then(|s| s.failure.clone())
        .context("failure")?;
    assert_eq!(objects::phase(&job), Some(JobPhase::Failed));
    assert_eq!(failure.reason, FailureReason::CaptureFailed, "{failure:?}");
    stays(&line, &job, JobPhase::Failed).await?;
    if stored_file(&job)?.exists() {
        let partial = files::numbers(&stored_file(&job)?)?.0;
        assert_eq!(
            partial,
            (0..partial.len() as u64).collect::<Vec<_>>(),
            "a partial artifact with a gap"
        );
    }
    objects::delete_job(&line.client, &job).await?;
    store_holds_nothing_of(&job)?;

    let daemon = node::wait_for_process("trawl-captured", "serve", SOON).await?;
    assert!(daemon.pid > 0);
    let api = objects::taps(&line.client);
    objects::wait_until(
        "tap reports again",
        SOON,
        async || Ok(api.get(TAP).await?),
        reports,
    )
    .await?;
    let job = start(&line, &request(&line, Some(FILTER), "3s", "1Mi")).await?;
    send_pairs(&line, 20, 100)?;
    let job = finish(&line, &job).await?;
    assert_eq!(
        job.status.as_ref().and_then(|s| s.packet_count),
        Some(20),
        "{:?}",
        job.status
    );
    objects::delete_job(&line.client, &job).await
}

#[tokio::test]
async fn a_killed_runner_fails_the_job_once_and_is_never_run_again() -> Result<()> {
    let line = line().await?;
    let job = start(&line, &request(&line, Some(FILTER), "60s", "1Mi")).await?;
    let runner = node::wait_for_process("trawl-runner", &uid(&job)?, SOON).await?;
    node::signal(runner.pid, "KILL")?;
    let job = finish(&line, &job).await?;
    assert_eq!(objects::phase(&job), Some(JobPhase::Failed));
    let failure = job
        .status
        .as_ref()
        .and_then(|s| s.failure.clone())
        .context("failure")?;
    assert_eq!(failure.reason, FailureReason::CaptureFailed, "{failure:?}");
    assert_eq!(failure.failed_phase, trawl_api::FailedPhase::Capturing);
    stays(&line, &job, JobPhase::Failed).await?;
    assert!(node::processes("trawl-runner", &uid(&job)?).is_empty());
    objects::delete_job(&line.client, &job).await?;
    store_holds_nothing_of(&job)
}

#[tokio::test]
async fn an_operator_killed_in_each_phase_converges_to_one_completed_job() -> Result<()> {
    let line = line().await?;
    for at in [JobPhase::Pending, JobPhase::Capturing, JobPhase::Storing] {
        // Without an operator nobody judges a new job, so it goes down as soon as the job is there.
        let job = objects::create_job(&line.client, &request(&line, Some(FILTER), "4s", "1Mi")).await?;
        if at == JobPhase::Pending {
            node::signal(operator()?.pid, "KILL")?;
        }
        let job = objects::wait_for_job(
            &line.client,
            &job.name_any(),
            "started",
            Duration::from_secs(120),
            |j| j.status.as_ref().is_some_and(|s| s.started_at.is_some()),
        )
        .await?;
        if at == JobPhase::Capturing {
            node::signal(operator()?.pid, "KILL")?;
        }
        send_pairs(&line, 50, 100)?;
        if at == JobPhase::Storing {
            objects::wait_for_job(&line.client, &job.name_any(), "ended", SOON, |j| {
                j.status.as_ref().is_some_and(|s| s.capture_ended_at.is_some())
            })
            .await?;
            node::signal(operator()?.pid, "KILL")?;
        }
        let job = finish(&line, &job).await?;
        assert_eq!(
            objects::phase(&job),
            Some(JobPhase::Completed),
            "killed in {at:?}: {:?}",
            job.status
        );
        assert_eq!(job.status.as_ref().and_then(|s| s.packet_count), Some(50));
        objects::delete_job(&line.client, &job).await?;
        store_holds_nothing_of(&job)?;
    }
    Ok(())
}

#[tokio::test]
async fn a_store_that_stops_answering_and_comes_back_delays_the_job_and_loses_nothing() -> Result<()> {
    let line = line().await?;
    let server = store_server()?;
    let job = start(&line, &request(&line, Some(FILTER), "3s", "1Mi")).await?;
    send_pairs(&line, 30, 100)?;
    node::signal(server.pid, "STOP")?;
    tokio::time::sleep(Duration::from_secs(15)).await;
    let during = objects::jobs(&line.client).get(&job.name_any()).await?;
    let terminal = objects::is_terminal(&during);
    node::signal(server.pid, "CONT")?;
    assert!(
        !terminal,
        "a job ended while its store could not be asked: {:?}",
        during.status
    );
    let job = complete(&line, &job).await?;
    assert_eq!(job.status.as_ref().and_then(|s| s.packet_count), Some(30));
    objects::delete_job(&line.client, &job).await?;
    store_holds_nothing_of(&job)
}

#[tokio::test]
async fn wrong_bytes_in_the_store_never_become_completed() -> Result<()> {
    let line = line().await?;
    let job = start(&line, &request(&line, Some(FILTER), "3s", "1Mi")).await?;
    let operator = operator()?;
    node::signal(operator.pid, "STOP")?;
    let tampered = tamper(&line, &job).await;
    node::signal(operator.pid, "CONT")?;
    tampered?;
    let job = finish(&line, &job).await?;
    assert_eq!(objects::phase(&job), Some(JobPhase::Failed), "{:?}", job.status);
    let failure = job
        .status
        .as_ref()
        .and_then(|s| s.failure.clone())
        .context("failure")?;
    assert_eq!(failure.reason, FailureReason::ArtifactMismatch, "{failure:?}");
    assert_ne!(
        objects::condition(&job, "Downloadable").map(|c| c.0).as_deref(),
        Some("True")
    );
    let dir = tempfile::tempdir()?;
    let out = dir.path().join("x.pcapng");
    let result = download(&line, &job, &out).await?;
    assert!(!result.status.success());
    assert!(!out.exists());
    stays(&line, &job, JobPhase::Failed).await?;
    objects::delete_job(&line.client, &job).await?;
    store_holds_nothing_of(&job)
}

/// Flips one byte in the middle of a job's stored file.
fn damage(job: &CaptureJob) -> Result<()> {
    let file = stored_file(job)?;
    let mut bytes = fs::read(&file)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&file, bytes)?;
    Ok(())
}

/// Sends packets, waits for the runner's success and flips one byte of the stored file.
async fn tamper(line: &Line, job: &CaptureJob) -> Result<()> {
    send_pairs(line, 30, 100)?;
    objects::wait_for_job(&line.client, &job.name_any(), "runner result", SOON, |j| {
        j.status.as_ref().is_some_and(|s| s.runner_result.is_some())
    })
    .await?;
    damage(job)
}

#[tokio::test]
async fn a_file_damaged_after_completion_is_refused_by_the_download() -> Result<()> {
    let line = line().await?;
    let job = start(&line, &request(&line, Some(FILTER), "2s", "1Mi")).await?;
    send_pairs(&line, 30, 100)?;
    let job = complete(&line, &job).await?;
    damage(&job)?;
    let dir = tempfile::tempdir()?;
    let out = dir.path().join("x.pcapng");
    let result = download(&line, &job, &out).await?;
    assert!(!result.status.success());
    assert_eq!(
        fs::read_dir(dir.path())?.count(),
        0,
        "a damaged download left a file"
    );
    objects::delete_job(&line.client, &job).await
}

#[tokio::test]
async fn a_job_deleted_while_capturing_leaves_nothing_behind() -> Result<()> {
    let line = line().await?;
    let job = start(&line, &request(&line, Some(FILTER), "60s", "1Mi")).await?;
    send_pairs(&line, 10, 100)?;
    objects::delete_job(&line.client, &job).await?;
    assert!(node::processes("trawl-runner", &uid(&job)?).is_empty());
    store_holds_nothing_of(&job)
}
