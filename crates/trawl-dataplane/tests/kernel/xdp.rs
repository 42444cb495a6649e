//! What only AF_XDP does.

use trawl_control::CaptureMode;
use trawl_dataplane::clock;
use trawl_dataplane::queue::{Position, Queue};
use trawl_dataplane::ring::RingOptions;

use crate::world::*;

#[test]
fn held_bytes_outlive_their_ring_and_do_not_keep_the_queue_bound() {
    let world = World::new();
    let far = world.far();
    let mut opened = mirror(&history(0));
    let queue = &mut opened.queues[0];
    let mut at = queue.end();
    far.send(&frame(7, 200)).unwrap();
    receive(queue, 1);
    let mut held = Vec::new();
    queue.visit(&mut at, 1, &mut |f| assert!(f.hold(150, &mut held)));
    let memory = queue.memory();
    drop(opened);
    let mut again = mirror(&history(0));
    assert_eq!(again.mode, CaptureMode::Copy);
    for i in 0..20_000 {
        far.send(&frame(i, 200)).unwrap();
        again.queues[0].receive().unwrap();
    }
    assert_eq!(memory.bytes(&held[0]), &frame(7, 200)[..150]);
}

#[test]
fn a_held_frame_is_not_received_into_while_everything_around_it_is() {
    let world = World::new();
    let mut opened = mirror(&history(8 << 20));
    let queue = &mut opened.queues[0];
    let memory = queue.memory();
    let mut at = queue.end();
    let (mut held, mut numbers) = (Vec::new(), Vec::new());
    receive_while(queue, world.send(0..4000, 500));
    // Every third frame, every ninth of them twice.
    queue.visit(&mut at, 4000, &mut |f| {
        let number = number_in(f.bytes);
        for _ in 0..match number % 9 {
            0 => 2,
            3 | 6 => 1,
            _ => 0,
        } {
            assert!(f.hold(500, &mut held));
            numbers.push(number);
        }
    });
    assert_eq!(receive_while(queue, world.send(4000..60_000, 400)), 56_000);
    for (held, number) in held.iter().zip(&numbers) {
        assert_eq!(memory.bytes(held), frame(*number, 500));
    }
    // In any order, and the doubly held ones only with their second return.
    while held.len() > numbers.len() / 2 {
        let mut some = held.split_off(held.len() - held.len() / 3);
        some.reverse();
        queue.take_back(&mut some);
        assert!(some.is_empty());
        receive_while(queue, world.send(0..10_000, 300));
        for (held, number) in held.iter().zip(&numbers) {
            assert_eq!(memory.bytes(held), frame(*number, 500));
        }
    }
    queue.take_back(&mut held);
    assert_eq!(queue.losses().unwrap().ring, Some(0));
    let all = receive_while(queue, world.send(0..30_000, 300));
    let history = queue.history();
    assert_eq!((all, history.packets), (30_000, history.budget_bytes / 2048));
}

#[test]
fn no_more_is_held_than_receiving_can_spare() {
    let world = World::new();
    let mut opened = mirror(&history(0));
    let queue = &mut opened.queues[0];
    let mut at = queue.end();
    let mut held = Vec::new();
    for round in 0..20 {
        assert_eq!(receive_while(queue, world.send(0..1000, 60)), 1000);
        queue.visit(&mut at, 1000, &mut |f| {
            let _ = f.hold(60, &mut held);
        });
        assert_eq!(held.len(), queue.may_hold().min(1000 * (round + 1)));
    }
    assert_eq!(queue.losses().unwrap().ring, Some(0));
}

#[test]
fn each_receive_queue_has_its_ring_and_together_they_have_everything() {
    let world = World::with(
        &["numrxqueues", "2", "numtxqueues", "2"],
        &["numrxqueues", "2", "numtxqueues", "2"],
    );
    let mut opened = mirror(&history(128 << 20));
    assert_eq!((opened.queues.len(), opened.mode), (2, CaptureMode::Copy));
    let sender = world.send_flows(20_000);
    let mut counts = [0; 2];
    while !sender.is_finished() || counts.iter().sum::<u64>() < 20_000 {
        for (count, queue) in counts.iter_mut().zip(&mut opened.queues) {
            *count += queue.receive().unwrap().frames;
        }
    }
    let losses: Vec<_> = opened.queues.iter_mut().map(|q| q.losses().unwrap()).collect();
    assert_eq!(
        losses.iter().map(|l| l.offered).collect::<Vec<_>>(),
        counts.map(Some)
    );
    // The interface's own losses are told once.
    assert_eq!(losses.iter().map(|l| l.nic).collect::<Vec<_>>(), [Some(0), None]);
    let mut numbers = Vec::new();
    for queue in &mut opened.queues {
        let (seen, _) = rest(queue, &mut Position::default());
        let mine: Vec<_> = seen.iter().map(|s| payload_number(&s.bytes)).collect();
        assert!(mine.len() > 1000 && mine.is_sorted());
        numbers.extend(mine);
    }
    numbers.sort_unstable();
    assert!(numbers == (0..20_000).collect::<Vec<_>>());
}

