//! Every frame is accounted for, also when more comes than can be taken.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use trawl_control::{Capture, Source, StopReason};
use trawl_traffic::frame::Shape;
use trawl_traffic::ring::live::Live;

use crate::load::*;
use crate::world::*;

/// Sends numbered live frames, as fast as possible, from the far end.
fn flood(world: &World, size: usize, duration: Duration) -> std::thread::JoinHandle<u64> {
    let path = format!("/run/netns/{}", world.namespace);
    std::thread::spawn(move || {
        let namespace = File::open(path).unwrap();
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let shape = Shape {
            needle_every: 100,
            ..Shape::default()
        };
        let live = Live::open(FAR, shape, &[size], 0, None).unwrap();
        live.send(None, Some(duration)).unwrap().frames
    })
}

async fn more_than_can_be_taken(source: Source, size: usize) {
    let world = World::new();
    world.shell(&format!("ethtool -K {NEAR} gro on >/dev/null"));
    let daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, source).await;
    let whole = Capture {
        max_size_bytes: 1 << 30,
        ..capture("t", "", 60_000)
    };
    let needle = Capture {
        filter: Some("udp port 9999".into()),
        ..whole.clone()
    };
    let everything = start(&client, whole, world.path("all")).await.unwrap();
    let needles = start(&client, needle, world.path("needles")).await.unwrap();
    let flood = flood(&world, size, Duration::from_secs(1));
    // However fast the machine is: what comes while nobody takes it is more than the ring has room for.
    tokio::time::sleep(Duration::from_millis(300)).await;
    daemon.signal(Signal::STOP);
    tokio::time::sleep(Duration::from_millis(300)).await;
    daemon.signal(Signal::CONT);
    let sent = flood.join().unwrap();
    // On a busy machine the kernel's own thread still has some to deliver.
    tokio::time::sleep(Duration::from_millis(500)).await;
    everything.cancel.cancel().unwrap();
    needles.cancel.cancel().unwrap();
    let (ended, packets) = everything.ended().await;
    let (some, found) = needles.ended().await;
    let b = ended.balance;
    println!("sent {sent}, {size} bytes: {b:?}; needles {:?}", some.balance);
    assert!(b.adds_up() && some.balance.adds_up());
    assert_eq!(packets.len() as u64, b.written);
    assert_eq!(found.len() as u64, some.balance.written);
    assert_eq!(
        some.balance.lost_writer, 0,
        "who wants little loses nothing because another wants much"
    );
    // A machine that writes faster than this test expects fills the largest file there may be.
    if ended.stop_reason != StopReason::Size {
        assert_eq!(b.seen, some.balance.seen);
    }
    let b = some.balance;
    let status = status_of(&client.status().await.unwrap().attachments, "t");
    let c = status.counters;
    assert_eq!(c.packets, b.seen, "all came in the window");
    assert!(sent > c.packets, "{sent} were no more than could be taken");
    assert!(c.dropped_ring.unwrap() > 0, "the ring had room for all");
    assert_eq!(c.dropped_ring, b.lost_ring);
    if let Some(offered) = status.queues[0].offered {
        assert_eq!(
            offered,
            c.packets + c.dropped_ring.unwrap(),
            "the program counts for itself"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_balance_adds_up_when_more_comes_than_can_be_taken() {
    for source in both() {
        for size in [60, 1500] {
            more_than_can_be_taken(source.clone(), size).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_captures_at_once_each_get_all_their_packets() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let mut all = Vec::new();
        for i in 0..64 {
            // Half of them want the same; the others each something of their own.
            let filter = match i % 2 {
                0 => "udp port 99".to_owned(),
                _ => format!("udp port 99 and greater {}", 61 + i),
            };
            let path = world.path(&format!("{i}"));
            all.push(start(&client, capture("t", &filter, 2_500), path).await.unwrap());
        }
        let load = Load::start(&world, 15_000);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let sent = load.stop();
        let wanted: Vec<_> = (0..sent).step_by(100).collect();
        let mut judged = 0;
        for (i, running) in all.into_iter().enumerate() {
            let (ended, packets) = running.ended().await;
            assert_eq!(ended.stop_reason, StopReason::Duration);
            assert_eq!(ended.balance.lost_writer, 0);
            if ended.balance.lost_ring == Some(0) {
                judged += 1;
                let least = if i % 2 == 0 { 0 } else { 61 + i };
                let numbers: Vec<_> = packets.iter().map(number_of).collect();
                let long = |n: &u32| length_of(*n) >= least;
                assert_eq!(numbers, wanted.iter().copied().filter(long).collect::<Vec<_>>());
                assert_eq!(ended.balance.seen, u64::from(sent));
            }
        }
        assert!(judged > 32, "only {judged} of 64 lost nothing in the ring");
    }
}
