use std::time::Duration;

use anyhow::{Context, Result};
use trawl_api::{JobPhase, StopReason};
use trawl_testbed::{files, objects, traffic::Sender};

use crate::support::*;

#[tokio::test]
async fn the_size_bound_is_never_exceeded_and_the_next_packet_would_not_have_fit() -> Result<()> {
    let line = line().await?;
    let job = start(&line, &request(&line, Some(FILTER), "60s", "1Mi")).await?;
    let size = 1400;
    Sender::open(&line.mirror_peer)?.send_numbered(0..2000, PORT, size, Duration::from_micros(100))?;
    let job = complete(&line, &job).await?;
    let result = job
        .status
        .as_ref()
        .and_then(|s| s.runner_result.clone())
        .context("runnerResult")?;
    assert_eq!(result.stop_reason, Some(StopReason::Size));
    let dir = tempfile::tempdir()?;
    let file = fetch(&line, &job, dir.path()).await?;
    let length = std::fs::metadata(&file)?.len();
    let next_block = 32 + (size as u64).next_multiple_of(4);
    assert!(length <= 1 << 20, "{length}");
    assert!(
        length + next_block > 1 << 20,
        "{length}: another packet would have fit"
    );
    let (numbers, others) = files::numbers(&file)?;
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(others, 0);
    assert!(files::packets(&file)?.iter().all(|p| p.len() == size));
    files::wireshark_accepts(&file)?;
    objects::delete_job(&line.client, &job).await
}

#[tokio::test]
async fn the_duration_bound_ends_the_capture_while_traffic_goes_on() -> Result<()> {
    let line = line().await?;
    let job = start(&line, &request(&line, Some(FILTER), "3s", "50Mi")).await?;
    let peer = line.mirror_peer.clone();
    let sender = std::thread::spawn(move || {
        Sender::open(&peer)?.send_numbered(0..6000, PORT, 100, Duration::from_millis(1))
    });
    let job = finish(&line, &job).await?;
    sender.join().expect("sender")?;
    let status = job.status.clone().context("status")?;
    assert_eq!(objects::phase(&job), Some(JobPhase::Completed), "{status:?}");
    assert_eq!(
        status.runner_result.context("runnerResult")?.stop_reason,
        Some(StopReason::Duration)
    );
    let dir = tempfile::tempdir()?;
    let file = fetch(&line, &job, dir.path()).await?;
    let (numbers, _) = files::numbers(&file)?;
    assert!(!numbers.is_empty() && numbers.len() < 6000, "{}", numbers.len());
    assert!(
        numbers.windows(2).all(|w| w[1] == w[0] + 1),
        "a gap inside the window"
    );
    let took = status
        .capture_ended_at
        .context("captureEndedAt")?
        .0
        .as_millisecond()
        - status.started_at.context("startedAt")?.0.as_millisecond();
    assert!((2900..=4100).contains(&took), "{took} ms");
    objects::delete_job(&line.client, &job).await
}

#[tokio::test]
async fn snaplen_keeps_the_first_bytes_of_each_packet() -> Result<()> {
    let line = line().await?;
    let mut request = request(&line, Some(FILTER), "3s", "1Mi");
    request.snaplen = 64;
    let job = start(&line, &request).await?;
    Sender::open(&line.mirror_peer)?.send_numbered(0..50, PORT, 500, Duration::from_millis(1))?;
    let job = complete(&line, &job).await?;
    let dir = tempfile::tempdir()?;
    let file = fetch(&line, &job, dir.path()).await?;
    let packets = files::packets(&file)?;
    assert_eq!(packets.len(), 50);
    assert!(packets.iter().all(|p| p.len() == 64));
    objects::delete_job(&line.client, &job).await
}
