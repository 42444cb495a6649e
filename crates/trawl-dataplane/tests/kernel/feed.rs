//! Feeds into other network namespaces.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use rustix::thread::{
    CapabilitySet, CapabilitySets, LinkNameSpaceType, move_into_link_name_space, set_capabilities,
};
use trawl_dataplane::batch::{Batch, Packet, Place};
use trawl_dataplane::feed::{self, FeedError, Veth};
use trawl_dataplane::outlet::{Outlet, Sent};
use trawl_dataplane::queue::Queue;
use trawl_dataplane::ring::tpacket::PacketQueue;
use trawl_dataplane::ring::{Opened, memory::Memory};
use trawl_dataplane::{Engine, InterfaceName};

use crate::world::{self, Seen, World, frame, history, receive, rest, run, tagged, wait_until};

/// The analyzer's end.
const MON: &str = "mon0";

fn mon() -> InterfaceName {
    MON.parse().unwrap()
}

/// An analyzer's network namespace.
struct Analyzer(String);

impl Analyzer {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trawl-feed-{}-{number}", std::process::id());
        run(&["ip", "netns", "add", &name]);
        Self(name)
    }

    fn path(&self) -> String {
        format!("/run/netns/{}", self.0)
    }

    fn netns(&self) -> OwnedFd {
        File::open(self.path()).unwrap().into()
    }

    fn shell(&self, script: &str) -> String {
        run(&["ip", "netns", "exec", &self.0, "sh", "-c", script])
    }

    /// Does something there, on a thread of its own.
    fn inside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let netns = self.netns();
        let there = std::thread::spawn(move || {
            move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        });
        there.join().unwrap()
    }

    fn reader(&self) -> Opened<PacketQueue> {
        self.inside(|| world::node_at(MON, &history(8 << 20)))
    }
}

