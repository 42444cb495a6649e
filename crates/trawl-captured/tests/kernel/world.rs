//! A network namespace with one wire, a daemon in it, and ways to look at what was captured.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pcap_file::pcapng::{Block, PcapNgReader};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use trawl_control::{
    Attach, Attachment, AttachmentStatus, Capture, Client, Ended, ErrorReply, InterfaceSpec, Reply, Source,
    Started, TapIdentity,
};
use trawl_traffic::ring::packet::PacketSender;

/// The end of the wire that is captured.
pub const NEAR: &str = "near0";
/// The end that frames are sent into.
pub const FAR: &str = "far0";

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_trawl-captured");

/// Sends frames out of an interface.
pub struct Injector(PacketSender);

impl Injector {
    pub fn send(&self, frame: &[u8]) -> std::io::Result<()> {
        self.0.send(&[frame])
    }
}

pub struct World {
    pub namespace: String,
    pub dir: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "this test needs root and network namespaces: run dev/test kernel"
        );
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let namespace = format!(
            "trawl-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        run(&["ip", "netns", "add", &namespace]);
        let world = Self {
            namespace,
            dir: tempfile::tempdir().unwrap(),
        };
        world.shell("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6");
        world.make_wire();
        world
    }

    pub fn make_wire(&self) {
        self.ip(&["link", "add", NEAR, "type", "veth", "peer", "name", FAR]);
        // Tags stay in the bytes, as on a real wire; the tests of stripped tags turn this on again.
        self.shell(&format!("ethtool -K {FAR} txvlan off >/dev/null"));
        self.ip(&["link", "set", NEAR, "up"]);
        self.ip(&["link", "set", FAR, "up"]);
    }

    pub fn ip(&self, arguments: &[&str]) {
        run(&[&["ip", "-n", &self.namespace][..], arguments].concat());
    }

    pub fn shell(&self, script: &str) -> String {
        run(&["ip", "netns", "exec", &self.namespace, "sh", "-c", script])
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]);
        // A test that dies must not leave its daemon behind.
        let parent = rustix::process::getpid();
        // SAFETY: only system calls that are safe between fork and exec.
        unsafe {
            command.pre_exec(move || {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                if rustix::process::getppid() == Some(parent) {
                    Ok(())
                } else {
                    Err(std::io::ErrorKind::Other.into())
                }
            })
        };
        command
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("captured.sock")
    }

    pub fn client(&self) -> Client {
        Client::new(self.socket())
    }

    /// A sender on an interface of the namespace.
    pub fn injector(&self, interface: &str) -> Injector {
        let path = format!("/run/netns/{}", self.namespace);
        let interface = interface.to_owned();
        std::thread::spawn(move || {
            let namespace = File::open(path).unwrap();
            move_into_link_name_space(
                std::os::fd::AsFd::as_fd(&namespace),
                Some(LinkNameSpaceType::Network),
            )
            .unwrap();
            Injector(PacketSender::open(&interface, false).unwrap())
        })
        .join()
        .unwrap()
    }

    pub fn daemon(&self) -> Daemon {
        self.daemon_with(&[])
    }

    /// A daemon with more arguments.
    pub fn daemon_with(&self, arguments: &[&str]) -> Daemon {
        let mut command = self.command(PROGRAM);
        command
            .arg("serve")
            .arg("--socket")
            .arg(self.socket())
            .args(["--socket-group", "0"])
            .args(arguments);
        self.wait_for_daemon(command)
    }

    /// Sends numbered frames at an even pace until it is dropped.
    pub fn traffic(&self, per_second: u32) -> Traffic {
        let far = self.injector(FAR);
        let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stop = std::sync::Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            for number in 0u32.. {
                let due = began + Duration::from_secs(1) * number / per_second;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                if stop.load(Ordering::Relaxed) {
                    return number;
                }
                // A link that is down takes none; that is what some tests are about.
                let _ = far.send(&frame(number, 53, 200));
            }
            unreachable!()
        });
        Traffic(over, Some(thread))
    }

    pub fn wait_for_daemon(&self, mut command: Command) -> Daemon {
        let log = File::create(self.path("daemon.log")).unwrap();
        let child = command.stderr(log).spawn().unwrap();
        let mut daemon = Daemon(child);
        let ready = || std::os::unix::net::UnixStream::connect(self.socket()).is_ok();
        wait_until("the daemon listens", || {
            if let Some(status) = daemon.0.try_wait().unwrap() {
                panic!(
                    "daemon ended with {status}: {}",
                    std::fs::read_to_string(self.path("daemon.log")).unwrap()
                );
            }
            ready()
        });
        daemon
    }

    /// tcpdump on an interface, ready to receive.
    pub fn tcpdump(&self, interface: &str, file: &Path) -> Tcpdump {
        let mut command = self.command("tcpdump");
        command
            .args([
                "-i",
                interface,
                "-U",
                "--immediate-mode",
                // In this mode each slot of the ring holds a whole snaplen: with the default there are only 256.
                "-s",
                "4096",
                "-B",
                "65536",
                "-Z",
                "root",
                "-w",
            ])
            .arg(file);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains("listening on"), "{first}");
        std::thread::spawn(move || lines.for_each(drop));
        Tcpdump(child, file.to_owned())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "del", &self.namespace])
            .status();
    }
}

