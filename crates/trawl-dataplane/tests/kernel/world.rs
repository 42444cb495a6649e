//! A network namespace with one wire, entered by the thread of the test.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use trawl_dataplane::queue::{Frame, Position, Queue, Visited};
use trawl_dataplane::ring::tpacket::{self, PacketQueue};
use trawl_dataplane::ring::xdp::{self, XdpQueue};
use trawl_dataplane::ring::{Opened, RingOptions};
use trawl_dataplane::{MirrorInterface, NodeInterface, OpenError};
use trawl_traffic::ring::packet::PacketSender;

/// The end of the wire that is received on.
pub const NEAR: &str = "near0";
/// The end that frames are sent into.
pub const FAR: &str = "far0";

/// Sends frames out of an interface.
pub struct Injector(pub PacketSender);

impl Injector {
    pub fn open(interface: &str) -> Self {
        Self(PacketSender::open(interface, false).unwrap())
    }

    pub fn send(&self, frame: &[u8]) -> std::io::Result<()> {
        self.0.send(&[frame])
    }
}

pub struct World(String);

impl World {
    /// A wire with an MTU of 1500 and one queue.
    pub fn new() -> Self {
        Self::with(&[], &[])
    }

    /// With more arguments of `ip link add` for either end.
    pub fn with(near: &[&str], far: &[&str]) -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "this test needs root and network namespaces: run dev/test kernel"
        );
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "trawl-ring-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        run(&["ip", "netns", "add", &name]);
        let world = Self(name);
        let namespace = File::open(format!("/run/netns/{}", world.0)).unwrap();
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        world.shell("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6");
        let add = [
            &["link", "add", NEAR][..],
            near,
            &["type", "veth", "peer", "name", FAR],
            far,
        ];
        world.ip(&add.concat());
        // Tags stay in the bytes, as on a real wire; tests of stripped tags turn this on again.
        world.shell(&format!("ethtool -K {FAR} txvlan off >/dev/null"));
        world.ip(&["link", "set", NEAR, "up"]);
        world.ip(&["link", "set", FAR, "up"]);
        world
    }

    pub fn ip(&self, arguments: &[&str]) {
        run(&[&["ip", "-n", &self.0][..], arguments].concat());
    }

    pub fn shell(&self, script: &str) -> String {
        run(&["ip", "netns", "exec", &self.0, "sh", "-c", script])
    }

    /// Sends numbered frames of one length from another thread, not further ahead of the receiver than any ring
    /// can hold: how fast threads get their turn is not what the tests are about.
    pub fn send(&self, numbers: std::ops::Range<u32>, length: usize) -> Sending {
        const AHEAD: u64 = 2000;
        let (far, received) = (self.far(), Arc::new(AtomicU64::new(0)));
        let seen = Arc::clone(&received);
        let thread = std::thread::spawn(move || {
            for (sent, number) in (0..).zip(numbers) {
                while sent > seen.load(Ordering::Relaxed) + AHEAD {
                    std::thread::yield_now();
                }
                far.send(&frame(number, length)).unwrap();
            }
        });
        Sending { thread, received }
    }

    /// Sends numbered frames of many flows.
    pub fn send_flows(&self, count: u32) -> std::thread::JoinHandle<()> {
        let far = self.far();
        std::thread::spawn(move || (0..count).for_each(|n| far.send(&datagram(n)).unwrap()))
    }

    pub fn far(&self) -> Injector {
        Injector::open(FAR)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

pub fn run(command: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(command[0]).args(&command[1..]).output().unwrap();
    assert!(
        status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&stderr)
    );
    String::from_utf8(stdout).unwrap()
}

pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "waited in vain until {what}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn history(bytes: u64) -> RingOptions {
    RingOptions {
        history_bytes: bytes,
        ..RingOptions::default()
    }
}

pub fn mirror(options: &RingOptions) -> Opened<XdpQueue> {
    try_mirror(NEAR, options).unwrap()
}

pub fn try_mirror(name: &str, options: &RingOptions) -> Result<Opened<XdpQueue>, OpenError> {
    xdp::open(&MirrorInterface(name.parse().unwrap()), options)
}

