//! Captures that begin in the past: what they hold is what a capture that ran all along holds of their window.

use std::time::Duration;

use trawl_control::{Capture, Source, StopReason};
use trawl_dataplane::clock::realtime_ns;

use crate::load::*;
use crate::world::*;

const TRIGGERS: usize = 200;
const AT_ONCE: usize = 8;
const MILLISECOND: u64 = 1_000_000;

async fn random_triggers_under_load(source: Source) {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, source).await;
    let long = Capture {
        max_size_bytes: 1 << 30,
        snaplen: 64,
        ..capture("t", "", 600_000)
    };
    let everything = start(&client, long, world.path("all")).await.unwrap();
    let load = Load::start(&world, 30_000);
    tokio::time::sleep(Duration::from_millis(700)).await;
    let mut random = Random::new();
    let mut windows = Vec::new();
    for batch in 0..TRIGGERS / AT_ONCE {
        let mut running = Vec::new();
        for i in 0..AT_ONCE {
            let request = Capture {
                trigger_ns: Some(realtime_ns() - random.between(0, 150 * MILLISECOND)),
                pre_trigger_ms: random.between(0, 100),
                snaplen: 64,
                ..capture("t", "", random.between(1, 250))
            };
            let path = world.path(&format!("{batch}-{i}"));
            let end_ns = request.trigger_ns.unwrap() + request.duration_ms * MILLISECOND;
            running.push((start(&client, request, path).await.unwrap(), end_ns));
        }
        for (running, end_ns) in running {
            let started = running.started.clone();
            assert_eq!(
                started.covered_from_ns, started.requested_from_ns,
                "the history is long enough"
            );
            let (ended, packets) = running.ended().await;
            assert_eq!(ended.stop_reason, StopReason::Duration);
            let b = ended.balance;
            assert_eq!((b.lost_history, b.lost_writer), (0, 0), "{b:?}");
            windows.push((started.covered_from_ns..end_ns, packets));
        }
    }
    load.stop();
    tokio::time::sleep(Duration::from_millis(100)).await;
    everything.cancel.cancel().unwrap();
    let (ended, all) = everything.ended().await;
    assert_eq!(
        (ended.stop_reason, ended.balance.lost_writer),
        (StopReason::Cancelled, 0)
    );
    assert_eq!(windows.len(), TRIGGERS);
    let mut total = 0;
    for (window, packets) in windows {
        let inside = all.iter().filter(|p| window.contains(&p.stamp_ns));
        let wanted: Vec<_> = inside.map(|p| (p.stamp_ns, number_of(p))).collect();
        let got: Vec<_> = packets.iter().map(|p| (p.stamp_ns, number_of(p))).collect();
        assert!(got == wanted, "{} packets instead of {}", got.len(), wanted.len());
        let steps = got.windows(2).all(|pair| pair[0].1 < pair[1].1);
        assert!(steps, "a packet came twice or out of order");
        if ended.balance.lost_ring == Some(0) {
            let gaps = got.windows(2).filter(|pair| pair[0].1 + 1 != pair[1].1).count();
            assert_eq!(gaps, 0);
        }
        total += got.len();
    }
    assert!(total > TRIGGERS * 500, "{total} packets are no load");
    println!(
        "{TRIGGERS} windows, {total} packets, ring lost {:?}",
        ended.balance.lost_ring
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_random_triggers_under_load_have_no_gap_and_no_duplicate_on_a_mirror() {
    random_triggers_under_load(mirror(NEAR)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_random_triggers_under_load_have_no_gap_and_no_duplicate_on_a_node_interface() {
    random_triggers_under_load(node(NEAR)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_the_history_does_not_reach_is_reported_and_the_rest_is_whole() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let load = Load::start(&world, 20_000);
        tokio::time::sleep(Duration::from_millis(300)).await;
        let request = Capture {
            pre_trigger_ms: 300_000,
            ..capture("t", "", 200)
        };
        let running = start(&client, request, world.path("f")).await.unwrap();
        let started = running.started.clone();
        assert!(started.requested_from_ns < started.covered_from_ns);
        assert!(started.started_at_ns > started.covered_from_ns);
        let (ended, packets) = running.ended().await;
        load.stop();
        assert_eq!(ended.started_at_ns, started.started_at_ns);
        assert_eq!(
            number_of(&packets[0]),
            0,
            "everything since the interface was opened is there"
        );
        let numbers = packets.iter().map(number_of);
        assert!(numbers.eq(0..packets.len() as u32) || ended.balance.lost_ring > Some(0));
    }
}
