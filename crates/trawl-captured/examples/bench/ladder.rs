//! The rate at which each receiver begins to lose: all climb the same ladder of rates, and leave it where they fall.

use std::time::Duration;

use serde::Serialize;

use crate::measure::{Case, Receiver, measure};
use crate::tools::{PEERS, Tool};
use crate::world::World;
use crate::{Arguments, Outcome};

/// More than this share of the frames missing is a loss; less is a receiver that was ended a moment early.
const LOSS: f64 = 0.0005;
/// Each rung is higher than the one before by this factor.
const STEP: f64 = 1.15;
const FIRST: f64 = 100_000.0;
/// No wire and no generator here goes further.
const LAST: f64 = 3_000_000.0;
/// A rung is lost after so many losses on it, so that one disturbance throws nobody off.
const TRIES: usize = 3;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rung {
    pub bytes: usize,
    pub receiver: String,
    /// Highest rate without loss; absent when the first was too much.
    pub lossless_per_second: Option<f64>,
    /// CPU of the process there.
    pub process_ns_each: Option<f64>,
    pub process_and_kernel_ns_each: Option<f64>,
    /// Against the best peer; absent for peers.
    pub against_best: Option<f64>,
}

struct Climber {
    receiver: Receiver,
    standing: bool,
    rung: Rung,
}

pub fn run(arguments: &Arguments, world: &World) -> Outcome<Vec<Rung>> {
    let mut rungs = vec![];
    for size in &arguments.sizes {
        let mut climbers: Vec<Climber> = PEERS
            .into_iter()
            .chain([Tool::Record])
            .map(|t| climber(t, *size))
            .collect();
        let mut rate = FIRST;
        while rate <= LAST && climbers.iter().any(|c| c.standing) {
            for climber in climbers.iter_mut().filter(|c| c.standing) {
                climb(climber, arguments, world, rate)?;
            }
            rate *= STEP;
        }
        rungs.extend(compare(climbers));
    }
    Ok(rungs)
}

fn climber(tool: Tool, bytes: usize) -> Climber {
    let receiver = Receiver::Tool(tool);
    Climber {
        receiver,
        standing: true,
        rung: Rung {
            bytes,
            receiver: receiver.name(),
            lossless_per_second: None,
            process_ns_each: None,
            process_and_kernel_ns_each: None,
            against_best: None,
        },
    }
}

fn climb(climber: &mut Climber, arguments: &Arguments, world: &World, rate: f64) -> Outcome<()> {
    let case = Case {
        size: climber.rung.bytes,
        rate: Some(rate as u64),
        time: Duration::from_secs_f64(arguments.seconds),
        filters: vec![],
        needle_every: 0,
        // The veth end has room for 256 frames: a thread that waits for its turn would lose them, which no NIC does.
        kernel_first: true,
    };
    for _ in 0..TRIES {
        let run = measure(world, &arguments.captured, climber.receiver, &case)?;
        let lost = 1.0 - run.received as f64 / run.sent.max(1) as f64;
        eprintln!(
            "{:>5} B at {:>7.0} kpps  {:<18} lost {:.2} %",
            case.size,
            rate / 1e3,
            climber.rung.receiver,
            lost * 100.0
        );
        if lost <= LOSS {
            climber.rung.lossless_per_second = Some(run.sent as f64 / run.seconds);
            climber.rung.process_ns_each = Some(run.process_ns_each());
            climber.rung.process_and_kernel_ns_each = Some(run.all_ns_each());
            return Ok(());
        }
    }
    climber.standing = false;
    Ok(())
}

fn compare(climbers: Vec<Climber>) -> Vec<Rung> {
    let is_ours = |c: &Climber| c.receiver == Receiver::Tool(Tool::Record);
    let rates = climbers
        .iter()
        .filter(|c| !is_ours(c))
        .filter_map(|c| c.rung.lossless_per_second);
    let best = rates.fold(0.0, f64::max);
    let finish = |mut climber: Climber| {
        if is_ours(&climber) {
            climber.rung.against_best = climber.rung.lossless_per_second.map(|rate| rate / best);
        }
        climber.rung
    };
    climbers.into_iter().map(finish).collect()
}

pub fn print(rungs: &[Rung]) {
    println!(
        "\nhighest rate without loss, on a ladder of steps of {:.0} %; CPU in ns for each packet there",
        (STEP - 1.0) * 100.0
    );
    println!("| bytes | receiver | kpps | process CPU | with kernel's | to best peer | goal |");
    println!("|---|---|---|---|---|---|---|");
    let number =
        |value: Option<f64>, by: f64| value.map_or_else(|| "none".into(), |v| format!("{:.0}", v / by));
    for rung in rungs {
        let verdict = match rung.against_best {
            Some(ratio) => format!(
                "**{ratio:.2}** | >= 1 {}",
                if ratio >= 1.0 { "met" } else { "missed" }
            ),
            None => "- | -".into(),
        };
        println!(
            "| {} | {} | {} | {} | {} | {verdict} |",
            rung.bytes,
            rung.receiver,
            number(rung.lossless_per_second, 1e3),
            number(rung.process_ns_each, 1.0),
            number(rung.process_and_kernel_ns_each, 1.0)
        );
    }
}
