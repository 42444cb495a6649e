//! What each area compares, and its goals.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use crate::measure::{Case, Receiver, Run, measure};
use crate::tools::{PEERS, Tool};
use crate::world::World;
use crate::{Arguments, Outcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Area {
    Watch,
    Capture,
    Needle,
    Afpacket,
    Ladder,
}

impl Area {
    pub fn name(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Capture => "capture",
            Self::Needle => "needle",
            Self::Afpacket => "afpacket",
            Self::Ladder => "ladder",
        }
    }
}

/// At least so many packets and at most so much CPU of the process for each, both against the best peer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Goal {
    pub packets: f64,
    pub process_cpu: Option<f64>,
}

/// A line of the comparison.
struct Line {
    what: String,
    case: Case,
    receivers: Vec<Receiver>,
    goal: Goal,
}

/// What is in one row: the medians of a receiver.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub what: String,
    pub bytes: usize,
    pub receiver: String,
    pub offered_per_second: f64,
    pub reached_per_second: f64,
    pub packets_per_second: f64,
    /// Of the frames that the interface took off the wire.
    pub kept: f64,
    pub process_ns_each: f64,
    /// With `sha256sum` of the file afterwards; captured has hashed while it wrote.
    pub process_and_hash_ns_each: f64,
    pub process_and_kernel_ns_each: f64,
    /// Against the peer that is best at it; absent for peers.
    pub against_best: Option<Against>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Against {
    pub packets: f64,
    pub process_cpu: f64,
    pub hashed_cpu: f64,
    pub all_cpu: f64,
    pub goal: Goal,
    pub packets_met: bool,
    pub cpu_met: Option<bool>,
}

pub fn run(arguments: &Arguments, world: &World) -> Outcome<Vec<Row>> {
    let mut rows = vec![];
    for line in lines(arguments) {
        let mut runs = vec![vec![]; line.receivers.len()];
        for round in 0..arguments.rounds.max(1) {
            for at in 0..line.receivers.len() {
                // Another one begins each round, so that no one always follows the same.
                let at = (at + round) % line.receivers.len();
                let run = measure(world, &arguments.captured, line.receivers[at], &line.case)?;
                tell(round, &line, line.receivers[at], &run);
                runs[at].push(run);
            }
        }
        rows.extend(compare(&line, &runs));
    }
    Ok(rows)
}

fn tell(round: usize, line: &Line, receiver: Receiver, run: &Run) {
    eprintln!(
        "{:>5} B {} round {}  {:<26} {:>9.0} packets/s of {:>9.0} offered, {:>5.0} + {:>4.0} ns CPU each, {:.2} s",
        line.case.size,
        line.what,
        round + 1,
        receiver.name(),
        run.per_second(),
        run.sent as f64 / run.seconds,
        run.process_ns_each(),
        run.all_ns_each() - run.process_ns_each(),
        run.seconds,
    );
}

fn lines(arguments: &Arguments) -> Vec<Line> {
    let peers = || PEERS.map(Receiver::Tool).to_vec();
    let line = |what: &str, size, ours: Receiver, goal: Goal| Line {
        what: what.into(),
        case: Case {
            size,
            rate: arguments.rate,
            time: Duration::from_secs_f64(arguments.seconds),
            filters: vec![],
            needle_every: 0,
            kernel_first: false,
        },
        receivers: [peers(), vec![ours]].concat(),
        goal,
    };
    let sizes = arguments.sizes.iter().copied();
    match arguments.area {
        Area::Watch => sizes
            .map(|size| line("all", size, Receiver::Watch, watch_goal(size)))
            .collect(),
        Area::Capture => sizes
            .map(|size| line("all", size, Receiver::Tool(Tool::Record), CAPTURE))
            .collect(),
        Area::Afpacket => sizes
            .map(|size| line("all", size, Receiver::Tool(Tool::RecordNode), AFPACKET))
            .collect(),
        // Not a matter of rows: see `ladder`.
        Area::Ladder => vec![],
        Area::Needle => sizes
            .flat_map(|size| needles(&line("", size, Receiver::Captures, AFPACKET)))
            .collect(),
    }
}

