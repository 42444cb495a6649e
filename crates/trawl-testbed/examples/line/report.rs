//! One table for people, one JSON file for comparisons; both say what was not measured.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::memory::Resident;
use crate::rounds::{DURATION, FRAME_BYTES, Measured, ROUNDS, Round, WARM_UP};

/// Points of a job's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Point {
    Requested,
    Accepted,
    JobCreated,
    PodCreated,
    PodScheduled,
    SandboxCreated,
    SandboxStarted,
    ReporterStarted,
    RunnerStarted,
    CaptureStarted,
    FirstPacket,
    StartReported,
    CaptureEnded,
    RunnerExited,
    ResultReported,
    Downloadable,
    ReporterExited,
}

/// What is told: from, to, in words, and whose clock readings it rests on.
type Span = (Point, Point, &'static str, &'static str);

/// The two figures that count.
const WHOLE: [Span; 2] = {
    use Point::*;
    [
        (
            Requested,
            FirstPacket,
            "request to first packet in the file",
            "client, manifest",
        ),
        (
            CaptureEnded,
            Downloadable,
            "end of capture to Downloadable=True",
            "manifest, watch",
        ),
    ]
};

/// From the request to each point on the way.
const REACHED: [Span; 5] = {
    use Point::*;
    [
        (
            Requested,
            JobCreated,
            "request to Kubernetes Job made",
            "client, watch",
        ),
        (
            Requested,
            PodScheduled,
            "request to pod scheduled",
            "client, watch",
        ),
        (
            Requested,
            RunnerStarted,
            "request to runner started",
            "client, containerd",
        ),
        (
            Requested,
            CaptureStarted,
            "request to capture started",
            "client, manifest",
        ),
        (
            Requested,
            StartReported,
            "request to start seen in the status",
            "client, watch",
        ),
    ]
};

/// Where the time goes: consecutive parts of both figures.
const PARTS: [Span; 14] = {
    use Point::*;
    [
        (Requested, Accepted, "API server takes the request", "client"),
        (Accepted, JobCreated, "operator makes the Job", "client, watch"),
        (JobCreated, PodCreated, "job controller makes the pod", "watch"),
        (PodCreated, PodScheduled, "scheduler binds it", "watch"),
        (
            PodScheduled,
            SandboxCreated,
            "kubelet: volumes, token, secret",
            "watch, containerd",
        ),
        (
            SandboxCreated,
            SandboxStarted,
            "sandbox: network, pause container",
            "containerd",
        ),
        (
            SandboxStarted,
            ReporterStarted,
            "reporter container starts",
            "containerd",
        ),
        (
            ReporterStarted,
            RunnerStarted,
            "runner container starts after it",
            "containerd",
        ),
        (
            RunnerStarted,
            CaptureStarted,
            "runner asks captured, ring opens",
            "containerd, manifest",
        ),
        (CaptureStarted, FirstPacket, "first frame arrives", "manifest"),
        (
            CaptureEnded,
            RunnerExited,
            "runner checks and uploads",
            "manifest, containerd",
        ),
        (
            CaptureEnded,
            ResultReported,
            "the same, until the reporter told it",
            "manifest, watch",
        ),
        (ResultReported, Downloadable, "operator reads it back", "watch"),
        (
            Downloadable,
            ReporterExited,
            "the pod ends afterwards",
            "watch, containerd",
        ),
    ]
};

