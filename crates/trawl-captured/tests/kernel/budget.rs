//! What the daemon costs: memory while everything is in use, CPU while nothing arrives.

use std::time::Duration;

use crate::world::*;

const HISTORY: u64 = 64 << 20;
/// Frames that are with the kernel, so that it always has some to receive into.
const RESERVE: u64 = 48 << 20;
/// Everything else.
const REST: u64 = 30 << 20;
/// What may wait for the writer of one capture where frames are copied.
const WAITING: u64 = 16 << 20;

fn field(process: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap()
        .to_owned();
    let kib: u64 = line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().unwrap();
    kib * 1024
}

/// User and system time of all threads, in hundredths of a second.
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<_> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_ascii_whitespace()
        .collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_what_was_asked_for_and_thirty_mebibytes() {
    for source in both() {
        let world = World::new();
        let daemon = world.daemon_with(&["--history", "64Mi"]);
        let client = world.client();
        let process = daemon.0.id();
        let bare = field(process, "VmRSS");
        let _held = attach(&client, source.clone()).await;
        let running = start(&client, capture("t", "", 8_000), world.path("f"))
            .await
            .unwrap();
        let far = world.injector(FAR);
        for i in 0..100_000 {
            far.send(&frame(i, 53, 1000)).unwrap();
        }
        let status = wait_for(&client, "the history is full", |s| s.counters.packets > 60_000).await;
        let history = status.history.unwrap();
        let used = field(process, "VmHWM");
        println!("{source:?}: {bare} bytes bare, {used} at most, history {history:?}");
        assert!(
            history.packets > 10_000,
            "this test is about memory in use: {history:?}"
        );
        let waiting = if matches!(source, trawl_control::Source::NodeInterface(_)) {
            WAITING
        } else {
            0
        };
        assert!(used < HISTORY + RESERVE + REST + waiting, "{used} bytes");
        running.ended().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_to_which_nothing_comes_costs_next_to_nothing() {
    let world = World::new();
    let daemon = world.daemon();
    let client = world.client();
    let _mirror = attach(&client, mirror(NEAR)).await;
    let other = trawl_control::Attach {
        history_bytes: None,
        tap: tap("other"),
        source: node(FAR),
    };
    let _node = client.attach(other).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = ticks(daemon.0.id());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let spent = ticks(daemon.0.id()) - before;
    println!("{spent} hundredths of a second in 10 s, for two attachments");
    // One percent is the goal; the bound leaves room for a machine that is busy with other things.
    assert!(spent <= 30, "{spent} hundredths of a second in 10 s");
}
