//! Laws that hold for either ring.

use trawl_dataplane::clock;
use trawl_dataplane::queue::{Position, Queue};

use crate::world::*;

/// Runs a law on a fresh wire for each ring.
fn on_both(options: &trawl_dataplane::ring::RingOptions, law: impl Law) {
    let world = World::new();
    let mut opened = mirror(options);
    law.holds(&world, &mut opened.queues[0]);
    drop((opened, world));
    let world = World::new();
    let mut opened = node(options);
    law.holds(&world, &mut opened.queues[0]);
}

trait Law {
    fn holds(&self, world: &World, queue: &mut impl Queue);
}

struct InOrder;

impl Law for InOrder {
    fn holds(&self, world: &World, queue: &mut impl Queue) {
        let far = world.far();
        let mut at = queue.end();
        let lengths = [60, 61, 300, 1514];
        let mut sent = Vec::new();
        for i in 0..1000u32 {
            let before = clock::realtime_ns();
            far.send(&frame(i, lengths[i as usize % 4])).unwrap();
            sent.push((before, clock::realtime_ns()));
        }
        receive(queue, 1000);
        let (frames, overtaken) = rest(queue, &mut at);
        assert_eq!((frames.len(), overtaken), (1000, 0));
        for (i, (seen, (before, after))) in (0..).zip(frames.iter().zip(&sent)) {
            assert_eq!(seen.bytes, frame(i, lengths[i as usize % 4]));
            assert_eq!(seen.wire_length as usize, seen.bytes.len());
            assert!(
                seen.stamp_ns + 200_000 > *before && seen.stamp_ns < *after + 50_000_000,
                "sent between {before} and {after}, stamped {}",
                seen.stamp_ns
            );
        }
        let mut stamps: Vec<_> = frames.iter().map(|f| f.stamp_ns).collect();
        assert!(stamps.is_sorted());
        stamps.dedup();
        assert_eq!(stamps.len(), 1000, "a stamp of its own for each frame");
        // A second reader sees the same, from the beginning.
        assert_eq!(rest(queue, &mut Position::default()).0, frames);
        assert_eq!(queue.newest_ns(), frames.last().map(|f| f.stamp_ns));
    }
}

#[test]
fn frames_come_whole_and_in_order_with_the_stamp_of_their_arrival() {
    on_both(&history(32 << 20), InOrder);
}