#[test]
fn frames_larger_than_a_buffer_come_whole_in_the_driver_and_can_be_held() {
    let world = World::with(&["mtu", "9000"], &["mtu", "9000"]);
    let mut opened = mirror(&history(32 << 20));
    assert_eq!(opened.mode, CaptureMode::Copy, "{:?}", opened.refusals);
    let queue = &mut opened.queues[0];
    let memory = queue.memory();
    let far = world.far();
    let length = |n: u32| [60, 3000, 3824, 3825, 9014, 1514][n as usize % 6];
    let mut at = queue.end();
    let (mut held, mut frames) = (Vec::new(), 0);
    for n in 0..30_000 {
        far.send(&frame(n, length(n))).unwrap();
        frames += queue.receive().unwrap().frames;
        if n < 600 {
            queue.visit(&mut at, 10, &mut |f| {
                let start = held.len();
                assert!(f.hold(f.len(), &mut held));
                assert_eq!(held.len() - start, 1 + f.more.len());
            });
        }
    }
    frames += drain(queue);
    let losses = queue.losses().unwrap();
    assert_eq!(
        (frames, losses.ring, losses.offered),
        (30_000, Some(0), Some(30_000))
    );

    let bytes: Vec<u8> = held.iter().flat_map(|h| memory.bytes(h).to_vec()).collect();
    let sent: Vec<u8> = (0..)
        .flat_map(|n| frame(n, length(n)))
        .take(bytes.len())
        .collect();
    assert!(bytes.len() > 1_000_000 && bytes == sent);
    queue.take_back(&mut held);

    let history = queue.history();
    let (seen, overtaken) = rest(queue, &mut at);
    assert_eq!(seen.len() as u64, history.packets);
    for (n, seen) in ((30_000 - history.packets as u32)..).zip(&seen) {
        assert_eq!(seen.bytes, frame(n, length(n)));
        assert_eq!(seen.wire_length as usize, length(n));
    }
    assert!(overtaken > 0);
    let sought = queue.seek(seen[1000].stamp_ns);
    assert_eq!(sought.number, 30_000 - history.packets + 1000);
}

#[test]
fn a_driver_without_xdp_leaves_the_generic_mode_and_each_refusal_says_why() {
    let world = World::new();
    world.ip(&["link", "add", "bridge0", "type", "bridge"]);
    world.ip(&["link", "set", NEAR, "master", "bridge0"]);
    world.ip(&["link", "set", "bridge0", "up"]);
    let mut opened = try_mirror("bridge0", &history(0)).unwrap();
    assert_eq!(opened.mode, CaptureMode::Generic);
    assert_eq!(opened.refusals.len(), 2, "{:?}", opened.refusals);
    assert!(opened.refusals[0].starts_with("zero-copy: cannot "));
    assert!(opened.refusals[1].starts_with("copy: cannot "));
    let queue = &mut opened.queues[0];
    let far = world.far();
    let before = clock::realtime_ns();
    (0..100).for_each(|n| far.send(&frame(n, 300)).unwrap());
    receive(queue, 100);
    let (seen, _) = rest(queue, &mut Position::default());
    for (n, seen) in (0..).zip(&seen) {
        assert_eq!(seen.bytes, frame(n, 300));
        assert!(seen.stamp_ns + 200_000 > before);
    }
    assert!(seen.is_sorted_by_key(|s| s.stamp_ns));
}

#[test]
fn closing_the_ring_takes_its_program_off_the_interface() {
    let world = World::new();
    let attached = || {
        world
            .shell(&format!("ip -d link show {NEAR}"))
            .contains("prog/xdp")
    };
    let opened = mirror(&history(0));
    assert!(attached());
    drop(opened.guard);
    assert!(!attached());
}

