//! Laws that hold for either ring.

use trawl_dataplane::clock;
use trawl_dataplane::queue::{Position, Queue};
use trawl_dataplane::ring::RingOptions;

use crate::world::*;

/// Runs a law on a fresh wire for each ring.
fn on_both(options: &RingOptions, law: impl Law) {
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
        let bytes = receive(queue, 1000);
        let sum: u64 = lengths.iter().map(|l| *l as u64 * 250).sum();
        assert!(
            (sum..=sum + 7000).contains(&bytes),
            "{bytes} bytes instead of {sum}"
        );
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

struct Flooded;

impl Law for Flooded {
    fn holds(&self, world: &World, queue: &mut impl Queue) {
        const SENT: u32 = 100_000;
        let before = clock::realtime_ns();
        let complete = queue.history().complete_from_ns;
        assert!(complete <= before, "complete since it was opened");
        let mut behind = queue.end();
        let frames = receive_while(queue, world.send(0..SENT, 1000));
        let losses = queue.losses().unwrap();
        assert_eq!((frames, losses.ring), (u64::from(SENT), Some(0)));
        assert_eq!(losses.offered, Some(frames));
        assert_eq!(losses.nic, Some(0));

        let history = queue.history();
        assert!(history.budget_bytes <= 16 << 20);
        let least = history.budget_bytes / 2048 * 3 / 4;
        assert!(history.packets >= least, "{history:?}");
        assert!(history.packets * 1000 <= history.budget_bytes, "{history:?}");
        assert!(history.complete_from_ns > before);

        let (seen, overtaken) = rest(queue, &mut behind);
        assert_eq!(seen.len() as u64, history.packets);
        assert_eq!(overtaken + history.packets, u64::from(SENT));
        let numbers: Vec<_> = seen.iter().map(|s| number_in(&s.bytes)).collect();
        assert!(numbers == (overtaken as u32..SENT).collect::<Vec<_>>());
        assert!(seen.iter().all(|s| s.bytes == frame(number_in(&s.bytes), 1000)));
        assert!(seen.is_sorted_by_key(|s| s.stamp_ns));
        assert_eq!(seen[0].stamp_ns, history.complete_from_ns);
    }
}

#[test]
fn a_flood_beyond_the_budget_recycles_the_oldest_frames_and_loses_none() {
    on_both(&history(16 << 20), Flooded);
}

struct Sought;

impl Law for Sought {
    fn holds(&self, world: &World, queue: &mut impl Queue) {
        assert_eq!(queue.seek(0), queue.end(), "nothing is there yet");
        receive_while(queue, world.send(0..60_000, 600));
        let (seen, overtaken) = rest(queue, &mut Position::default());
        assert!(overtaken > 0 && seen.len() > 1000);
        for (i, frame) in seen.iter().enumerate().step_by(97) {
            let first = seen.partition_point(|s| s.stamp_ns < frame.stamp_ns);
            for (stamp, wanted) in [(frame.stamp_ns, first), (frame.stamp_ns + 1, i + 1)] {
                let mut at = queue.seek(stamp);
                assert_eq!(at.number, overtaken + wanted as u64);
                let mut found = None;
                queue.visit(&mut at, 1, &mut |f| found = Some(self::seen(f)));
                assert_eq!(found.as_ref(), seen.get(wanted));
            }
        }
        assert_eq!(queue.seek(0).number, overtaken);
        assert_eq!(queue.seek(u64::MAX), queue.end());
    }
}

#[test]
fn a_moment_in_the_past_is_found_to_the_frame() {
    on_both(&history(16 << 20), Sought);
}

struct BegunAnew;

impl Law for BegunAnew {
    fn holds(&self, world: &World, queue: &mut impl Queue) {
        const BEFORE: u32 = 5_000;
        const SENT: u32 = 60_000;
        let mut behind = queue.end();
        let first = receive_while(queue, world.send(0..BEFORE, 600));
        assert_eq!(first, u64::from(BEFORE));
        let mut held = Vec::new();
        let mut at = Position::default();
        queue.visit(&mut at, 100, &mut |f| {
            let _ = f.hold(f.len(), &mut held);
        });
        let before = clock::realtime_ns();
        queue.begin_anew();
        assert_eq!(queue.history().packets, 0);
        assert!(queue.history().complete_from_ns >= before);
        assert_eq!((queue.seek(0), queue.newest_ns()), (queue.end(), None));
        // Neither what is held nor what is free is lost to receiving.
        let bytes: usize = held.iter().map(|h| queue.memory().bytes(h).len()).sum();
        assert_eq!(bytes, held.len() * 600);
        queue.take_back(&mut held);
        let more = receive_while(queue, world.send(BEFORE..SENT, 600));
        assert_eq!(more, u64::from(SENT - BEFORE));
        assert_eq!(queue.losses().unwrap().ring, Some(0));
        let (seen, overtaken) = rest(queue, &mut behind);
        assert!(overtaken >= first);
        let numbers: Vec<_> = seen.iter().map(|s| number_in(&s.bytes)).collect();
        assert!(numbers == (overtaken as u32..SENT).collect::<Vec<_>>());
    }
}

#[test]
fn a_history_that_begins_anew_holds_nothing_from_before_and_receives_as_ever() {
    on_both(&history(16 << 20), BegunAnew);
}

struct Tagged;

impl Law for Tagged {
    fn holds(&self, world: &World, queue: &mut impl Queue) {
        // The kernel moves the outer tag into metadata, where the sender leaves that to the device.
        world.shell(&format!("ethtool -K {FAR} txvlan on >/dev/null"));
        let far = world.far();
        let frames = [
            tagged(&frame(1, 100), 7),
            frame(2, 100),
            tagged(&tagged(&frame(3, 100), 9), 7),
            tagged(&frame(4, 1514), 4094),
        ];
        let mut at = queue.end();
        frames.iter().for_each(|f| far.send(f).unwrap());
        let sum: usize = frames.iter().map(Vec::len).sum();
        assert_eq!(receive(queue, 4), sum as u64);
        for mut at in [at, Position::default(), queue.seek(0)] {
            let (seen, _) = rest(queue, &mut at);
            assert_eq!(seen.iter().map(|s| s.bytes.clone()).collect::<Vec<_>>(), frames);
            assert!(seen.iter().all(|s| s.wire_length as usize == s.bytes.len()));
        }
        // One at a time, from both ends of the walk.
        let mut all = Vec::new();
        while queue.visit(&mut at, 1, &mut |f| all.push(seen(f).bytes)).frames > 0 {}
        assert_eq!(all, frames);
    }
}

#[test]
fn vlan_tags_are_in_their_places_however_often_a_frame_is_visited() {
    on_both(&history(16 << 20), Tagged);
}

struct Overloaded;

impl Law for Overloaded {
    fn holds(&self, world: &World, queue: &mut impl Queue) {
        let far = world.far();
        let one = frame(0, 1000);
        let mut sent = 0;
        while sent < 200_000 {
            far.0.send(&[&one[..]; 64]).unwrap();
            sent += 64;
        }
        let frames = drain(queue);
        let losses = queue.losses().unwrap();
        let ring = losses.ring.unwrap();
        assert!(ring > 0, "the reader stood still: {losses:?}");
        assert_eq!(losses.offered, Some(frames + ring));
        // And it goes on.
        far.send(&frame(9, 60)).unwrap();
        receive(queue, 1);
        let newest_ns = queue.newest_ns().unwrap();
        let mut newest = queue.seek(newest_ns);
        assert_eq!(number_in(&rest(queue, &mut newest).0[0].bytes), 9);
    }
}

#[test]
fn what_was_offered_is_received_or_counted_as_lost_while_the_reader_stands_still() {
    on_both(&history(8 << 20), Overloaded);
}

struct Quiet;

impl Law for Quiet {
    fn holds(&self, world: &World, queue: &mut impl Queue) {
        for round in 0..3u64 {
            world.far().send(&frame(1, 100)).unwrap();
            assert!(readable(queue, 5000), "frames wake their reader");
            receive(queue, 1);
            let _ = queue.receive().unwrap();
            assert!(!readable(queue, 300), "what is held does not");
            assert_eq!(queue.history().packets, round + 1);
        }
    }
}

/// Whether the queue's descriptor is readable within so many milliseconds.
fn readable(queue: &impl Queue, milliseconds: i64) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let fd = queue.poll_fd();
    let timeout = Timespec {
        tv_sec: milliseconds / 1000,
        tv_nsec: milliseconds % 1000 * 1_000_000,
    };
    poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&timeout)).unwrap() > 0
}

#[test]
fn a_reader_sleeps_until_frames_arrive_however_many_are_held() {
    on_both(&history(16 << 20), Quiet);
}
