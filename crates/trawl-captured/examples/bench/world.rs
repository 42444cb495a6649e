//! A namespace with one wire, and what the kernel does on its receiving end.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_setaffinity};
use trawl_traffic::frame::Shape;
use trawl_traffic::pace::Sent;
use trawl_traffic::ring::live::Live;

use crate::Outcome;

/// The core of the receiver and its NAPI thread, and the core of the generator.
pub const RECEIVING: usize = 0;
const SENDING: usize = 1;
/// The nice value of generator, receivers and NAPI thread alike.
const PRIORITY: i32 = -15;

pub struct World {
    namespace: String,
    /// The receiving end; its name is one of a kind, because the names of NAPI threads are not per namespace.
    pub near: String,
    far: String,
    pub directory: tempfile::TempDir,
}

impl World {
    pub fn new() -> Outcome<Self> {
        if std::thread::available_parallelism()?.get() < 2 {
            return Err("this needs two cores: one to receive on and one to send from".into());
        }
        // Inherited by the receivers; what else runs on the machine disturbs less, and all that is measured is equal.
        rustix::process::setpriority_process(None, PRIORITY)?;
        // Sessions share the machine before processes do, where the kernel groups them.
        let _ = std::fs::write("/proc/self/autogroup", PRIORITY.to_string());
        let number = std::process::id() % 100_000;
        let memory = Path::new("/dev/shm");
        let world = Self {
            namespace: format!("trawl-bench-{number}"),
            near: format!("bn{number}"),
            far: format!("bf{number}"),
            directory: tempfile::tempdir_in(memory)
                .map_err(|e| format!("cannot write to {}, which must be a tmpfs: {e}", memory.display()))?,
        };
        run(Command::new("ip").args(["netns", "add", &world.namespace]))?;
        let (near, far) = (&world.near, &world.far);
        world.shell(&format!(
            "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
            ip link add {near} type veth peer name {far}
            ethtool -K {near} gro on; ip link set {near} up; ip link set {far} up
            echo 1 > /sys/class/net/{near}/threaded"
        ))?;
        Ok(world)
    }

    /// A command in the namespace, on the receiving core.
    pub fn command(&self) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]);
        command.args(["taskset", "-c", &RECEIVING.to_string()]);
        command
    }

    pub fn shell(&self, script: &str) -> Outcome<String> {
        run(self.command().args(["sh", "-ec", script]))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The thread that the kernel receives with. It is another one after the interface was reconfigured.
    pub fn napi_thread(&self) -> Outcome<Pid> {
        let name = format!("napi/{}-", self.near);
        for process in std::fs::read_dir("/proc")? {
            let path = process?.path();
            let number = path
                .file_name()
                .and_then(|n| n.to_str())
                .and_then(|n| n.parse().ok());
            let comm = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
            if let Some(pid) = number.and_then(Pid::from_raw).filter(|_| comm.starts_with(&name)) {
                return Ok(pid);
            }
        }
        Err(format!("the kernel has no thread {name}*, so its work could not be counted").into())
    }

    /// Puts the NAPI thread on the core of the receiver; `first` lets it run before the receiver whenever it has work, as an
    /// interrupt would.
    pub fn settle_napi(&self, first: bool) -> Outcome<Pid> {
        let thread = self.napi_thread()?;
        let mut cores = CpuSet::new();
        cores.set(RECEIVING);
        sched_setaffinity(Some(thread), &cores)?;
        rustix::process::setpriority_process(Some(thread), PRIORITY)?;
        let policy = if first { ["--fifo", "1"] } else { ["--other", "0"] };
        let number = thread.as_raw_nonzero().to_string();
        run(Command::new("chrt")
            .arg(policy[0])
            .args(["--pid", policy[1], &number]))?;
        Ok(thread)
    }

    /// Frames that the receiving end has taken off the wire.
    pub fn reached(&self) -> Outcome<u64> {
        let statistics = self.shell(&format!("ethtool -S {}", self.near))?;
        let queues = statistics.lines().filter_map(|line| line.trim().split_once(": "));
        let counts =
            queues.filter(|(name, _)| name.starts_with("rx_queue_") && name.ends_with("xdp_packets"));
        Ok(counts.filter_map(|(_, count)| count.parse::<u64>().ok()).sum())
    }

    /// Sends numbered frames from a core of its own.
    pub fn send(&self, shape: Shape, size: usize, rate: Option<u64>, time: Duration) -> Outcome<Sent> {
        let (path, far) = (format!("/run/netns/{}", self.namespace), self.far.clone());
        let sender = std::thread::spawn(move || -> std::io::Result<Sent> {
            let mut cores = CpuSet::new();
            cores.set(SENDING);
            sched_setaffinity(None, &cores)?;
            let namespace = File::open(path)?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Live::open(&far, shape, &[size], 0, rate)?.send(None, Some(time))
        });
        Ok(sender.join().map_err(|_| "the sender failed")??)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = run(Command::new("ip").args(["netns", "del", &self.namespace]));
    }
}

fn run(command: &mut Command) -> Outcome<String> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)).into())
}
