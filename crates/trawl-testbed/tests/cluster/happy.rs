use std::{net::UdpSocket, time::Duration};

use anyhow::{Context, Result};
use kube::ResourceExt;
use trawl_testbed::line::var;
use trawl_testbed::{files, objects, traffic::Sender};

use crate::support::*;

#[tokio::test]
async fn a_capture_job_becomes_a_verified_file_in_hand_that_holds_the_filtered_packets_and_nothing_else()
-> Result<()> {
    let line = line().await?;
    let job = start(&line, &request(&line, Some(FILTER), "5s", "50Mi")).await?;
    send_pairs(&line, 500, 300)?;
    let job = complete(&line, &job).await?;
    assert!(
        job.annotations()
            .contains_key(trawl_api::names::REQUESTER_ANNOTATION),
        "nobody stamped who asked"
    );
    let status = job.status.clone().context("status")?;
    assert_eq!(status.packet_count, Some(500));
    assert_eq!(
        status.runner_result.context("runnerResult")?.packet_count,
        Some(500)
    );
    for type_ in [
        "Accepted",
        "TargetReady",
        "FilterValid",
        "CaptureStarted",
        "ArtifactVerified",
        "Downloadable",
    ] {
        assert_eq!(
            objects::condition(&job, type_).map(|c| c.0).as_deref(),
            Some("True"),
            "{type_}"
        );
    }
    assert_ne!(
        objects::condition(&job, "RetentionEnforced")
            .map(|c| c.0)
            .as_deref(),
        Some("True")
    );

    let dir = tempfile::tempdir()?;
    let file = fetch(&line, &job, dir.path()).await?;
    files::wireshark_accepts(&file)?;
    let (numbers, others) = files::numbers(&file)?;
    assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    assert_eq!(others, 0);
    assert_eq!(
        std::fs::metadata(&file)?.len() as i64,
        status.size_bytes.context("sizeBytes")?
    );

    objects::delete_job(&line.client, &job).await?;
    store_holds_nothing_of(&job)
}

#[tokio::test]
async fn a_capture_of_the_seconds_before_holds_packets_sent_before_anybody_asked_for_it() -> Result<()> {
    let line = line().await?;
    send_pairs(&line, 300, 200)?;
    let mut request = request(&line, Some(FILTER), "2s", "50Mi");
    request.pre_trigger = Some("1m");
    let job = start(&line, &request).await?;
    Sender::open(&line.mirror_peer)?.send_numbered(300..400, PORT, 200, Duration::ZERO)?;
    let job = complete(&line, &job).await?;
    let dir = tempfile::tempdir()?;
    let file = fetch(&line, &job, dir.path()).await?;
    files::wireshark_accepts(&file)?;
    let (numbers, others) = files::numbers(&file)?;
    let first = numbers.iter().rposition(|n| *n == 0).context("number 0")?;
    assert_eq!(
        numbers[first..],
        (0..400).collect::<Vec<_>>(),
        "a gap or a duplicate at the seam"
    );
    assert_eq!(others, 0);
    objects::delete_job(&line.client, &job).await
}

#[tokio::test]
async fn a_capture_that_saw_no_packet_is_a_valid_file_and_says_zero() -> Result<()> {
    let line = line().await?;
    let job = start(&line, &request(&line, Some("udp dst port 9"), "2s", "1Mi")).await?;
    let job = complete(&line, &job).await?;
    assert_eq!(job.status.as_ref().and_then(|s| s.packet_count), Some(0));
    let dir = tempfile::tempdir()?;
    let file = fetch(&line, &job, dir.path()).await?;
    files::wireshark_accepts(&file)?;
    assert_eq!(files::packets(&file)?.len(), 0);
    objects::delete_job(&line.client, &job).await
}

#[tokio::test]
async fn a_tap_without_running_analyzers_is_degraded_and_never_claims_healthy_ones() -> Result<()> {
    let line = line().await?;
    let api = objects::taps(&line.client);
    let tap = objects::wait_until(
        "tap degraded",
        SOON,
        async || Ok(api.get(TAP).await?),
        |t| t.status.as_ref().and_then(|s| s.phase) == Some(trawl_api::TapPhase::Degraded),
    )
    .await?;
    let status = tap.status.context("status")?;
    let healthy = status
        .conditions
        .iter()
        .find(|c| c.type_ == "AnalyzersHealthy")
        .context("AnalyzersHealthy")?;
    assert_ne!(healthy.status, "True");
    assert_eq!(status.matched_targets, Some(1));
    assert_eq!(status.targets[0].node_name, line.node);
    assert_eq!(status.targets[0].interface, line.mirror_iface);
    Ok(())
}

#[tokio::test]
async fn a_nodes_own_interface_is_captured_by_af_packet_and_the_node_stays_reachable() -> Result<()> {
    let line = line().await?;
    let name = "node-interface";
    let tap = objects::create_node_tap(&line.client, name, &line.node, "eth0").await?;
    let api = objects::taps(&line.client);
    objects::wait_until(
        "node tap reports",
        SOON,
        async || Ok(api.get(name).await?),
        reports,
    )
    .await?;
    let mut request = request(&line, Some("udp dst port 7003"), "3s", "1Mi");
    request.tap = name;
    let job = start(&line, &request).await?;
    let socket = UdpSocket::bind((var("HOST_IP")?, 0))?;
    let node = (var("NODE_IP")?, 7003);
    for n in 0..25u64 {
        socket.send_to(&n.to_be_bytes(), (node.0.as_str(), node.1))?;
    }
    let job = complete(&line, &job).await?;
    assert_eq!(job.status.as_ref().and_then(|s| s.packet_count), Some(25));
    assert_eq!(
        job.status.as_ref().and_then(|s| s.resolved_interface.as_deref()),
        Some("eth0")
    );
    let dir = tempfile::tempdir()?;
    let file = fetch(&line, &job, dir.path()).await?;
    files::wireshark_accepts(&file)?;
    let numbers: Vec<_> = files::packets(&file)?
        .iter()
        .map(|p| p[42..50].to_vec())
        .collect();
    assert_eq!(
        numbers,
        (0..25u64).map(|n| n.to_be_bytes().to_vec()).collect::<Vec<_>>()
    );
    objects::delete_job(&line.client, &job).await?;
    api.delete(name, &Default::default()).await?;
    objects::nothing_left_of(
        &line.client,
        "trawl.cloud/tap-uid",
        &tap.metadata.uid.context("uid")?,
    )
    .await
}