pub fn conditions(programs: &str) -> Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cpu = read("/proc/cpuinfo");
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(": "));
    json!({
        "jobs": ROUNDS,
        "warmUpJobs": WARM_UP,
        "duration": DURATION,
        "frameBytes": FRAME_BYTES,
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "cpu": model.map(|(_, name)| name),
        "kernel": read("/proc/sys/kernel/osrelease"),
        "pause": "0.5 s and a different part of a second before each job",
        "loadBefore": read("/proc/loadavg"),
        "programs": programs,
        "where": "control plane, node, S3 server, sender and this client share one machine and one clock",
        "resolution": {
            "client": "nanoseconds, immediately before and after create",
            "watch": "nanoseconds, when the event arrived at the client; the write itself was a little earlier, and two watches may arrive in either order",
            "containerd": "nanoseconds, by containerd's event stream, which tells of a start a moment after the program began",
            "manifest": "nanoseconds, by captured; the first packet by the clock source named",
            "memory": "VmHWM and VmRSS; for runner and reporter the last of looks 100 ms apart",
        },
        "notMeasured": [
            "parts inside the kubelet between binding and sandbox: its events have whole seconds",
            "image pulls: images are imported beforehand",
            "the reading of the object in the API server by the operator: its watch is not ours",
        ],
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Statistic {
    what: &'static str,
    clocks: &'static str,
    jobs: usize,
    p50_ms: f64,
    p95_ms: f64,
    min_ms: f64,
    max_ms: f64,
}

/// Nearest rank, so that every figure is one that was measured.
fn rank(sorted: &[f64], percent: usize) -> f64 {
    let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

fn milliseconds(from: Timestamp, to: Timestamp) -> f64 {
    (to.as_nanosecond() - from.as_nanosecond()) as f64 / 1e6
}

fn statistic(rounds: &[Round], (from, to, what, clocks): &Span) -> Statistic {
    let took = |round: &Round| Some(milliseconds(*round.points.get(from)?, *round.points.get(to)?));
    let mut all: Vec<f64> = rounds.iter().filter_map(took).collect();
    all.sort_by(f64::total_cmp);
    Statistic {
        what,
        clocks,
        jobs: all.len(),
        p50_ms: rank(&all, 50),
        p95_ms: rank(&all, 95),
        min_ms: rank(&all, 0),
        max_ms: rank(&all, 100),
    }
}

fn statistics(rounds: &[Round], spans: &[Span]) -> Vec<Statistic> {
    spans.iter().map(|span| statistic(rounds, span)).collect()
}

/// The highest of every job's figures.
fn passing(rounds: &[Round]) -> BTreeMap<&'static str, Resident> {
    let mut highest: BTreeMap<_, Resident> = BTreeMap::new();
    for (program, now) in rounds.iter().flat_map(|r| &r.resident) {
        let top = highest.entry(*program).or_default();
        top.peak_kib = top.peak_kib.max(now.peak_kib);
        top.current_kib = top.current_kib.max(now.current_kib);
    }
    highest
}

pub fn document(mut conditions: Value, measured: &Measured) -> Result<Value> {
    let rounds = &measured.rounds;
    let first = rounds.first();
    conditions["frameIntervalMs"] = json!(measured.frame_interval * 1e3);
    conditions["mode"] = json!(first.map(|r| &r.mode));
    conditions["clockSource"] = json!(first.map(|r| &r.clock));
    let times =
        |round: &Round| json!({"packets": round.packets, "resident": round.resident, "points": round.points});
    Ok(json!({
        "schema": "trawl.bench-line/v1",
        "conditions": conditions,
        "figures": statistics(rounds, &WHOLE),
        "reached": statistics(rounds, &REACHED),
        "parts": statistics(rounds, &PARTS),
        "memory": {"idle": measured.idle, "afterTheLastJob": measured.worked, "highestOfAllJobs": passing(rounds)},
        "jobs": rounds.iter().map(times).collect::<Vec<_>>(),
    }))
}

pub fn print(document: &Value, measured: &Measured) {
    let said = |key: &str| document["conditions"][key].to_string().replace('"', "");
    println!(
        "\n{ROUNDS} captures of {DURATION} one after another, after {WARM_UP} that does not count; {FRAME_BYTES} B frames every {:.2} ms,",
        measured.frame_interval * 1e3
    );
    println!("{} capture, {};", said("mode"), said("clockSource"));
    println!(
        "{} cores, {}, load before {};",
        said("cores"),
        said("cpu"),
        said("loadBefore")
    );
    println!("programs: {}; {}.", said("programs"), said("where"));
    println!(
        "\n{:<42} {:>5} {:>8} {:>8} {:>8} {:>8}   clocks",
        "milliseconds", "jobs", "p50", "p95", "min", "max"
    );
    for (title, spans) in [
        ("", &WHOLE[..]),
        ("on the way", &REACHED[..]),
        ("parts", &PARTS[..]),
    ] {
        if !title.is_empty() {
            println!("{title}");
        }
        for s in statistics(&measured.rounds, spans) {
            println!(
                "{:<42} {:>5} {:>8.1} {:>8.1} {:>8.1} {:>8.1}   {}",
                s.what, s.jobs, s.p50_ms, s.p95_ms, s.min_ms, s.max_ms, s.clocks
            );
        }
    }
    println!(
        "\n{:<42} {:>9} {:>9} {:>9}",
        "resident memory, KiB", "idle", "now", "peak"
    );
    for (program, now) in &measured.worked {
        let idle = measured.idle.get(program).map_or(0, |r| r.current_kib);
        println!(
            "{program:<42} {idle:>9} {:>9} {:>9}",
            now.current_kib, now.peak_kib
        );
    }
    for (program, top) in passing(&measured.rounds) {
        let name = format!("{program} (highest of all jobs)");
        println!("{name:<42} {:>9} {:>9} {:>9}", "-", top.current_kib, top.peak_kib);
    }
    for (key, what) in document["conditions"]["resolution"]
        .as_object()
        .into_iter()
        .flatten()
    {
        println!("  {key}: {}", what.as_str().unwrap_or_default());
    }
    for what in document["conditions"]["notMeasured"]
        .as_array()
        .into_iter()
        .flatten()
    {
        println!("  not measured: {}", what.as_str().unwrap_or_default());
    }
}
