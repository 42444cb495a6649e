//! What only AF_PACKET does.

use trawl_control::CaptureMode;
use trawl_dataplane::queue::{Position, Queue};
use trawl_dataplane::ring::RingOptions;

use crate::world::*;

#[test]
fn flows_are_spread_among_threads_and_together_they_have_every_frame_once() {
    let world = World::new();
    let options = RingOptions {
        node_threads: 2,
        ..history(64 << 20)
    };
    let mut opened = node(&options);
    assert_eq!((opened.queues.len(), opened.mode), (2, CaptureMode::AfPacket));
    let sender = world.send_flows(40_000);
    let mut counts = [0; 2];
    for (count, queue) in counts.iter_mut().zip(&mut opened.queues) {
        *count = drain(queue);
    }
    sender.join().unwrap();
    let mut numbers = Vec::new();
    for (count, queue) in counts.iter_mut().zip(&mut opened.queues) {
        *count += drain(queue);
        assert_eq!(queue.losses().unwrap().offered, Some(*count));
        let (seen, _) = rest(queue, &mut Position::default());
        numbers.extend(seen.iter().map(|s| payload_number(&s.bytes)));
    }
    assert!(counts.iter().all(|c| *c > 1000), "{counts:?}");
    numbers.sort_unstable();
    assert!(numbers == (0..40_000).collect::<Vec<_>>());
}

#[test]
fn two_openings_of_one_interface_are_groups_of_their_own() {
    let world = World::new();
    let options = RingOptions {
        node_threads: 2,
        ..history(0)
    };
    let (mut one, mut two) = (node(&options), node(&options));
    world.send_flows(1000).join().unwrap();
    for opened in [&mut one, &mut two] {
        assert_eq!(opened.queues.iter_mut().map(drain).sum::<u64>(), 1000);
    }
}

#[test]
fn a_loopback_shows_each_frame_once_and_what_the_node_sends_is_seen() {
    let world = World::new();
    world.ip(&["link", "set", "lo", "up"]);
    let mut lo = node_at("lo", &history(0));
    let mut near = node(&history(0));
    let send = |name: &str| {
        let injector = Injector::open(name);
        (0..200).for_each(|n| injector.send(&frame(n, 100)).unwrap());
    };
    send("lo");
    send(NEAR);
    for opened in [&mut lo, &mut near] {
        let queue = &mut opened.queues[0];
        receive(queue, 200);
        assert_eq!(queue.losses().unwrap().offered, Some(200));
        let (seen, _) = rest(queue, &mut Position::default());
        let numbers: Vec<_> = seen.iter().map(|s| number_in(&s.bytes)).collect();
        assert!(numbers == (0..200).collect::<Vec<_>>());
        let third = queue.seek(seen[150].stamp_ns);
        assert!(third.number <= 150);
    }
}
