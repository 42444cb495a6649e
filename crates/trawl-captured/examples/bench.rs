//! `dev/bench capture`: packets into a file, captured beside tcpdump, in interleaved rounds of one run.
//!
//! A sender on one end of a veth pair sends as fast as it can for a second; the receiver on the other end writes to
//! memory. Counted are the packets in the file that was written; CPU is the run time of all threads of the process.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};
use trawl_dataplane::ring::inject::Injector;

const ROUNDS: usize = 5;
const SECOND: Duration = Duration::from_secs(1);
const SIZES: [usize; 3] = [60, 512, 1500];
/// Goals of the capture area: packets against the peer, CPU per packet against the peer.
const GOALS: (f64, f64) = (1.1, 0.7);

#[derive(Clone, Copy, PartialEq)]
enum Receiver {
    Tcpdump,
    Mirror,
    Node,
}

impl Receiver {
    const ALL: [Self; 3] = [Self::Tcpdump, Self::Mirror, Self::Node];

    fn name(self) -> &'static str {
        match self {
            Self::Tcpdump => "tcpdump",
            Self::Mirror => "captured AF_XDP",
            Self::Node => "captured AF_PACKET",
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Run {
    sent: u64,
    in_file: u64,
    per_second: f64,
    cpu_ns_per_packet: f64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = std::env::args()
        .nth(1)
        .ok_or("usage: bench PATH-OF-trawl-captured OUTPUT.json")?;
    let output = PathBuf::from(
        std::env::args()
            .nth(2)
            .ok_or("the second argument is the JSON file to write")?,
    );
    let world = World::new()?;
    let mut rows = Vec::new();
    for size in SIZES {
        let mut runs = [const { Vec::new() }; 3];
        for round in 0..ROUNDS {
            for at in 0..3 {
                let receiver = Receiver::ALL[(at + round) % 3];
                let run = world.measure(&program, receiver, size)?;
                eprintln!(
                    "{size:>5} B  round {}  {:<18} {:>8.0} packets/s in the file of {:>8} sent, {:>5.0} ns CPU each",
                    round + 1,
                    receiver.name(),
                    run.per_second,
                    run.sent,
                    run.cpu_ns_per_packet
                );
                runs[Receiver::ALL.iter().position(|r| *r == receiver).unwrap_or(0)].push(run);
            }
        }
        rows.extend(compare(size, &runs));
    }
    print_table(&rows);
    if let Some(directory) = output.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let cores = std::thread::available_parallelism()?.get();
    let report =
        json!({"area": "capture", "kernel": kernel.trim(), "cores": cores, "rounds": ROUNDS, "rows": rows});
    std::fs::write(&output, serde_json::to_vec_pretty(&report)?)?;
    println!("written to {}", output.display());
    Ok(())
}

fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn compare(size: usize, runs: &[Vec<Run>; 3]) -> Vec<Value> {
    let summary = |runs: &Vec<Run>| {
        let kept = median(runs, |r| r.in_file as f64 / r.sent.max(1) as f64);
        (
            median(runs, |r| r.per_second),
            median(runs, |r| r.cpu_ns_per_packet),
            kept,
        )
    };
    let peer = summary(&runs[0]);
    (1..3)
        .map(|i| {
            let ours = summary(&runs[i]);
            json!({
                "bytes": size, "receiver": Receiver::ALL[i].name(),
                "packetsPerSecond": ours.0, "cpuNsPerPacket": ours.1, "kept": ours.2,
                "tcpdumpPacketsPerSecond": peer.0, "tcpdumpCpuNsPerPacket": peer.1, "tcpdumpKept": peer.2,
                "ratio": ours.0 / peer.0, "cpuRatio": ours.1 / peer.1,
            })
        })
        .collect()
}

fn print_table(rows: &[Value]) {
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap_or(f64::NAN);
    println!("\nmedians of {ROUNDS} interleaved rounds; kpps are packets in the file");
    println!(
        "| bytes | receiver | kpps | kept | tcpdump kpps | kept | ratio | CPU ns/packet | tcpdump | ratio | goals |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for row in rows {
        let (ratio, cpu) = (number(row, "ratio"), number(row, "cpuRatio"));
        let verdict = match (ratio >= GOALS.0, cpu <= GOALS.1) {
            (true, true) => "both met",
            (true, false) => "CPU missed",
            (false, true) => "packets missed",
            (false, false) => "both missed",
        };
        println!(
            "| {} | {} | {:.0} | {:.0} % | {:.0} | {:.0} % | {ratio:.2} | {:.0} | {:.0} | {cpu:.2} | {verdict} |",
            row["bytes"],
            row["receiver"].as_str().unwrap_or(""),
            number(row, "packetsPerSecond") / 1e3,
            number(row, "kept") * 100.0,
            number(row, "tcpdumpPacketsPerSecond") / 1e3,
            number(row, "tcpdumpKept") * 100.0,
            number(row, "cpuNsPerPacket"),
            number(row, "tcpdumpCpuNsPerPacket")
        );
    }
}

struct World {
    namespace: String,
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let namespace = format!("trawl-bench-{}", std::process::id());
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() {
            tempfile::tempdir_in(memory)?
        } else {
            tempfile::tempdir()?
        };
        let world = Self { namespace, directory };
        run(&["ip", "netns", "add", &world.namespace])?;
        world.shell("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6")?;
        world.shell(
            "ip link add near0 type veth peer name far0 && ip link set near0 up && ip link set far0 up",
        )?;
        Ok(world)
    }

    fn shell(&self, script: &str) -> std::io::Result<()> {
        run(&["ip", "netns", "exec", &self.namespace, "sh", "-c", script])
    }

    fn start(&self, program: &str, receiver: Receiver, file: &Path) -> std::io::Result<Child> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]);
        match receiver {
            Receiver::Tcpdump => command
                .args(["tcpdump", "-Z", "root", "-i", "near0", "-B", "65536", "-w"])
                .arg(file),
            _ => command
                .args([
                    program,
                    "record",
                    "--interface",
                    "near0",
                    "--duration",
                    "1h",
                    "--max-size",
                    "1Gi",
                    "-o",
                ])
                .arg(file),
        };
        if receiver == Receiver::Node {
            command.arg("--node");
        }
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let began = Instant::now();
        while !file.exists() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(300));
        Ok(child)
    }

    fn measure(
        &self,
        program: &str,
        receiver: Receiver,
        size: usize,
    ) -> Result<Run, Box<dyn std::error::Error>> {
        let file = self.directory.path().join("packets");
        let mut child = self.start(program, receiver, &file)?;
        let before = run_time_ns(child.id())?;
        let (sent, took) = self.send(size)?;
        settle(&file);
        let cpu = run_time_ns(child.id())? - before;
        kill_process(Pid::from_child(&child), Signal::INT)?;
        child.wait()?;
        let in_file = count(&file)?;
        std::fs::remove_file(&file)?;
        Ok(Run {
            sent,
            in_file,
            per_second: in_file as f64 / took.as_secs_f64(),
            cpu_ns_per_packet: cpu as f64 / in_file.max(1) as f64,
        })
    }

    /// Sends for a second, as fast as the wire takes it.
    fn send(&self, size: usize) -> Result<(u64, Duration), Box<dyn std::error::Error>> {
        let path = format!("/run/netns/{}", self.namespace);
        let sender = std::thread::spawn(move || -> std::io::Result<(u64, Duration)> {
            let namespace = File::open(path)?;
            move_into_link_name_space(
                std::os::fd::AsFd::as_fd(&namespace),
                Some(LinkNameSpaceType::Network),
            )?;
            let name = "far0".parse().map_err(std::io::Error::other)?;
            let far = Injector::open(&name)?;
            let frame = frame(size);
            let (began, mut sent) = (Instant::now(), 0);
            while began.elapsed() < SECOND {
                sent += far.send_many(&frame, 64).or_else(full_is_none)? as u64;
            }
            Ok((sent, began.elapsed()))
        });
        Ok(sender.join().map_err(|_| "the sender failed")??)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = run(&["ip", "netns", "del", &self.namespace]);
    }
}