impl Drop for Analyzer {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// The memory of a ring that keeps nothing, for batches whose bytes are copied.
fn no_memory() -> Memory {
    world::node(&history(1 << 20)).queues[0].memory()
}

fn batch(frames: &[Vec<u8>], memory: &Memory) -> Batch {
    let (mut packets, mut copied) = (Vec::new(), Vec::new());
    for frame in frames {
        packets.push(Packet {
            stamp_ns: 1,
            wire_length: frame.len() as u32,
            kept: frame.len() as u32,
            place: Place::Copied(copied.len()),
        });
        copied.extend_from_slice(frame);
    }
    Batch {
        queue: 0,
        packets,
        copied,
        held: vec![],
        memory: memory.clone(),
    }
}

/// Frames of many sizes, some with one and some with two tags.
fn all_sorts() -> Vec<Vec<u8>> {
    let sizes = [60, 61, 64, 128, 590, 1514, 1518, 4000, 8999, 9000, 9018, 9728];
    let sizes = sizes.into_iter().cycle().take(200).enumerate();
    sizes
        .map(|(number, size)| {
            let plain = frame(number as u32, size);
            match number % 3 {
                0 => plain,
                1 => tagged(&plain, 7),
                _ => tagged(&tagged(&plain, 8), 9),
            }
        })
        .collect()
}

fn bytes(frames: Vec<Seen>) -> Vec<Vec<u8>> {
    frames.into_iter().map(|f| f.bytes).collect()
}

#[test]
fn copied_frames_of_all_sizes_and_tags_arrive_unchanged_and_in_order() {
    let _world = World::new();
    let analyzer = Analyzer::new();
    let mut veth = Veth::create(&mon(), analyzer.netns()).unwrap();
    let mut reader = analyzer.reader();
    let queue = &mut reader.queues[0];
    let (frames, mut from) = (all_sorts(), queue.end());
    let sent = veth.send(&batch(&frames, &no_memory()));
    let length = frames.iter().map(|f| f.len() as u64).sum();
    assert_eq!(
        sent,
        Sent {
            packets: 200,
            bytes: length,
            dropped: 0,
            problem: None
        }
    );
    receive(queue, 200);
    assert_eq!(bytes(rest(queue, &mut from).0), frames);
}

#[test]
fn frames_are_sent_from_the_memory_of_an_af_xdp_ring_with_several_buffers_each() {
    let world = World::new();
    world.shell("ip link set near0 mtu 9000; ip link set far0 mtu 9000");
    let mut mirror = world::mirror(&history(16 << 20));
    let far = world.far();
    let frames: Vec<_> = [60, 300, 1514, 3000, 6000, 9000]
        .into_iter()
        .enumerate()
        .map(|(n, size)| tagged(&frame(n as u32, size), 5))
        .collect();
    let analyzer = Analyzer::new();
    let mut veth = Veth::create(&mon(), analyzer.netns()).unwrap();
    let mut reader = analyzer.reader();
    let (from, to) = (&mut mirror.queues[0], &mut reader.queues[0]);
    let (mut at, mut read_from) = (from.end(), to.end());
    for frame in &frames {
        far.send(frame).unwrap();
    }
    receive(from, frames.len() as u64);
    let mut batch = batch(&[], &from.memory());
    from.visit(&mut at, 100, &mut |frame| {
        let first = batch.held.len();
        assert!(
            frame.hold(frame.len(), &mut batch.held),
            "this ring can hold frames"
        );
        batch.packets.push(Packet {
            stamp_ns: frame.stamp_ns,
            wire_length: frame.wire_length,
            kept: frame.len() as u32,
            place: Place::Held(first, batch.held.len() - first),
        });
    });
    assert!(batch.held.len() > frames.len(), "none had several buffers");
    let sent = veth.send(&batch);
    assert_eq!((sent.packets, sent.dropped, sent.problem), (6, 0, None));
    from.take_back(&mut batch.held);
    receive(to, frames.len() as u64);
    assert_eq!(bytes(rest(to, &mut read_from).0), frames);
}

#[test]
fn nothing_but_the_copies_is_on_the_wire_and_no_offload_touches_them() {
    let world = World::new();
    world.shell("echo 0 > /proc/sys/net/ipv6/conf/default/disable_ipv6");
    world.shell("echo 0 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
    let analyzer = Analyzer::new();
    let veth = Veth::create(&mon(), analyzer.netns()).unwrap();
    // Router solicitations, duplicate address detection and group reports would come within this time.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let near = world.shell(&format!(
        "ip -s -d -j link show {}; ip addr show {}",
        veth.end(),
        veth.end()
    ));
    let far = analyzer.shell(&format!("ip -s -d -j link show {MON}; ip addr show {MON}"));
    for end in [near, far] {
        assert!(end.contains("\"inet6_addr_gen_mode\":\"none\""), "{end}");
        assert!(!end.contains("inet "), "{end}");
        assert!(!end.contains("inet6 "), "{end}");
        assert!(
            end.contains("NOARP") && end.contains("mtu 9728") && end.contains("LOWER_UP"),
            "{end}"
        );
        assert!(!end.contains("MULTICAST"), "{end}");
        assert_eq!(end.matches("\"packets\":0").count(), 2, "{end}");
    }
    let features = analyzer.shell(&format!("ethtool -k {MON}"));
    for off in [
        "generic-receive-offload",
        "rx-vlan-offload",
        "rx-gro-list",
        "large-receive-offload",
    ] {
        assert!(features.contains(&format!("{off}: off")), "{features}");
    }
}

#[test]
fn a_reader_that_does_not_read_costs_neither_time_nor_the_frames_of_another() {
    let _world = World::new();
    let (lazy, eager) = (Analyzer::new(), Analyzer::new());
    let memory = no_memory();
    let mut feeds = [&lazy, &eager].map(|a| Veth::create(&mon(), a.netns()).unwrap());
    let _unread = lazy.reader();
    let mut reader = eager.reader();
    let queue = &mut reader.queues[0];
    let mut arrived = 0;
    let mut longest = 0.0f64;
    for round in 0..200u32 {
        let frames: Vec<_> = (0..100).map(|n| frame(round * 100 + n, 1400)).collect();
        let batch = batch(&frames, &memory);
        for feed in &mut feeds {
            let began = Instant::now();
            let sent = feed.send(&batch);
            longest = longest.max(began.elapsed().as_secs_f64());
            assert_eq!((sent.packets + sent.dropped, sent.problem), (100, None));
        }
        arrived += queue.receive().unwrap().frames;
    }
    wait_until("the eager reader has all", || {
        arrived += queue.receive().unwrap().frames;
        arrived == 20_000
    });
    assert!(longest < 1.0, "a send took {longest} s");
}

