//! The receive thread driven step by step: whatever comes when, no gap, no duplicate, and the balance adds up.

use std::sync::mpsc::Sender;

use proptest::prelude::*;

use super::*;
use crate::pcapng;
use wire::STEP_NS;

const FRAMES: u64 = 1500;
const FIRST_NS: u64 = 1_800_000_000_000_000_000;
const FILTERS: [&str; 3] = ["", "udp port 53", "udp port 80"];

#[derive(Clone, Debug)]
enum Step {
    Send(u64),
    Turn,
    /// Give writers time.
    Pause,
    /// Trigger so many frames ago, window from `before` to `after` frames around it.
    Start {
        ago: u64,
        before: u64,
        after: u64,
        filter: usize,
        room: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u64..120).prop_map(Step::Send),
        6 => Just(Step::Turn),
        1 => Just(Step::Pause),
        2 => (0u64..300, 0u64..300, 1u64..600, 0usize..3, prop_oneof![Just(u64::MAX / 2), 0u64..60_000])
            .prop_map(|(ago, before, after, filter, room)| Step::Start { ago, before, after, filter, room }),
    ]
}

struct Harness {
    core: Core<WireQueue>,
    wire: Arc<Wire>,
    returns: Sender<Returned>,
    captures: Vec<Cut>,
    filters: Vec<Filter>,
    _commands: Sender<Command>,
}

/// A capture, and what was asked of it.
struct Cut {
    file: File,
    ended: Receiver<Ended>,
    window: Arc<Window>,
    filter: usize,
    room: u64,
    covered_ns: u64,
}

impl Harness {
    fn new(budget: u64, may_hold: usize, may_wait: usize) -> Self {
        let wire = Wire::new(FIRST_NS);
        let queue = WireQueue::new(&wire, FRAMES, budget, may_hold);
        let (commands, inbox) = channel();
        let (returns, returned) = channel();
        let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        let mut core = Core::new(queue, inbox, returned, bell, Arc::default(), (0, 1));
        core.may_wait(may_wait);
        Self {
            core,
            wire,
            returns,
            captures: Vec::new(),
            filters: FILTERS.iter().map(|f| filter(f)).collect(),
            _commands: commands,
        }
    }

    fn sent(&self) -> u64 {
        self.wire.sent.load(Ordering::Relaxed)
    }

    fn turn(&mut self) -> bool {
        // Up to the moment before the next frame.
        let now = self.wire.stamp(self.sent()) - 1;
        self.core.turn(now)
    }

    fn start(&mut self, number: u64, filter: usize, room: u64, from_ns: u64, end_ns: u64) {
        let (file, (done, ended)) = (empty_file(), channel());
        let window = Arc::new(Window::new(number, (0, end_ns), room, 0, 1));
        let measured = Measured {
            ring: true,
            nic: false,
        };
        let out = writer::start(Job {
            file: file.try_clone().unwrap(),
            header: spec("").file_header(),
            measured,
            window: Arc::clone(&window),
            returns: vec![self.returns.clone()],
            on_end: Box::new(move |e| drop(done.send(e))),
        });
        let start = Start {
            filter: self.filters[filter].clone(),
            window: Arc::clone(&window),
            from_ns,
            out: out.unwrap(),
        };
        let (reply, answer) = sync_channel(1);
        self.core.obey(Command::Capture(Box::new(start), reply));
        let covered_ns = from_ns.max(answer.recv().unwrap()).min(end_ns);
        window.begin(covered_ns);
        self.captures.push(Cut {
            file,
            ended,
            window,
            filter,
            room,
            covered_ns,
        });
    }

    fn play(&mut self, step: &Step) {
        match *step {
            Step::Send(frames) => self.wire.send(frames.min(FRAMES - self.sent())),
            Step::Turn => drop(self.turn()),
            Step::Pause => std::thread::sleep(Duration::from_micros(200)),
            Step::Start {
                ago,
                before,
                after,
                filter,
                room,
            } => {
                let trigger = self.sent().saturating_sub(ago);
                let from_ns = self.wire.stamp(trigger.saturating_sub(before));
                let end_ns = self.wire.stamp(trigger + after);
                self.start(self.captures.len() as u64, filter, room, from_ns, end_ns);
            }
        }
    }

    /// Lets everything arrive and all windows end; returns the captures.
    fn finish(mut self) -> Vec<Cut> {
        while !self.turn() {}
        let captures = std::mem::take(&mut self.captures);
        wait_until("all captures have ended and all buffers are back", || {
            self.core.turn(u64::MAX);
            self.core.is_idle() && self.wire.held.load(Ordering::Relaxed) == 0
        });
        captures
    }
}