fn full_is_none(error: std::io::Error) -> std::io::Result<usize> {
    if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) {
        Ok(0)
    } else {
        Err(error)
    }
}

fn run(command: &[&str]) -> std::io::Result<()> {
    let status = Command::new(command[0]).args(&command[1..]).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other(format!("{command:?} failed")))
    }
}

fn frame(size: usize) -> Vec<u8> {
    let mut frame = vec![0x5a; size];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    frame
}

/// Waits until the file no longer grows.
fn settle(file: &Path) {
    let length = || file.metadata().map_or(0, |m| m.len());
    let mut last = length();
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(300));
        let now = length();
        if now == last {
            return;
        }
        last = now;
    }
}

fn run_time_ns(pid: u32) -> std::io::Result<u64> {
    let mut total = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let times = std::fs::read_to_string(task?.path().join("schedstat"))?;
        total += times
            .split_whitespace()
            .next()
            .and_then(|n| n.parse::<u64>().ok())
            .unwrap_or(0);
    }
    Ok(total)
}

/// Packets in a pcap or pcapng file, by its block lengths.
fn count(path: &Path) -> std::io::Result<u64> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut head = [0u8; 24];
    reader.read_exact(&mut head[..12])?;
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let mut packets = 0;
    if word(&head) == 0x0a0d_0d0a {
        reader.seek_relative(i64::from(word(&head[4..])) - 12)?;
        while reader.read_exact(&mut head[..8]).is_ok() {
            packets += u64::from(word(&head) == 6);
            reader.seek_relative(i64::from(word(&head[4..])) - 8)?;
        }
    } else {
        reader.read_exact(&mut head[12..])?;
        while reader.read_exact(&mut head[..16]).is_ok() {
            packets += 1;
            reader.seek_relative(i64::from(word(&head[8..])))?;
        }
    }
    std::io::stdout().flush()?;
    Ok(packets)
}
