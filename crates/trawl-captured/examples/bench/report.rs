//! The table on the terminal and the JSON file.

use serde::Serialize;
use serde_json::json;

use crate::areas::{Against, Row};
use crate::{Arguments, Outcome};

/// What else a figure depends on.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Conditions {
    kernel: String,
    cores: usize,
    /// Of the last minute, before it began: what else ran.
    load: f64,
    tools: Vec<String>,
}

impl Conditions {
    pub fn now() -> Outcome<Self> {
        let load = std::fs::read_to_string("/proc/loadavg")?;
        let first = |command: &str, argument: &str| {
            let output = std::process::Command::new(command).arg(argument).output().ok()?;
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text).into_owned();
            text.lines()
                .find(|line| line.chars().any(|c| c.is_ascii_digit()))
                .map(str::trim)
                .map(str::to_owned)
        };
        let tools = [
            ("tcpdump", "--version"),
            ("dumpcap", "--version"),
            ("netsniff-ng", "--version"),
        ];
        Ok(Self {
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?
                .trim()
                .to_owned(),
            cores: std::thread::available_parallelism()?.get(),
            load: load
                .split(' ')
                .next()
                .and_then(|n| n.parse().ok())
                .unwrap_or(f64::NAN),
            tools: tools
                .iter()
                .filter_map(|(command, argument)| first(command, argument))
                .collect(),
        })
    }

    pub fn print(&self) {
        println!(
            "Linux {}, {} cores, load {} before it began; {}",
            self.kernel,
            self.cores,
            self.load,
            self.tools.join("; ")
        );
        if self.load > 0.3 {
            println!("others use this machine: judge by the ratios, and again when it is quiet");
        }
    }
}

pub fn print(rows: &[Row], arguments: &Arguments) {
    println!(
        "\nmedians of {} interleaved rounds of {} s; kpps until the receiver had written all it had; CPU in ns for each packet",
        arguments.rounds, arguments.seconds
    );
    println!(
        "| bytes | what | receiver | offered kpps | reached kpps | kpps | kept | process CPU | with sha256sum | with kernel's | to best peer | CPU | with sha256sum | with kernel's | goals |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for row in rows {
        let against = row
            .against_best
            .as_ref()
            .map_or_else(|| "- | - | - | - | -".into(), verdict);
        println!(
            "| {} | {} | {} | {:.0} | {:.0} | {:.0} | {:.0} % | {:.0} | {:.0} | {:.0} | {against} |",
            row.bytes,
            row.what,
            row.receiver,
            row.offered_per_second / 1e3,
            row.reached_per_second / 1e3,
            row.packets_per_second / 1e3,
            row.kept * 100.0,
            row.process_ns_each,
            row.process_and_hash_ns_each,
            row.process_and_kernel_ns_each,
        );
    }
}

fn verdict(against: &Against) -> String {
    let word = |met: bool| if met { "met" } else { "missed" };
    let mut goals = format!(
        "packets >= {} {}",
        against.goal.packets,
        word(against.packets_met)
    );
    if let Some((goal, met)) = against.goal.process_cpu.zip(against.cpu_met) {
        goals.push_str(&format!(", CPU <= {goal} {}", word(met)));
    }
    format!(
        "**{:.2}** | {:.2} | {:.2} | {:.2} | {goals}",
        against.packets, against.process_cpu, against.hashed_cpu, against.all_cpu
    )
}

pub fn write(rows: &impl Serialize, conditions: &Conditions, arguments: &Arguments) -> Outcome<()> {
    if let Some(directory) = arguments.output.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let report = json!({
        "area": arguments.area.name(), "conditions": conditions, "rounds": arguments.rounds,
        "seconds": arguments.seconds, "rate": arguments.rate, "rows": rows,
    });
    std::fs::write(&arguments.output, serde_json::to_vec_pretty(&report)?)?;
    println!("written to {}", arguments.output.display());
    Ok(())
}
