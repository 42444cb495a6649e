use std::sync::atomic::Ordering::Relaxed;

use super::*;

const FRAMES: u64 = 6000;

/// An engine whose frames are stamped from now on.
fn engine(queues: usize, budget: u64, may_hold: usize) -> (Engine, Vec<Arc<Wire>>) {
    let wires: Vec<_> = (0..queues)
        .map(|_| Wire::new(clock::realtime_ns() + 200_000_000))
        .collect();
    let queues = wires.iter().map(|w| WireQueue::new(w, FRAMES, budget, may_hold));
    (Engine::start(opened(queues.collect())).unwrap(), wires)
}

fn numbers(packets: &[Read]) -> Vec<u64> {
    packets.iter().map(Read::number).collect()
}

#[test]
fn frames_of_all_queues_come_into_one_file_in_order_and_say_where_they_came_from() {
    let (engine, wires) = engine(2, 100, 64);
    let capture = begin(&engine, spec("udp port 53"));
    for _ in 0..20 {
        wires.iter().for_each(|w| w.send(100));
        std::thread::sleep(Duration::from_millis(1));
    }
    wait_until("all has arrived", || engine.counters().packets == 4000);
    wires[0].send(1000);
    wait_until("more has arrived", || engine.counters().packets == 5000);
    std::thread::sleep(Duration::from_millis(300));
    engine.end_captures("enough");
    let (ended, packets) = capture.end();
    assert_eq!(ended.balance.seen, 5000);
    assert_eq!(ended.stop_reason, StopReason::Error);
    assert_eq!(ended.message.as_deref(), Some("enough"));
    for (queue, sent) in [(0, 3000), (1, 2000)] {
        let of_queue: Vec<_> = packets
            .iter()
            .filter(|p| p.queue == Some(queue))
            .map(Read::number)
            .collect();
        let wanted: Vec<_> = (0..sent).filter(|n| wire::port_of(*n) == 53).collect();
        assert_eq!(of_queue, wanted);
    }
}

#[test]
fn a_size_bound_over_several_queues_is_never_passed_and_ends_all_of_them() {
    for limit in [20_000, 20_001, 33_333, 50_000] {
        let (engine, wires) = engine(3, 100, 16);
        let capture = begin(
            &engine,
            CaptureSpec {
                max_size: limit,
                ..spec("")
            },
        );
        wires.iter().for_each(|w| w.send(1000));
        let (ended, _) = capture.end();
        assert_eq!(ended.stop_reason, StopReason::Size);
        assert!(ended.bytes <= limit);
        assert!(
            ended.bytes + 12 + 32 + 304 > limit,
            "the next packet would not have fitted"
        );
    }
}

#[test]
fn equal_filters_side_by_side_get_the_same_packets_and_all_buffers_come_back() {
    let (engine, wires) = engine(1, 50, 200);
    let all: Vec<_> = (0..8)
        .map(|i| {
            begin(
                &engine,
                spec(if i % 2 == 0 { "udp port 53" } else { "udp port 80" }),
            )
        })
        .collect();
    wires[0].send(FRAMES);
    wait_until("all has arrived", || engine.counters().packets == FRAMES);
    let ids: Vec<_> = all.iter().map(|c| c.running.id).collect();
    std::thread::sleep(Duration::from_millis(300));
    ids.iter()
        .for_each(|id| engine.cancel(*id, StopReason::Cancelled, None));
    for (i, capture) in all.into_iter().enumerate() {
        let port = if i % 2 == 0 { 53 } else { 80 };
        let (ended, packets) = capture.end();
        assert_eq!(ended.stop_reason, StopReason::Cancelled);
        assert_eq!(ended.balance.lost_writer, 0);
        let wanted: Vec<_> = (0..FRAMES).filter(|n| wire::port_of(*n) == port).collect();
        assert!(
            numbers(&packets) == wanted,
            "not the wanted {} packets",
            wanted.len()
        );
        assert_eq!(ended.balance.seen, FRAMES);
    }
    assert_eq!(engine.active_captures(), 0);
    wait_until("all buffers are back", || wires[0].held.load(Relaxed) == 0);
}

#[test]
fn a_window_that_is_over_already_is_cut_from_the_history_and_ends_at_once() {
    let (engine, wires) = engine(1, 1000, 64);
    wires[0].send(2000);
    wait_until("all has arrived", || engine.counters().packets == 2000);
    std::thread::sleep(Duration::from_millis(250));
    let capture = begin(
        &engine,
        CaptureSpec {
            trigger_ns: Some(wires[0].stamp(1600)),
            pre_trigger_ns: 100 * wire::STEP_NS,
            duration_ns: 50 * wire::STEP_NS,
            ..spec("")
        },
    );
    let running = capture.running.clone();
    let covered = (running.requested_from_ns, running.covered_from_ns);
    assert_eq!(covered, (wires[0].stamp(1500), wires[0].stamp(1500)));
    let (ended, packets) = capture.end();
    assert_eq!(ended.stop_reason, StopReason::Duration);
    assert_eq!(numbers(&packets), (1500..1650).collect::<Vec<_>>());
    assert!(
        running.started_at_ns > wires[0].stamp(1650),
        "it was begun when all was over"
    );
    let moments = (ended.started_at_ns, ended.ended_at_ns);
    assert_eq!(moments, (running.started_at_ns, running.started_at_ns));
}