/// A sender that goes on.
pub struct Traffic(
    std::sync::Arc<std::sync::atomic::AtomicBool>,
    Option<std::thread::JoinHandle<u32>>,
);

impl Traffic {
    /// Ends it; how many frames were offered.
    pub fn stop(mut self) -> u32 {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().unwrap().join().unwrap()
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The number in a frame of [`frame`].
pub fn sequence_of(packet: &Packet) -> u32 {
    u32::from_be_bytes(packet.bytes[42..46].try_into().unwrap())
}

pub struct Daemon(pub Child);

impl Daemon {
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub struct Tcpdump(Child, PathBuf);

impl Tcpdump {
    /// Its packets, once it has `count` of them.
    pub fn finish(mut self, count: usize) -> Vec<Vec<u8>> {
        let read = |path: &Path| -> Vec<Vec<u8>> {
            let Ok(reader) = File::open(path).map(pcap_file::pcap::PcapReader::new) else {
                return vec![];
            };
            let Ok(mut reader) = reader else { return vec![] };
            let mut packets = Vec::new();
            while let Some(Ok(packet)) = reader.next_packet() {
                packets.push(packet.data.to_vec());
            }
            packets
        };
        wait_until("tcpdump has all packets", || read(&self.1).len() >= count);
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
        self.0.wait().unwrap();
        read(&self.1)
    }
}

pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "waited in vain until {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
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

pub fn tap(name: &str) -> TapIdentity {
    TapIdentity {
        namespace: "trawl-system".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
    }
}

pub fn mirror(interface: &str) -> Source {
    Source::MirrorInterface(InterfaceSpec {
        interface: interface.into(),
        promiscuous: true,
    })
}

pub fn node(interface: &str) -> Source {
    Source::NodeInterface(InterfaceSpec {
        interface: interface.into(),
        promiscuous: true,
    })
}

/// Both ways of receiving, for laws that hold for either.
pub fn both() -> [Source; 2] {
    [mirror(NEAR), node(NEAR)]
}

pub fn capture(name: &str, filter: &str, duration_ms: u64) -> Capture {
    Capture {
        tap: tap(name),
        filter: Some(filter.into()),
        filter_tunnels: false,
        duration_ms,
        max_size_bytes: 64 << 20,
        snaplen: 0,
        trigger_ns: None,
        pre_trigger_ms: 0,
        comments: vec!["job one".into()],
    }
}

/// Opens the near end for a tap named `t`.
pub async fn attach(client: &Client, source: Source) -> Attachment {
    client
        .attach(Attach {
            history_bytes: None,
            tap: tap("t"),
            source,
        })
        .await
        .unwrap()
}

/// A capture that has started.
pub struct Running {
    pub replies: trawl_control::Replies,
    pub cancel: trawl_control::CancelHandle,
    pub started: Started,
    pub path: PathBuf,
}

pub async fn start(client: &Client, request: Capture, path: PathBuf) -> Result<Running, ErrorReply> {
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    let (mut replies, cancel) = client.capture(request, &file).await.unwrap();
    let refused = |e| match e {
        trawl_control::ClientError::Refused(refusal) => refusal,
        other => panic!("{other}"),
    };
    assert_eq!(
        replies.next().await.map_err(refused)?,
        Some(Reply::FilterAccepted)
    );
    match replies.next().await.map_err(refused)? {
        Some(Reply::Started(started)) => Ok(Running {
            replies,
            cancel,
            started,
            path,
        }),
        other => panic!("{other:?}"),
    }
}

impl Running {
    /// The summary, checked against the file.
    pub async fn ended(self) -> (Ended, Vec<Packet>) {
        self.ended_with(1).await
    }

    /// The same of a file that had no room for its end.
    pub async fn ended_without_statistics(self) -> (Ended, Vec<Packet>) {
        self.ended_with(0).await
    }

    async fn ended_with(mut self, statistics: usize) -> (Ended, Vec<Packet>) {
        loop {
            match self.replies.next().await.unwrap() {
                Some(Reply::Progress(_)) => {}
                Some(Reply::Ended(ended)) => {
                    let packets = check_file(&self.path, &ended, statistics);
                    return (ended, packets);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub stamp_ns: u64,
    pub wire_length: u32,
    pub bytes: Vec<u8>,
}

/// The packets of a file, read by a reader that is not ours; the file must end with its statistics.
pub fn packets_of(path: &Path) -> Vec<Packet> {
    read(path, 1)
}

fn read(path: &Path, expected_statistics: usize) -> Vec<Packet> {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let (mut packets, mut statistics) = (Vec::new(), 0);
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::EnhancedPacket(p) => {
                assert_eq!(statistics, 0, "packets after the statistics");
                packets.push(Packet {
                    stamp_ns: p.timestamp.as_nanos() as u64,
                    wire_length: p.original_len,
                    bytes: p.data.to_vec(),
                });
            }
            Block::InterfaceStatistics(_) => statistics += 1,
            Block::InterfaceDescription(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(statistics, expected_statistics);
    packets
}

fn check_file(path: &Path, ended: &Ended, statistics: usize) -> Vec<Packet> {
    use sha2::Digest;
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(bytes.len() as u64, ended.bytes);
    let hash: String = sha2::Sha256::digest(&bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(hash, ended.sha256);
    let packets = read(path, statistics);
    assert_eq!(packets.len() as u64, ended.packets);
    assert_eq!(packets.first().map(|p| p.stamp_ns), ended.first_packet_ns);
    assert_eq!(packets.last().map(|p| p.stamp_ns), ended.last_packet_ns);
    let truncated = packets
        .iter()
        .filter(|p| p.bytes.len() < p.wire_length as usize)
        .count();
    assert_eq!(truncated as u64, ended.truncated_packets);
    assert!(ended.balance.adds_up(), "{:?}", ended.balance);
    assert_eq!(ended.balance.written, ended.packets);
    assert!(packets.is_sorted_by_key(|p| p.stamp_ns), "stamps go back");
    packets
}

/// A UDP frame that carries its number; `port` is its destination.
pub fn frame(number: u32, port: u16, length: usize) -> Vec<u8> {
    let length = length.max(60);
    let mut f = vec![0u8; length];
    f[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    f[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    f[12..14].copy_from_slice(&[8, 0]);
    f[14] = 0x45;
    f[16..18].copy_from_slice(&((length - 14) as u16).to_be_bytes());
    f[22] = 64;
    f[23] = 17;
    f[26..30].copy_from_slice(&[10, 0, 0, 1]);
    f[30..34].copy_from_slice(&[10, 0, 0, 2]);
    f[34..36].copy_from_slice(&4000u16.to_be_bytes());
    f[36..38].copy_from_slice(&port.to_be_bytes());
    f[38..40].copy_from_slice(&((length - 34) as u16).to_be_bytes());
    f[42..46].copy_from_slice(&number.to_be_bytes());
    f
}

/// The same frame with a VLAN tag.
pub fn tagged(frame: &[u8], vlan: u16) -> Vec<u8> {
    [&frame[..12], &[0x81, 0], &vlan.to_be_bytes(), &frame[12..]].concat()
}

/// Looks until the attachment of tap `t` is as wanted.
pub async fn wait_for(
    client: &Client,
    what: &str,
    holds: impl Fn(&AttachmentStatus) -> bool,
) -> AttachmentStatus {
    let began = Instant::now();
    loop {
        let now = status_of(&client.status().await.unwrap().attachments, "t");
        if holds(&now) {
            return now;
        }
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "waited in vain until {what}: {now:?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// XDP programs on an interface of the world.
pub fn xdp_programs(world: &World) -> usize {
    world
        .shell(&format!("ip link show {NEAR}"))
        .matches("prog/xdp")
        .count()
}

pub fn status_of(status: &[AttachmentStatus], name: &str) -> AttachmentStatus {
    status.iter().find(|a| a.tap == tap(name)).cloned().unwrap()
}
