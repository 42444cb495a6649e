//! `trawl-testbed traffic`.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use crate::cli::{SenderKind, TrafficArgs};
use crate::datagram::DatagramSender;
use crate::frame::{Shape, Template};
use crate::pace::{self, Plan, Sent};
use crate::replay::{Replayed, replay};
use crate::ring::live::Live;
use crate::ring::packet::{self, PacketSender};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    packets: u64,
    seconds: f64,
    packets_per_second: f64,
    /// What was numbered; absent when a file was sent.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    numbers: Option<Numbers>,
    /// Packets of the file that are in it in part only.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<u64>,
    /// What the interface's own counter rose by, from whatever sender; absent when it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    interface_sent: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Numbers {
    stream: u16,
    first_number: u64,
}

pub(crate) fn run(args: &TrafficArgs) -> anyhow::Result<ExitCode> {
    let before = transmitted(args);
    let (sent, cut) = match &args.replay {
        Some(file) => replayed(args, file).map(|r| (r.sent, Some(r.cut)))?,
        None => numbered(args).map(|sent| (sent, None))?,
    };
    let after = transmitted(args);
    let report = Report {
        packets: sent.frames,
        seconds: sent.took.as_secs_f64(),
        packets_per_second: sent.frames as f64 / sent.took.as_secs_f64().max(1e-9),
        numbers: args.replay.is_none().then_some(Numbers {
            stream: args.stream,
            first_number: args.first,
        }),
        cut,
        interface_sent: before
            .zip(after)
            .map(|(before, after)| after.saturating_sub(before)),
    };
    print(&report, args.json)?;
    Ok(ExitCode::SUCCESS)
}

fn numbered(args: &TrafficArgs) -> anyhow::Result<Sent> {
    let shape = Shape {
        stream: args.stream,
        flows: args.flows,
        needle_every: args.needle,
        encapsulation: args.vlan.or(args.qinq).or(args.vxlan).unwrap_or_default(),
    };
    let bounded = args.count.is_some() || args.duration.is_some();
    let duration = if bounded {
        args.duration
    } else {
        Some(Duration::from_secs(10))
    };
    let plan = plan(args, duration);
    match (args.from.as_ref().zip(args.to.as_ref()), args.sender) {
        (Some((from, to)), _) => {
            let sender = DatagramSender::open(from, to)?;
            each_batch(args, shape, &plan, |frames| sender.send(frames))
        }
        (None, SenderKind::Datagram) => anyhow::bail!("--sender datagram needs --from and --to"),
        (None, SenderKind::Live) => live(args, shape, &plan),
        (None, SenderKind::Packet) => packets(args, shape, &plan),
    }
}

fn plan(args: &TrafficArgs, duration: Option<Duration>) -> Plan {
    Plan {
        count: args.count,
        duration,
        rate: args.rate.and_then(|rate| rate.0),
    }
}

fn interface(args: &TrafficArgs) -> &str {
    args.interface.as_deref().unwrap_or_default()
}

fn live(args: &TrafficArgs, shape: Shape, plan: &Plan) -> anyhow::Result<Sent> {
    let sizes = args.sizes(shape.encapsulation);
    let live = Live::open(interface(args), shape, &sizes, args.first, plan.rate);
    let sent = live.and_then(|live| live.send(plan.count, plan.duration));
    sent.with_context(|| format!("cannot send live frames out of {}", interface(args)))
}

fn packets(args: &TrafficArgs, shape: Shape, plan: &Plan) -> anyhow::Result<Sent> {
    let sender = open(args)?;
    each_batch(args, shape, plan, |frames| {
        let sent = sender.send(frames);
        sent.with_context(|| {
            format!(
                "cannot send out of {}; is a frame longer than its MTU?",
                interface(args)
            )
        })
    })
}

fn open(args: &TrafficArgs) -> anyhow::Result<PacketSender> {
    let sender = PacketSender::open(interface(args), !args.qdisc);
    sender.with_context(|| format!("cannot open {} for sending", interface(args)))
}

/// Numbers frames and hands them over, as many at a time as are due.
fn each_batch(
    args: &TrafficArgs,
    shape: Shape,
    plan: &Plan,
    mut send: impl FnMut(&[&[u8]]) -> anyhow::Result<()>,
) -> anyhow::Result<Sent> {
    let sizes = args.sizes(shape.encapsulation);
    let templates = sizes.iter().map(|size| Template::new(shape, *size));
    let mut templates = templates.collect::<Result<Vec<_>, _>>()?;
    let mut number = args.first;
    let mut frames = vec![vec![]; packet::BATCH];
    pace::carry_out(plan, packet::BATCH as u32, |count| {
        for frame in &mut frames[..count as usize] {
            let at = (number % templates.len() as u64) as usize;
            frame.clear();
            frame.extend_from_slice(templates[at].number(number));
            number = number.wrapping_add(1);
        }
        let frames: Vec<&[u8]> = frames[..count as usize].iter().map(Vec::as_slice).collect();
        send(&frames)
    })
}

fn replayed(args: &TrafficArgs, path: &Path) -> anyhow::Result<Replayed> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let (plan, original) = (plan(args, args.duration), args.rate.is_none());
    replay(
        &open(args)?,
        BufReader::with_capacity(1 << 20, file),
        &plan,
        original,
    )
    .with_context(|| format!("cannot send the packets of {}", path.display()))
}

/// The interface's own count of sent packets. `/sys` may show another network namespace, `/proc/thread-self` does not.
fn transmitted(args: &TrafficArgs) -> Option<u64> {
    let name = args.interface.as_deref()?;
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    let line = table
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().nth(9)?.parse().ok()
}

fn print(report: &Report, json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string(report)?);
        return Ok(());
    }
    println!(
        "sent {} packets in {:.2} s, {:.0} a second",
        report.packets, report.seconds, report.packets_per_second
    );
    if let Some(numbers) = &report.numbers {
        println!(
            "stream {}, numbers from {} on",
            numbers.stream, numbers.first_number
        );
    }
    if let Some(cut) = report.cut.filter(|cut| *cut > 0) {
        println!("{cut} of them are in the file in part only, and went out short");
    }
    if let Some(counted) = report.interface_sent {
        println!("the interface counted {counted} as sent");
    }
    Ok(())
}