const CAPTURE: Goal = Goal {
    packets: 1.1,
    process_cpu: Some(0.7),
};
const AFPACKET: Goal = Goal {
    packets: 1.0,
    process_cpu: None,
};

fn watch_goal(size: usize) -> Goal {
    Goal {
        packets: if size >= 1500 { 5.0 } else { 1.2 },
        process_cpu: Some(0.5),
    }
}

/// 1, 8 and 64 captures of one packet in a hundred, each with a filter of its own, and 8 with the same.
fn needles(line: &Line) -> Vec<Line> {
    const PROCESSES: usize = 16;
    let own = |i: usize| format!("udp port 9999 and not port {}", i + 1);
    let with = |what: &str, filters: Vec<String>, packets: f64| {
        let receivers = line.receivers.iter().map(|receiver| match receiver {
            Receiver::Tool(tool) if filters.len() > PROCESSES => Receiver::Limited(*tool, PROCESSES),
            other => *other,
        });
        Line {
            what: what.into(),
            receivers: receivers.collect(),
            case: Case {
                filters,
                needle_every: 100,
                ..line.case.clone()
            },
            goal: Goal {
                packets,
                process_cpu: None,
            },
        }
    };
    vec![
        with("1 needle", vec![own(0)], 1.0),
        with("8 needles", (0..8).map(own).collect(), 2.0),
        with("8 equal needles", vec![own(0); 8], 2.0),
        with("64 needles", (0..64).map(own).collect(), 2.0),
    ]
}

fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn is_peer(receiver: Receiver) -> bool {
    matches!(receiver, Receiver::Tool(tool) | Receiver::Limited(tool, _) if PEERS.contains(&tool))
}

fn compare(line: &Line, runs: &[Vec<Run>]) -> Vec<Row> {
    let row = |(receiver, runs): (&Receiver, &Vec<Run>)| Row {
        what: line.what.clone(),
        bytes: line.case.size,
        receiver: receiver.name(),
        offered_per_second: median(runs, |r| r.sent as f64 / r.seconds),
        reached_per_second: median(runs, |r| r.reached as f64 / r.seconds),
        packets_per_second: median(runs, Run::per_second),
        kept: median(runs, |r| r.received as f64 / r.reached.max(1) as f64),
        process_ns_each: median(runs, Run::process_ns_each),
        process_and_hash_ns_each: median(runs, Run::process_and_hash_ns_each),
        process_and_kernel_ns_each: median(runs, Run::all_ns_each),
        against_best: None,
    };
    let mut rows: Vec<Row> = line.receivers.iter().zip(runs).map(row).collect();
    let peers = || {
        rows.iter()
            .zip(&line.receivers)
            .filter(|(_, r)| is_peer(**r))
            .map(|(row, _)| row)
    };
    let most = peers().map(|row| row.packets_per_second).fold(0.0, f64::max);
    let least = |of: fn(&Row) -> f64| peers().map(of).fold(f64::INFINITY, f64::min);
    let (process, all) = (
        least(|r| r.process_ns_each),
        least(|r| r.process_and_kernel_ns_each),
    );
    let hashed = least(|r| r.process_and_hash_ns_each);
    for (row, _) in rows
        .iter_mut()
        .zip(&line.receivers)
        .filter(|(_, r)| !is_peer(**r))
    {
        let (packets, process_cpu) = (row.packets_per_second / most, row.process_ns_each / process);
        row.against_best = Some(Against {
            packets,
            process_cpu,
            hashed_cpu: row.process_and_hash_ns_each / hashed,
            all_cpu: row.process_and_kernel_ns_each / all,
            goal: line.goal,
            packets_met: packets >= line.goal.packets,
            cpu_met: line.goal.process_cpu.map(|goal| process_cpu <= goal),
        });
    }
    rows
}