#[test]
fn a_program_of_somebody_else_is_left_alone_and_named_as_the_reason() {
    let world = World::new();
    world.ip(&["link", "add", "other0", "type", "veth", "peer", "name", "other1"]);
    world.ip(&["link", "set", "other0", "up"]);
    let lender = try_mirror("other0", &history(0)).unwrap();
    let text = world.shell("ip -j link show other0");
    let id = text
        .split("\"id\":")
        .nth(1)
        .unwrap()
        .split(&[',', '}'])
        .next()
        .unwrap();
    world.shell(&format!("bpftool net attach xdpdrv id {id} dev {NEAR}"));
    let error = try_mirror(NEAR, &history(0)).unwrap_err().to_string();
    assert!(
        error.contains("another program holds the interface: find it with"),
        "{error}"
    );
    let still = world.shell(&format!("ip -d link show {NEAR}"));
    assert!(still.contains(&format!("prog/xdp id {id} ")), "{still}");
    drop(lender);
}

#[test]
fn a_ring_on_a_link_that_is_down_receives_once_it_is_up() {
    let world = World::new();
    world.ip(&["link", "set", NEAR, "down"]);
    let mut opened = mirror(&history(0));
    world.ip(&["link", "set", NEAR, "up"]);
    world.far().send(&frame(1, 60)).unwrap();
    receive(&mut opened.queues[0], 1);
    // And again after it was cut.
    world.ip(&["link", "set", NEAR, "down"]);
    world.ip(&["link", "set", NEAR, "up"]);
    world.far().send(&frame(2, 60)).unwrap();
    receive(&mut opened.queues[0], 1);
}

#[test]
fn looking_into_the_driver_instead_of_waiting_for_it_receives_the_same() {
    let world = World::new();
    let options = RingOptions {
        busy_poll_us: Some(20),
        ..history(16 << 20)
    };
    let mut opened = mirror(&options);
    let queue = &mut opened.queues[0];
    assert_eq!(queue.rest(), None);
    assert_eq!(receive_while(queue, world.send(0..10_000, 100)), 10_000);
}

#[test]
fn a_ring_whose_interface_is_gone_keeps_its_frames_and_says_nothing_untrue() {
    let world = World::new();
    let mut opened = mirror(&history(16 << 20));
    let queue = &mut opened.queues[0];
    receive_while(queue, world.send(0..100, 100));
    world.ip(&["link", "del", NEAR]);
    assert_eq!(queue.receive().unwrap().frames, 0);
    assert_eq!(rest(queue, &mut Position::default()).0.len(), 100);
    let losses = queue.losses().unwrap();
    assert_eq!((losses.offered, losses.nic), (Some(100), None));
}

#[test]
fn memory_is_what_the_budget_and_the_reserve_allow() {
    let world = World::new();
    let mut opened = mirror(&history(48 << 20));
    let queue = &mut opened.queues[0];
    world.far().send(&frame(1, 100)).unwrap();
    receive(queue, 1);
    let mut place = 0;
    queue.visit(&mut Position::default(), 1, &mut |f| {
        place = f.bytes.as_ptr() as usize
    });
    // In the list of mappings: "first-last rights ...", then lines like "Rss: 12 kB".
    let list = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = list.lines().skip_while(|line| {
        let range = line.split(' ').next().unwrap_or_default().split_once('-');
        let ends = range.map(|(a, b)| (usize::from_str_radix(a, 16), usize::from_str_radix(b, 16)));
        !matches!(ends, Some((Ok(first), Ok(last))) if (first..last).contains(&place))
    });
    let resident = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
    let resident: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert_eq!(queue.history().budget_bytes, 48 << 20);
    assert!((48 << 10..=80 << 10).contains(&resident), "{resident} KiB");
}

#[test]
fn an_opening_waits_for_one_that_is_about_to_close() {
    let _world = World::new();
    let first = mirror(&history(0));
    let closing = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(700));
        drop(first);
    });
    let second = mirror(&history(0));
    assert_eq!((second.mode, second.refusals.len()), (CaptureMode::Copy, 1));
    closing.join().unwrap();
    // Of two that stay, the second is refused and says why.
    let error = try_mirror(NEAR, &history(0)).unwrap_err().to_string();
    assert!(error.contains("another program holds the interface"), "{error}");
}
