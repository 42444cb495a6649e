//! `dev/bench watch|capture|needle|afpacket|ladder`: captured beside tcpdump, dumpcap and netsniff-ng, in interleaved rounds of
//! one run.
//!
//! Live frames go through a veth pair whose receiving end has a NAPI thread of its own. That thread and the receiver share
//! one core, the generator has another. Counted are the packets in the files that were written, and for `watch` what
//! captured counts; CPU is the run time of all threads of the process and, apart from it, that of the NAPI thread.

mod areas;
mod daemon;
mod ladder;
mod measure;
mod report;
mod tools;
mod world;

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Measures captured beside its peers.
#[derive(Debug, Parser)]
struct Arguments {
    /// What to measure.
    #[arg(value_enum)]
    area: areas::Area,
    /// The program to measure.
    #[arg(long)]
    captured: PathBuf,
    /// JSON file to write.
    #[arg(long)]
    output: PathBuf,
    /// Interleaved rounds, of which the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds that each run sends for.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Frame sizes without checksum.
    #[arg(long, value_delimiter = ',', default_value = "60,512,1500")]
    sizes: Vec<usize>,
    /// Frames offered each second; as many as the generator makes without it.
    #[arg(long)]
    rate: Option<u64>,
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let world = world::World::new()?;
    let conditions = report::Conditions::now()?;
    conditions.print();
    if arguments.area == areas::Area::Ladder {
        let rungs = ladder::run(&arguments, &world)?;
        ladder::print(&rungs);
        return report::write(&rungs, &conditions, &arguments);
    }
    let rows = areas::run(&arguments, &world)?;
    report::print(&rows, &arguments);
    report::write(&rows, &conditions, &arguments)
}
