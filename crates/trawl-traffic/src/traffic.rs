//! `trawl-testbed traffic`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use crate::cli::{SenderKind, TrafficArgs};
use crate::frame::{Shape, Template};
use crate::pace::{self, Plan, Sent};
use crate::ring::live::Live;
use crate::ring::packet::{self, PacketSender};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    stream: u16,
    first_number: u64,
    packets: u64,
    seconds: f64,
    packets_per_second: f64,
    /// What the interface's own counter rose by, from whatever sender; absent when it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    interface_sent: Option<u64>,
}

pub(crate) fn run(args: &TrafficArgs) -> anyhow::Result<ExitCode> {
    let shape = shape(args);
    let plan = plan(args);
    let before = transmitted(&args.interface);
    let sent = match args.sender {
        SenderKind::Live => live(args, shape, &plan),
        SenderKind::Packet => packets(args, shape, &plan),
    }
    .with_context(|| format!("cannot send out of {}", args.interface))?;
    let after = transmitted(&args.interface);
    print(
        &Report {
            stream: args.stream,
            first_number: args.first,
            packets: sent.frames,
            seconds: sent.took.as_secs_f64(),
            packets_per_second: sent.frames as f64 / sent.took.as_secs_f64().max(1e-9),
            interface_sent: before
                .zip(after)
                .map(|(before, after)| after.saturating_sub(before)),
        },
        args.json,
    )?;
    Ok(ExitCode::SUCCESS)
}

fn shape(args: &TrafficArgs) -> Shape {
    Shape {
        stream: args.stream,
        flows: args.flows,
        needle_every: args.needle,
        encapsulation: args.vlan.or(args.qinq).or(args.vxlan).unwrap_or_default(),
    }
}

fn plan(args: &TrafficArgs) -> Plan {
    let bounded = args.count.is_some() || args.duration.is_some();
    Plan {
        count: args.count,
        duration: if bounded {
            args.duration
        } else {
            Some(Duration::from_secs(10))
        },
        rate: args.rate,
    }
}

fn live(args: &TrafficArgs, shape: Shape, plan: &Plan) -> anyhow::Result<Sent> {
    let live = Live::open(
        &args.interface,
        shape,
        &args.size.list(shape.encapsulation),
        args.first,
        plan.rate,
    )?;
    Ok(live.send(plan.count, plan.duration)?)
}

fn packets(args: &TrafficArgs, shape: Shape, plan: &Plan) -> anyhow::Result<Sent> {
    let sender = PacketSender::open(&args.interface, !args.qdisc)?;
    let sizes = args.size.list(shape.encapsulation);
    let templates = sizes.iter().map(|size| Template::new(shape, *size));
    let mut templates = templates.collect::<Result<Vec<_>, _>>()?;
    let mut number = args.first;
    let mut frames = vec![vec![]; packet::BATCH];
    let sent = pace::carry_out(plan, packet::BATCH as u32, |count| {
        for frame in &mut frames[..count as usize] {
            let at = (number % templates.len() as u64) as usize;
            frame.clear();
            frame.extend_from_slice(templates[at].number(number));
            number = number.wrapping_add(1);
        }
        let frames: Vec<&[u8]> = frames[..count as usize].iter().map(Vec::as_slice).collect();
        sender.send(&frames)
    })?;
    Ok(sent)
}

/// The interface's own count of sent packets. `/sys` may show another network namespace, `/proc/thread-self` does not.
fn transmitted(interface: &str) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    let line = table
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().nth(9)?.parse().ok()
}

fn print(report: &Report, json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string(report)?);
        return Ok(());
    }
    println!(
        "stream {}: sent {} packets from number {} on in {:.2} s, {:.0} a second",
        report.stream, report.packets, report.first_number, report.seconds, report.packets_per_second
    );
    if let Some(counted) = report.interface_sent {
        println!("the interface counted {counted} as sent");
    }
    Ok(())
}