pub fn node(options: &RingOptions) -> Opened<PacketQueue> {
    node_at(NEAR, options)
}

pub fn node_at(name: &str, options: &RingOptions) -> Opened<PacketQueue> {
    let interface = NodeInterface {
        name: name.parse().unwrap(),
        promiscuous: true,
    };
    tpacket::open(&interface, options).unwrap()
}

/// A frame that carries its number behind the Ethernet header.
pub fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut f: Vec<u8> = (0..length).map(|i| (i as u32 ^ number) as u8).collect();
    f[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    f[12..14].copy_from_slice(&[0x88, 0xb5]);
    f[14..18].copy_from_slice(&number.to_be_bytes());
    f
}

/// The number in such a frame.
pub fn number_in(frame: &[u8]) -> u32 {
    u32::from_be_bytes(*frame[14..].first_chunk().unwrap())
}

/// A UDP datagram with its number behind the header, and one of 50 source ports.
fn datagram(number: u32) -> Vec<u8> {
    let mut f = vec![0u8; 200];
    f[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    f[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    f[16..18].copy_from_slice(&186u16.to_be_bytes());
    f[22..24].copy_from_slice(&[64, 17]);
    f[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    f[34..36].copy_from_slice(&(4000 + (number % 50) as u16).to_be_bytes());
    f[36..38].copy_from_slice(&53u16.to_be_bytes());
    f[38..40].copy_from_slice(&166u16.to_be_bytes());
    f[42..46].copy_from_slice(&number.to_be_bytes());
    f
}

/// The number in such a datagram.
pub fn payload_number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(*frame[42..].first_chunk().unwrap())
}

pub fn tagged(frame: &[u8], vlan: u16) -> Vec<u8> {
    [&frame[..12], &[0x81, 0], &vlan.to_be_bytes(), &frame[12..]].concat()
}

/// What a visit shows of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub bytes: Vec<u8>,
    pub wire_length: u32,
    pub stamp_ns: u64,
}

pub fn seen(frame: &Frame<'_>) -> Seen {
    let mut bytes = Vec::new();
    frame.copy(frame.len(), &mut bytes);
    Seen {
        bytes,
        wire_length: frame.wire_length,
        stamp_ns: frame.stamp_ns,
    }
}

/// Receives until so many frames have arrived; their bytes as the ring tells them.
pub fn receive(queue: &mut impl Queue, frames: u64) -> u64 {
    let (mut arrived, mut bytes) = (0, 0);
    wait_until("the frames have arrived", || {
        let more = queue.receive().unwrap();
        (arrived, bytes) = (arrived + more.frames, bytes + more.bytes);
        arrived >= frames
    });
    assert_eq!(arrived, frames);
    bytes
}

/// Receives while a sender runs, and what is left then; how many frames that were.
pub fn receive_while(queue: &mut impl Queue, sending: Sending) -> u64 {
    let mut frames = 0;
    while !sending.thread.is_finished() {
        frames += queue.receive().unwrap().frames;
        sending.received.store(frames, Ordering::Relaxed);
    }
    sending.thread.join().unwrap();
    frames + drain(queue)
}

/// A sender under way.
pub struct Sending {
    thread: std::thread::JoinHandle<()>,
    received: Arc<AtomicU64>,
}

/// Receives what there is, until nothing comes for a while.
pub fn drain(queue: &mut impl Queue) -> u64 {
    let (mut frames, mut quiet) = (0, Instant::now());
    while quiet.elapsed() < Duration::from_millis(100) {
        let arrived = queue.receive().unwrap().frames;
        if arrived > 0 {
            (frames, quiet) = (frames + arrived, Instant::now());
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    frames
}

/// All that lies behind a position, in slices.
pub fn rest(queue: &mut impl Queue, at: &mut Position) -> (Vec<Seen>, u64) {
    let (mut all, mut overtaken) = (Vec::new(), 0);
    loop {
        let Visited {
            frames,
            overtaken: gone,
        } = queue.visit(at, 100, &mut |f| all.push(seen(f)));
        overtaken += gone;
        if frames == 0 {
            assert_eq!(*at, queue.end());
            return (all, overtaken);
        }
    }
}