#[test]
fn an_end_that_is_set_down_or_deleted_is_a_problem_in_words_and_all_frames_count_as_dropped() {
    let _world = World::new();
    let analyzer = Analyzer::new();
    let batch = batch(&[frame(1, 60), frame(2, 60)], &no_memory());
    let mut veth = Veth::create(&mon(), analyzer.netns()).unwrap();
    assert_eq!(veth.send(&batch).packets, 2);
    analyzer.shell(&format!("ip link set {MON} down"));
    let sent = veth.send(&batch);
    assert_eq!((sent.packets, sent.dropped), (0, 2));
    assert!(
        sent.problem
            .as_ref()
            .unwrap()
            .contains("mon0 is down in the analyzer's"),
        "{sent:?}"
    );
    analyzer.shell(&format!("ip link set {MON} up"));
    let sent = veth.send(&batch);
    assert_eq!((sent.packets, sent.problem), (2, None));
    analyzer.shell(&format!("ip link del {MON}"));
    for _ in 0..2 {
        let sent = veth.send(&batch);
        assert_eq!((sent.packets, sent.dropped), (0, 2));
        assert!(
            sent.problem.as_ref().unwrap().contains("mon0 is gone"),
            "{sent:?}"
        );
    }
}

#[test]
fn a_namespace_that_ends_takes_its_feed_along_since_nobody_keeps_it_alive() {
    let world = World::new();
    let analyzer = Analyzer::new();
    let netns = analyzer.netns();
    let mut veth = Veth::create(&mon(), netns).unwrap();
    let end = veth.end().clone();
    drop(analyzer);
    wait_until("the end here is gone", || {
        !world.shell("ls /sys/class/net").contains(end.as_str())
    });
    let problem = veth.look();
    assert!(problem.as_ref().unwrap().contains("mon0 is gone"), "{problem:?}");
}

#[test]
fn a_feed_of_an_engine_carries_everything_that_arrives_and_tells_when_its_reader_is_gone() {
    const FRAMES: u32 = 5000;
    let world = World::new();
    let analyzer = Analyzer::new();
    let engine = Engine::start(world::mirror(&history(16 << 20))).unwrap();
    let veth = Veth::create(&mon(), analyzer.netns()).unwrap();
    let feed = engine.feed(MON.into(), Box::new(veth)).unwrap();
    let mut reader = analyzer.reader();
    let queue = &mut reader.queues[0];
    let (far, mut from, mut numbers) = (world.far(), queue.end(), Vec::new());
    let mut read = || {
        queue.receive().unwrap();
        let (seen, overtaken) = rest(queue, &mut from);
        assert_eq!(overtaken, 0);
        let untagged = |f: Seen| [&f.bytes[..12], &f.bytes[16..]].concat();
        numbers.extend(seen.into_iter().map(|f| world::number_in(&untagged(f))));
        numbers.len()
    };
    for number in 0..FRAMES {
        far.send(&tagged(&frame(number, 60 + number as usize % 1400), 7))
            .unwrap();
        if number % 32 == 0 {
            std::thread::sleep(std::time::Duration::from_micros(200));
            read();
        }
    }
    wait_until("all frames are at the analyzer", || read() == FRAMES as usize);
    assert!(numbers.into_iter().eq(0..FRAMES));
    let status = feed.status();
    assert_eq!(
        (status.packets, status.dropped),
        (u64::from(FRAMES), 0),
        "{status:?}"
    );
    // Without any traffic.
    analyzer.shell(&format!("ip link del {MON}"));
    wait_until("the feed says what is wrong", || {
        feed.status().problem.is_some_and(|p| p.contains("mon0 is gone"))
    });
    drop(feed);
    wait_until("the end here is gone", || {
        !world.shell("ip -o link").contains("trawlf")
    });
}

#[test]
fn a_frame_that_does_not_fit_is_dropped_alone() {
    let _world = World::new();
    let analyzer = Analyzer::new();
    let mut veth = Veth::create(&mon(), analyzer.netns()).unwrap();
    let frames = [frame(1, 60), frame(2, 20_000), frame(3, 60)];
    let sent = veth.send(&batch(&frames, &no_memory()));
    assert_eq!((sent.packets, sent.dropped), (2, 1));
    assert!(sent.problem.unwrap().contains("20000 bytes"));
}

#[test]
fn what_cannot_become_a_feed_is_refused_exactly_and_leaves_nothing_behind() {
    let world = World::new();
    let analyzer = Analyzer::new();
    let links = || world.shell("ip -o link | cut -d: -f2");
    let before = links();
    let create = |fd: OwnedFd| Veth::create(&mon(), fd).unwrap_err();

    let file = create(tempfile::tempfile().unwrap().into());
    assert!(
        matches!(file, FeedError::NotANetworkNamespace("no namespace at all")),
        "{file}"
    );
    let mount = create(File::open("/proc/self/ns/mnt").unwrap().into());
    assert!(
        matches!(
            mount,
            FeedError::NotANetworkNamespace("another kind of namespace")
        ),
        "{mount}"
    );

    analyzer.shell(&format!("ip link add {MON} type bridge"));
    let taken = create(analyzer.netns());
    assert!(
        matches!(&taken, FeedError::NameTaken(name) if *name == mon()),
        "{taken}"
    );
    analyzer.shell(&format!("ip link del {MON}"));

    // The file stays when the namespace has ended, and is no namespace any more.
    let path = analyzer.path();
    run(&["umount", &path]);
    let ended = create(File::open(&path).unwrap().into());
    assert!(matches!(ended, FeedError::NotANetworkNamespace(_)), "{ended}");
    assert_eq!(links(), before);
}

