//! What is sent arrives, as a receiver that is not ours sees it. Needs root: `dev/test kernel`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use trawl_traffic::verify::{Report, Wanted, verify};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trawl-testbed");

/// A namespace with a wire from `far0` to `near0` that takes jumbo frames and live ones.
struct World {
    namespace: String,
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "this test needs root and network namespaces: run dev/test kernel"
        );
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("trawl-traffic-{}-{number}", std::process::id());
        done(Command::new("ip").args(["netns", "add", &namespace]));
        let directory = tempfile::tempdir().unwrap();
        let world = Self { namespace, directory };
        let script = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
            ip link add near0 mtu 9000 type veth peer name far0 mtu 9000
            ethtool -K near0 gro on; ethtool -K far0 txvlan off; tc qdisc replace dev far0 root pfifo
            ip link set near0 up; ip link set far0 up";
        done(world.command("sh").args(["-ec", script]));
        world
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts tcpdump and waits until it listens.
    fn receive(&self) -> Receiver {
        let file = self.directory.path().join("received.pcap");
        let mut command = self.command("tcpdump");
        command.args([
            "-i",
            "near0",
            "--immediate-mode",
            "-U",
            "-s",
            "9100",
            "-B",
            "131072",
            "-Z",
            "root",
            "-w",
        ]);
        let mut child = command.arg(&file).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().contains("listening on"));
        std::thread::spawn(move || lines.for_each(drop));
        Receiver(child, file)
    }

    fn send(&self, arguments: &str) -> Value {
        let mut command = self.command(PROGRAM);
        command
            .args(["traffic", "--interface", "far0", "--json"])
            .args(arguments.split(' '));
        let output = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Sends, and judges what arrived.
    fn judge(&self, arguments: &str, wanted: &Wanted) -> Report {
        let receiver = self.receive();
        let sent = self.send(arguments);
        let report = receiver.finish(wanted.expect.unwrap(), wanted);
        assert_eq!(sent["packets"], wanted.expect.unwrap(), "{sent}");
        assert!(report.is_good(), "{arguments}: {report}");
        report
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "del", &self.namespace])
            .status();
    }
}

struct Receiver(Child, PathBuf);

impl Receiver {
    /// Waits until the file has so many packets, at most 10 s, and judges it.
    fn finish(mut self, packets: u64, wanted: &Wanted) -> Report {
        let began = Instant::now();
        while judged(&self.1, wanted).packets < packets && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(50));
        }
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.0),
            rustix::process::Signal::INT,
        )
        .unwrap();
        self.0.wait().unwrap();
        judged(&self.1, wanted)
    }
}

fn judged(path: &Path, wanted: &Wanted) -> Report {
    verify(BufReader::new(File::open(path).unwrap()), wanted).unwrap()
}

fn done(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?} ended with {status}");
}

fn expect(packets: u64) -> Wanted {
    Wanted {
        expect: Some(packets),
        ..Wanted::default()
    }
}

#[test]
fn live_frames_of_every_kind_arrive_whole_and_in_order() {
    let world = World::new();
    for (arguments, tags) in [
        ("--count 5000 --rate 50k", 0),
        ("--count 5000 --rate 50k --flows 16 --match 1/100 --size 512", 0),
        ("--count 5000 --rate 50k --vlan 7 --size imix", 1),
        ("--count 5000 --rate 50k --qinq 100.200 --size 68,900", 2),
        ("--count 5000 --rate 50k --vxlan 42 --size 110,3400", 0),
        (
            "--count 5000 --rate 50k --first 18446744073709546616 --size 60",
            0,
        ),
    ] {
        let report = world.judge(arguments, &expect(5000));
        assert_eq!(
            report.streams[0].tags.get(&tags),
            Some(&5000),
            "{arguments}: {report}"
        );
    }
}

#[test]
fn given_frames_of_every_kind_arrive_whole_and_in_order_jumbo_too() {
    let world = World::new();
    for (arguments, tags) in [
        (
            "--sender packet --qdisc --count 3000 --rate 30k --size imix --flows 5",
            0,
        ),
        (
            "--sender packet --qdisc --count 3000 --rate 30k --size 9000,60",
            0,
        ),
        (
            "--sender packet --count 3000 --rate 30k --qinq 100.200 --size 68,1200",
            2,
        ),
        (
            "--sender packet --count 3000 --rate 30k --vxlan 42 --size 8000",
            0,
        ),
    ] {
        let report = world.judge(arguments, &expect(3000));
        assert_eq!(
            report.streams[0].tags.get(&tags),
            Some(&3000),
            "{arguments}: {report}"
        );
    }
}

#[test]
fn a_rate_is_kept_and_a_duration_ends_live_frames() {
    let world = World::new();
    let sent = world.send("--rate 100k --duration 1s");
    let rate = sent["packetsPerSecond"].as_f64().unwrap();
    // Never faster; how much slower is up to the load of the machine.
    assert!((10_000.0..=101_000.0).contains(&rate), "{sent}");
    let packets = sent["packets"].as_u64().unwrap();
    assert!((10_000..150_000).contains(&packets), "{sent}");
    assert_eq!(sent["interfaceSent"], packets, "{sent}");
}

#[test]
fn a_needle_filter_finds_exactly_its_share() {
    let world = World::new();
    let receiver = world.receive();
    world.send("--count 5000 --rate 50k --match 1/100 --flows 3");
    let all = receiver.1.clone();
    receiver.finish(5000, &expect(5000));
    let needles = world.directory.path().join("needles.pcap");
    done(
        Command::new("tcpdump")
            .arg("-r")
            .arg(&all)
            .arg("-w")
            .arg(&needles)
            .arg("udp port 9999")
            .stderr(Stdio::null()),
    );
    let report = judged(
        &needles,
        &Wanted {
            every: 100,
            expect: Some(50),
            ..Wanted::default()
        },
    );
    assert!(report.is_good(), "{report}");
}

#[test]
fn what_cannot_be_sent_is_refused_with_what_to_do() {
    let world = World::new();
    for (arguments, advice) in [
        ("--interface none0", "cannot be found in this network namespace"),
        ("--interface far0 --size 9000", "--sender packet"),
        ("--interface far0 --rate 100", "--sender packet"),
        ("--interface far0 --size 20", "60 to 65000 bytes"),
        ("--interface far0 --qinq 5", "100.200"),
    ] {
        let mut command = world.command(PROGRAM);
        command.arg("traffic").args(arguments.split(' '));
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(advice), "{arguments}: {said}");
    }
}

#[test]
fn a_file_is_sent_again_as_far_apart_as_its_packets_were_or_at_a_rate() {
    let world = World::new();
    let receiver = world.receive();
    world.send("--count 2000 --rate 20k --size 60,700");
    let file = world.directory.path().join("first.pcap");
    let first = receiver.1.clone();
    assert!(receiver.finish(2000, &expect(2000)).is_good());
    std::fs::rename(first, &file).unwrap();
    for (how, least) in [("", 0.09), (" --rate 10k", 0.19), (" --rate max", 0.0)] {
        let receiver = world.receive();
        let sent = world.send(&format!("--qdisc --replay {}{how}", file.display()));
        assert_eq!(sent["packets"], 2000, "{sent}");
        assert!(sent["seconds"].as_f64().unwrap() >= least, "{how}: {sent}");
        let report = receiver.finish(2000, &expect(2000));
        assert!(report.is_good(), "{how}: {report}");
    }
}