#[test]
fn a_start_before_the_history_is_answered_with_what_is_covered() {
    let (engine, wires) = engine(1, 1000, 0);
    wires[0].send(3000);
    wait_until("all has arrived", || engine.counters().packets == 3000);
    let capture = begin(
        &engine,
        CaptureSpec {
            trigger_ns: Some(wires[0].stamp(2990)),
            pre_trigger_ns: 2500 * wire::STEP_NS,
            ..spec("")
        },
    );
    assert_eq!(capture.running.requested_from_ns, wires[0].stamp(490));
    assert_eq!(capture.running.covered_from_ns, wires[0].stamp(2000));
    wait_until("it has come out of the way", || capture.running.written().0 > 500);
    wires[0].send(100);
    wait_until("all has arrived", || engine.counters().packets == 3100);
    engine.stop("done");
    let (ended, packets) = capture.end();
    assert_eq!(numbers(&packets), (2000..3100).collect::<Vec<_>>());
    assert_eq!(ended.message.as_deref(), Some("done"));
}

#[test]
fn a_trigger_in_the_future_is_refused() {
    let (engine, _) = engine(1, 10, 0);
    let spec = CaptureSpec {
        trigger_ns: Some(clock::realtime_ns() + 5_000_000_000),
        ..spec("")
    };
    let refused = engine.capture(spec, empty_file(), Box::new(|_| {}));
    assert!(matches!(
        refused,
        Err(EngineError::Future {
            ahead_ms: 4900..=5000
        })
    ));
}

#[test]
fn a_file_without_room_for_its_frame_is_refused_with_what_it_needs() {
    let (engine, _) = engine(1, 10, 0);
    let with = |max_size| CaptureSpec { max_size, ..spec("") };
    let refused = engine.capture(with(100), empty_file(), Box::new(|_| {}));
    let Err(EngineError::NoRoom { needed }) = refused else {
        panic!("{refused:?}")
    };
    assert!(
        engine
            .capture(with(needed - 1), empty_file(), Box::new(|_| {}))
            .is_err()
    );
    assert!(
        engine
            .capture(with(needed), empty_file(), Box::new(|_| {}))
            .is_ok()
    );
}

#[test]
fn a_window_without_frames_ends_in_time() {
    let (engine, _) = engine(2, 10, 0);
    let capture = begin(
        &engine,
        CaptureSpec {
            duration_ns: 30_000_000,
            ..spec("")
        },
    );
    let (ended, packets) = capture.end();
    assert_eq!((ended.stop_reason, packets.len()), (StopReason::Duration, 0));
    assert_eq!(ended.balance.lost_ring, Some(0));
    assert_eq!(ended.balance.lost_nic, None);
}

#[test]
fn a_feed_gets_everything_and_a_slow_one_loses_only_its_own() {
    let (engine, wires) = engine(1, 100, 300);
    let (quick, slow) = (Arc::default(), Arc::default());
    let outlet = |to: &Arc<Mutex<Vec<Vec<u8>>>>, pause| Box::new(Collect(Arc::clone(to), pause));
    let handle = engine
        .feed("quick".into(), outlet(&quick, Duration::ZERO))
        .unwrap();
    let lazy = engine
        .feed("slow".into(), outlet(&slow, Duration::from_millis(300)))
        .unwrap();
    let capture = begin(&engine, spec(""));
    for _ in 0..60 {
        wires[0].send(FRAMES / 60);
        std::thread::sleep(Duration::from_millis(1));
    }
    wait_until("the quick one has everything", || {
        lock(&quick).len() as u64 == FRAMES
    });
    let all: Vec<_> = (0..FRAMES).map(wire::bytes_of).collect();
    assert_eq!(*lock(&quick), all);
    assert_eq!(handle.status().packets, FRAMES);
    assert_eq!(engine.feeds().len(), 2);
    drop((handle, lazy));
    std::thread::sleep(Duration::from_millis(300));
    engine.cancel(capture.running.id, StopReason::Cancelled, None);
    assert_eq!(capture.end().1.len() as u64, FRAMES);
    wait_until("the feeds are over", || engine.feeds().is_empty());
    wait_until("all buffers are back", || wires[0].held.load(Relaxed) == 0);
}

#[test]
fn a_writer_that_stands_still_loses_only_its_own_packets() {
    let (engine, wires) = engine(1, 100, 300);
    let (unread, stuck) = std::io::pipe().unwrap();
    let (done, ended) = channel();
    let stuck_file = File::from(OwnedFd::from(stuck));
    let running = engine
        .capture(spec(""), stuck_file, Box::new(move |e| drop(done.send(e))))
        .unwrap();
    let capture = begin(&engine, spec(""));
    for _ in 0..60 {
        wires[0].send(FRAMES / 60);
        std::thread::sleep(Duration::from_millis(1));
    }
    wait_until("all has arrived", || engine.counters().packets == FRAMES);
    std::thread::sleep(Duration::from_millis(300));
    engine.cancel(capture.running.id, StopReason::Cancelled, None);
    assert_eq!(capture.end().0.packets, FRAMES);
    drop(unread);
    let ended = ended.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(ended.stop_reason, StopReason::Error);
    assert!(ended.message.unwrap().contains("Broken pipe"));
    let b = ended.balance;
    assert!(b.adds_up() && b.lost_writer + b.lost_history > 0, "{b:?}");
    assert_eq!(running.written().0, ended.packets);
}

#[test]
fn losses_of_the_window_are_those_since_its_start() {
    let (engine, wires) = engine(1, 100, 0);
    wires[0].lost.store(7, Relaxed);
    std::thread::sleep(Duration::from_millis(600));
    let capture = begin(&engine, spec(""));
    std::thread::sleep(Duration::from_millis(300));
    wires[0].lost.store(10, Relaxed);
    std::thread::sleep(Duration::from_millis(300));
    engine.cancel(capture.running.id, StopReason::Cancelled, None);
    assert_eq!(capture.end().0.balance.lost_ring, Some(3));
    wait_until("it is reported", || engine.counters().dropped_ring == Some(10));
}
