//! One run: a receiver, a second of frames, and what came of it.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use trawl_traffic::file::Packets;
use trawl_traffic::frame::Shape;

use crate::Outcome;
use crate::daemon::Daemon;
use crate::tools::{Tool, Writing};
use crate::world::World;

/// What is sent, and what the receiver is asked to keep of it.
#[derive(Clone, Debug)]
pub struct Case {
    pub size: usize,
    pub rate: Option<u64>,
    pub time: Duration,
    /// One for each capture; none keeps everything.
    pub filters: Vec<String>,
    /// Every how manieth frame the filters match; 0 when there are none.
    pub needle_every: u32,
    /// Whether the kernel's receiving thread goes before the receiver.
    pub kernel_first: bool,
}

/// Who receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// One process for each filter, or one for everything.
    Tool(Tool),
    /// The same, but at most so many processes.
    Limited(Tool, usize),
    /// captured's daemon with a capture for each filter.
    Captures,
    /// captured's daemon with history and no capture.
    Watch,
}

impl Receiver {
    pub fn name(self) -> String {
        match self {
            Self::Tool(tool) => tool.name().into(),
            Self::Limited(tool, most) => format!("{}, {most} processes", tool.name()),
            Self::Captures => "captured AF_XDP".into(),
            Self::Watch => "captured, watching".into(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// Frames made, with those that found no room on the wire.
    pub sent: u64,
    /// Frames that the receiving end took off the wire.
    pub reached: u64,
    /// Frames in the file, or their mean over all files, or counted when there is none; needles count for all frames between them.
    pub received: u64,
    /// From the first frame until the receiver had nothing more to do.
    pub seconds: f64,
    /// Run time of the process or processes.
    pub process_ns: u64,
    /// Run time of the kernel's receiving thread.
    pub napi_ns: u64,
    /// What `sha256sum` of the file took afterwards: captured has hashed while it wrote.
    pub hash_ns: u64,
}

impl Run {
    pub fn per_second(&self) -> f64 {
        self.received as f64 / self.seconds
    }

    pub fn process_ns_each(&self) -> f64 {
        self.process_ns as f64 / self.received.max(1) as f64
    }

    pub fn process_and_hash_ns_each(&self) -> f64 {
        (self.process_ns + self.hash_ns) as f64 / self.received.max(1) as f64
    }

    pub fn all_ns_each(&self) -> f64 {
        (self.process_ns + self.napi_ns) as f64 / self.received.max(1) as f64
    }
}

/// Measures once more when the interface was reconfigured meanwhile, so that the kernel's work is not known.
pub fn measure(world: &World, captured: &Path, receiver: Receiver, case: &Case) -> Outcome<Run> {
    const TRIES: usize = 5;
    for _ in 1..TRIES {
        match measure_once(world, captured, receiver, case) {
            Err(error) if error.is::<Replaced>() => eprintln!("{error}: measuring again"),
            other => return other,
        }
    }
    measure_once(world, captured, receiver, case)
}

fn measure_once(world: &World, captured: &Path, receiver: Receiver, case: &Case) -> Outcome<Run> {
    match receiver {
        Receiver::Tool(tool) => tools(world, captured, tool, case, usize::MAX),
        Receiver::Limited(tool, most) => tools(world, captured, tool, case, most),
        Receiver::Captures => captures(world, captured, case),
        Receiver::Watch => watch(world, captured, case),
    }
}

fn tools(world: &World, captured: &Path, tool: Tool, case: &Case, most: usize) -> Outcome<Run> {
    let filters: Vec<Option<&str>> = match case.filters.len() {
        0 => vec![None],
        _ => case.filters.iter().take(most).map(|f| Some(f.as_str())).collect(),
    };
    let start = |(i, filter): (usize, Option<&str>)| {
        tool.start(world, captured, &world.path(&format!("packets-{i}")), filter)
    };
    let mut writing = filters
        .into_iter()
        .enumerate()
        .map(start)
        .collect::<Outcome<Vec<Writing>>>()?;
    let processes: Vec<u32> = writing.iter().map(|w| w.child.id()).collect();
    let mut run = offer(world, case, &processes)?;
    writing.iter_mut().try_for_each(Writing::finish)?;
    let files = writing
        .iter()
        .map(|w| count(&w.file))
        .collect::<Outcome<Vec<u64>>>()?;
    run.received = mean(&files) * u64::from(case.needle_every.max(1));
    if !matches!(tool, Tool::Record | Tool::RecordNode) {
        run.hash_ns = writing.iter().map(|w| hash_ns(&w.file)).sum::<Outcome<u64>>()?;
    }
    Ok(run)
}

/// CPU of `sha256sum`, in steps of the kernel's 10 ms.
fn hash_ns(file: &Path) -> Outcome<u64> {
    let children = || -> Outcome<u64> {
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        Ok(fields
            .skip(13)
            .take(2)
            .filter_map(|ticks| ticks.parse::<u64>().ok())
            .sum::<u64>()
            * 10_000_000)
    };
    let before = children()?;
    let status = Command::new("sha256sum")
        .arg(file)
        .stdout(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("sha256sum ended with {status}").into());
    }
    Ok(children()? - before)
}

fn captures(world: &World, captured: &Path, case: &Case) -> Outcome<Run> {
    let mut daemon = Daemon::start(world, captured, &case.filters)?;
    let mut run = offer(world, case, &[daemon.child.id()])?;
    let files = daemon.finish_captures()?;
    let counts = files
        .iter()
        .map(|file| count(file))
        .collect::<Outcome<Vec<u64>>>()?;
    files.iter().try_for_each(std::fs::remove_file)?;
    run.received = mean(&counts) * u64::from(case.needle_every.max(1));
    Ok(run)
}

fn watch(world: &World, captured: &Path, case: &Case) -> Outcome<Run> {
    let daemon = Daemon::start(world, captured, &[])?;
    let before = daemon.status()?;
    let mut run = offer(world, case, &[daemon.child.id()])?;
    // Counters are published now and then, not with each frame.
    std::thread::sleep(Duration::from_millis(1200));
    let after = daemon.status()?;
    run.received = after.counters.packets - before.counters.packets;
    let lost = after.counters.dropped_ring.unwrap_or(0) - before.counters.dropped_ring.unwrap_or(0);
    // The counts of captured and of the interface must agree, whatever was lost.
    let strayed = (run.received + lost).abs_diff(run.reached);
    if strayed > run.reached / 1000 + 64 {
        return Err(format!(
            "captured counts {} received and {lost} lost, and the interface {}",
            run.received, run.reached
        )
        .into());
    }
    Ok(run)
}

/// Sends, and waits until the receivers have nothing more to do. Packets are counted by the caller.
fn offer(world: &World, case: &Case, processes: &[u32]) -> Outcome<Run> {
    let napi = world.settle_napi(case.kernel_first)?;
    let work = || -> Outcome<u64> { processes.iter().map(|pid| run_time_ns(*pid)).sum() };
    let (process, kernel) = (work()?, run_time_ns(napi.as_raw_nonzero().get().cast_unsigned())?);
    let reached = world.reached()?;
    let shape = Shape {
        needle_every: case.needle_every,
        ..Shape::default()
    };
    let began = Instant::now();
    let sent = world.send(shape, case.size, case.rate, case.time)?;
    let end = settle(work)?;
    let seconds = (end - began).as_secs_f64().max(sent.took.as_secs_f64());
    same_thread(world, napi)?;
    Ok(Run {
        sent: sent.frames,
        reached: world.reached()? - reached,
        received: 0,
        seconds,
        process_ns: work()? - process,
        hash_ns: 0,
        napi_ns: run_time_ns(napi.as_raw_nonzero().get().cast_unsigned())? - kernel,
    })
}

/// The NAPI thread is another one than at the start.
#[derive(Debug, thiserror::Error)]
#[error("the kernel's receiving thread was replaced during a run")]
struct Replaced;

fn same_thread(world: &World, napi: Pid) -> Outcome<()> {
    if world.napi_thread()? == napi {
        Ok(())
    } else {
        Err(Replaced.into())
    }
}

/// Waits until the receivers use less than 2 % of a core; returns when they last used more.
fn settle(work: impl Fn() -> Outcome<u64>) -> Outcome<Instant> {
    const LOOK: Duration = Duration::from_millis(20);
    let (mut last, mut busy) = (work()?, Instant::now());
    while busy.elapsed() < Duration::from_millis(300) {
        std::thread::sleep(LOOK);
        let now = work()?;
        if now.saturating_sub(last) > LOOK.as_nanos() as u64 / 50 {
            busy = Instant::now();
        }
        last = now;
    }
    Ok(busy)
}

/// Run time of all threads of a process.
fn run_time_ns(pid: u32) -> Outcome<u64> {
    let mut total = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread that ends while it is looked at.
        let Ok(times) = std::fs::read_to_string(task?.path().join("schedstat")) else {
            continue;
        };
        total += times
            .split_whitespace()
            .next()
            .and_then(|n| n.parse::<u64>().ok())
            .unwrap_or(0);
    }
    Ok(total)
}

fn count(path: &Path) -> Outcome<u64> {
    let mut packets = Packets::new(BufReader::with_capacity(1 << 20, File::open(path)?))?;
    let mut count = 0;
    loop {
        match packets.next_packet() {
            Ok(Some(_)) => count += 1,
            Ok(None) => return Ok(count),
            Err(error) => return Err(format!("{}: {error}", path.display()).into()),
        }
    }
}

fn mean(counts: &[u64]) -> u64 {
    counts.iter().sum::<u64>() / counts.len().max(1) as u64
}