impl Cut {
    fn check(self, sent: u64) {
        let ended = self.ended.recv_timeout(Duration::from_secs(10)).expect("it ends");
        let packets = read(&content(&self.file));
        let numbers: Vec<_> = packets.iter().map(Read::number).collect();
        let b = ended.balance;
        assert!(b.adds_up(), "{b:?}");
        assert_eq!(
            (b.written, ended.packets),
            (numbers.len() as u64, numbers.len() as u64)
        );
        assert!(
            numbers.is_sorted_by(|a, b| a < b),
            "duplicate or out of order: {numbers:?}"
        );
        for p in &packets {
            assert_eq!(p.bytes, wire::bytes_of(p.number()));
        }
        let stamp = |n: u64| FIRST_NS + n * STEP_NS;
        let window = self.covered_ns..self.window.end_ns();
        let inside: Vec<_> = (0..sent).filter(|n| window.contains(&stamp(*n))).collect();
        let matching = |n: &u64| {
            [53, 80].contains(&wire::port_of(*n)) && self.filter == 0
                || self.filter > 0 && wire::port_of(*n) == [53, 80][self.filter - 1]
        };
        let wanted: Vec<_> = inside.iter().copied().filter(matching).collect();
        assert!(
            numbers.iter().all(|n| wanted.contains(n)),
            "{numbers:?} is not of {wanted:?}"
        );
        let room_of = |n: u64| pcapng::packet_length(wire::bytes_of(n).len(), None) as u64;
        match ended.stop_reason {
            StopReason::Duration => {
                assert!(b.seen >= inside.len() as u64);
                if b.lost_history == 0 {
                    assert_eq!((b.seen, b.matched), (inside.len() as u64, wanted.len() as u64));
                }
                if b.lost_history + b.lost_writer == 0 {
                    assert_eq!(numbers, wanted);
                }
            }
            StopReason::Size => {
                let used: u64 = numbers.iter().map(|n| room_of(*n)).sum();
                assert!(used <= self.room);
                if b.lost_history == 0 && b.lost_writer == 1 {
                    assert_eq!(numbers, wanted[..numbers.len()]);
                    assert!(used + room_of(wanted[numbers.len()]) > self.room);
                }
            }
            other => panic!("{other:?} {:?}", ended.message),
        }
    }
}

#[test]
fn a_clock_that_is_set_back_ends_captures_with_what_they_have_and_begins_the_history_anew() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let mut h = Harness::new(1000, 64, 1 << 20);
    let stamp = |n: u64| FIRST_NS + n * STEP_NS;
    h.wire.send(50);
    h.turn();
    h.start(0, 0, 1 << 20, stamp(20), stamp(0) + HOUR_NS);
    h.turn();
    h.core.mind_clock(stamp(50));
    h.core.mind_clock(stamp(50) - 900_000_000);
    assert!(
        !h.core.is_idle(),
        "a clock that is corrected a little ends nothing"
    );
    h.wire.send(10);
    h.core.mind_clock(stamp(50) - HOUR_NS);
    assert!(h.core.is_idle());
    let cut = h.captures.pop().unwrap();
    let ended = cut.ended.recv_timeout(Duration::from_secs(10)).expect("it ends");
    assert_eq!(
        (ended.stop_reason, ended.ended_at_ns),
        (StopReason::Error, stamp(50))
    );
    let message = ended.message.unwrap();
    assert!(message.contains("set back by 3600 s"), "{message}");
    let b = ended.balance;
    assert!(b.adds_up() && b.seen == 40 && b.written == 40, "{b:?}");
    h.start(1, 0, 1 << 20, stamp(20), stamp(1000));
    h.wire.send(5);
    h.turn();
    let after = h.core.turn(stamp(2000));
    assert!(after || h.core.is_idle());
    let cut = h.captures.pop().unwrap();
    let _ = cut.ended.recv_timeout(Duration::from_secs(10)).expect("it ends");
    let numbers: Vec<_> = read(&content(&cut.file)).iter().map(Read::number).collect();
    assert_eq!(numbers, (60..65).collect::<Vec<_>>(), "nothing from before");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_when_captures_have_no_gap_no_duplicate_and_a_balance_that_adds_up(
        steps in prop::collection::vec(step(), 1..80),
        budget in 1u64..400,
        may_hold in prop_oneof![Just(0usize), 1usize..64, Just(100_000)],
        may_wait in prop_oneof![500usize..5000, Just(16 << 20)],
    ) {
        let mut harness = Harness::new(budget, may_hold, may_wait);
        steps.iter().for_each(|step| harness.play(step));
        let sent = harness.sent();
        harness.finish().into_iter().for_each(|cut| cut.check(sent));
    }
}

#[test]
fn a_capture_joins_the_live_ones_exactly_at_every_distance_from_the_end() {
    for ago in 0..200 {
        let mut harness = Harness::new(300, 16, 16 << 20);
        harness.wire.send(250);
        while !harness.turn() {}
        harness.play(&Step::Start {
            ago,
            before: 0,
            after: 900,
            filter: 0,
            room: u64::MAX / 2,
        });
        for _ in 0..10 {
            harness.wire.send(1 + ago % 70);
            harness.turn();
        }
        let sent = harness.sent();
        for cut in harness.finish() {
            cut.check(sent);
        }
    }
}
