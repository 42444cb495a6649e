//! The sensor against a real API server and a scripted captured; `TRAWL_TEST_KUBECONFIG` names the server.

mod support;

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use support::{Captured, Script, World, eventually};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use trawl_config::pods::SensorProblemKind;
use trawl_control::Counters;
use trawl_control::client::Client;
use trawl_kube::health::Readiness;
use trawl_sensor::report::Reporter;
use trawl_sensor::tally::Tally;
use trawl_sensor::watch::Watch;

/// A sensor as `cli` builds it, and the way to stop it.
async fn sensor(world: &World, pod: &str) -> (Readiness, CancellationToken, JoinHandle<()>) {
    let readiness = Readiness::waiting_for(&[trawl_sensor::watch::READY]);
    let reporter = Reporter::new(
        world.client.clone(),
        world.spec.clone(),
        "node-1".into(),
        pod.into(),
        Timestamp::now(),
    );
    let tally = Tally::resume(reporter.earlier().await.expect("the tap can be read").as_ref());
    let captured = Client::new(world.socket());
    let watch = Watch::new(world.spec.clone(), captured, reporter, readiness.clone(), tally);
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let task = tokio::spawn(watch.run(async move { stopped.cancelled().await }));
    (readiness, stop, task)
}

fn script(attached_ns: u64, packets: u64, dropped_ring: Option<u64>) -> Arc<Mutex<Script>> {
    let counters = Counters {
        packets,
        bytes: packets * 60,
        dropped_ring,
        dropped_nic: None,
    };
    Arc::new(Mutex::new(Script {
        started_ns: attached_ns,
        attached_ns,
        counters,
        ..Script::default()
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sensor_reports_monotone_totals_and_a_missing_interface_and_lets_go_at_the_end() {
    let world = World::new("all").await;
    let first = Captured::start(&world.socket(), script(1, 10, None));
    let (readiness, stop, task) = sensor(&world, "pod-1").await;

    let target = eventually("the first report", async || world.target().await).await;
    assert_eq!((target.packets_observed, target.bytes_observed), (10, Some(600)));
    assert_eq!(target.kernel_drops, None, "not measured is absent");
    assert_eq!((target.analyzers.len(), target.analyzers[0].healthy), (1, false));
    assert!(
        target.analyzers[0]
            .reason
            .as_ref()
            .unwrap()
            .contains("does not run analyzers")
    );
    assert!(target.reporter_instance.starts_with("pod-1/") && target.last_packet_time.is_some());
    let note = eventually("the mode", async || world.note().await).await;
    assert_eq!((note.pod.as_str(), note.mode.as_deref()), ("pod-1", Some("copy")));
    assert_eq!(note.refusals, ["zero-copy: not offered"]);
    assert!(readiness.problems().is_empty());

    // captured is killed and comes back without the interface.
    first.kill().await;
    let missing = script(2, 0, Some(0));
    missing.lock().unwrap().missing = true;
    let second = Captured::start(&world.socket(), missing.clone());
    let problem = eventually("the problem", async || {
        world
            .note()
            .await?
            .problem
            .filter(|p| p.kind == SensorProblemKind::InterfaceMissing)
    })
    .await;
    assert!(
        problem.message.contains("mirror0 does not exist"),
        "{}",
        problem.message
    );
    assert!(readiness.problems()[0].contains("mirror0 does not exist"));

    // The interface comes back; its counters count from zero, the totals do not.
    {
        let mut script = missing.lock().unwrap();
        script.missing = false;
        script.attached_ns = 3;
        script.counters = Counters {
            packets: 4,
            bytes: 240,
            dropped_ring: Some(0),
            dropped_nic: None,
        };
    }
    let target = eventually("the report after the restart", async || {
        world.target().await.filter(|t| t.packets_observed > 10)
    })
    .await;
    assert_eq!((target.packets_observed, target.bytes_observed), (14, Some(840)));
    assert_eq!(target.kernel_drops, Some(0), "zero is zero");

    missing.lock().unwrap().counters.packets = 9;
    stop.cancel();
    task.await.expect("the sensor ends");
    assert_eq!(
        world.target().await.unwrap().packets_observed,
        19,
        "the last word is written"
    );
    assert_eq!(missing.lock().unwrap().detached, 1);

    // Another pod goes on from there: its attachment is new, so it adds.
    let later = Timestamp::now().as_nanosecond() as u64 + 60_000_000_000;
    second.kill().await;
    let busy = script(later, 1, None);
    busy.lock().unwrap().active_captures = 1;
    let third = Captured::start(&world.socket(), busy.clone());
    let (_, stop, task) = sensor(&world, "pod-2").await;
    let target = eventually("the new pod's report", async || {
        world
            .target()
            .await
            .filter(|t| t.reporter_instance.starts_with("pod-2/"))
    })
    .await;
    assert_eq!(target.packets_observed, 20);
    stop.cancel();
    task.await.expect("the sensor ends");
    assert_eq!(
        busy.lock().unwrap().detached,
        0,
        "a capture under way outlives the sensor"
    );
    third.kill().await;
    world.end().await;
}