#[test]
fn feeds_get_ends_of_their_own_that_vanish_with_them() {
    let world = World::new();
    let analyzer = Analyzer::new();
    let first = Veth::create(&mon(), analyzer.netns()).unwrap();
    let second = Veth::create(&"mon1".parse().unwrap(), analyzer.netns()).unwrap();
    assert_eq!(
        (first.end().as_str(), second.end().as_str()),
        ("trawlf0", "trawlf1")
    );
    drop(first);
    let here = world.shell("ls /sys/class/net; ip -o link");
    assert!(!here.contains("trawlf0") && here.contains("trawlf1"), "{here}");
    let there = analyzer.shell("ip -o link");
    assert!(!there.contains("mon0") && there.contains("mon1"), "{there}");
}

/// Does something on a thread that has these capabilities alone.
fn with_capabilities<T: Send + 'static>(
    capabilities: CapabilitySet,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let sets = CapabilitySets {
        effective: capabilities,
        permitted: capabilities,
        inheritable: CapabilitySet::empty(),
    };
    let worker = std::thread::spawn(move || {
        set_capabilities(None, sets).unwrap();
        work()
    });
    worker.join().unwrap()
}

#[test]
fn a_feed_takes_net_admin_and_net_raw_and_no_more() {
    let world = World::new();
    let analyzer = Analyzer::new();
    let (netns, memory) = (analyzer.netns(), no_memory());
    let enough = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    let sent = with_capabilities(enough, move || {
        Veth::create(&mon(), netns)
            .unwrap()
            .send(&batch(&[frame(1, 60)], &memory))
    });
    assert_eq!((sent.packets, sent.problem), (1, None));
    assert!(!world.shell("ip -o link").contains("trawlf"));
    for (capabilities, step) in [
        (CapabilitySet::NET_RAW, "make a veth pair"),
        (CapabilitySet::NET_ADMIN, "open a packet socket"),
    ] {
        let netns = analyzer.netns();
        let refused = with_capabilities(capabilities, move || Veth::create(&mon(), netns).unwrap_err());
        assert!(
            matches!(refused, FeedError::NotPermitted { step: s } if s == step),
            "{refused}"
        );
        assert!(!world.shell("ip -o link").contains("trawlf"));
    }
}

#[test]
fn the_namespace_of_captured_itself_can_be_fed() {
    let world = World::new();
    let own = File::open("/proc/thread-self/ns/net").unwrap();
    let veth = Veth::create(&mon(), own.into()).unwrap();
    assert!(world.shell("ip -o link").contains("mon0@trawlf0"));
    drop(veth);
}

/// Set in the process that is to be killed: the namespace of the analyzer.
const HOLD: &str = "TRAWL_TEST_HOLDS_A_FEED";

#[test]
fn what_a_killed_daemon_left_is_deleted_and_nothing_else() {
    if let Ok(path) = std::env::var(HOLD) {
        let _veth = Veth::create(&mon(), File::open(path).unwrap().into()).unwrap();
        println!("\nholding");
        std::thread::sleep(std::time::Duration::from_secs(60));
        return;
    }
    let world = World::new();
    let (killed, living) = (Analyzer::new(), Analyzer::new());
    let ours = Veth::create(&mon(), living.netns()).unwrap();
    world.shell("ip link add trawlf7 type veth peer name theirs0");
    let test = "feed::what_a_killed_daemon_left_is_deleted_and_nothing_else";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(HOLD, killed.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"));
    assert_eq!(
        feed::clean_leftovers().unwrap(),
        Vec::<String>::new(),
        "of a living process"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(killed.shell("ip -o link").contains(MON));
    assert_eq!(feed::clean_leftovers().unwrap(), ["trawlf1"]);
    assert!(!killed.shell("ip -o link").contains(MON));
    assert!(living.shell("ip -o link").contains(MON));
    assert!(world.shell("ip -o link").contains("trawlf7"));
    drop(ours);
}
