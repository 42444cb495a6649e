//! `trawl-captured record`: one capture on one machine.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use trawl_control::limits;
use trawl_control::{Capture, Ended, ErrorReply, InterfaceSpec, Source, StopReason, TapIdentity};
use trawl_dataplane::ring::device;
use trawl_dataplane::{CaptureSpec, Engine, InterfaceName, Running};

use crate::cli::RecordArgs;
use crate::open::{self, APPLICATION};
use crate::quantity;

/// How often the interface is looked at while it is recorded.
const LINK_INTERVAL: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: RecordArgs) -> anyhow::Result<ExitCode> {
    check(&args)?;
    let spec = specify(&args).await?;
    let engine = open_interface(&args).await?;
    let link = device::link(&args.interface)?;
    let mode = engine.mode().as_str();
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).open(&args.output);
    let file =
        file.with_context(|| format!("cannot create {}; it must not exist yet", args.output.display()))?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (on_end, ended) = oneshot::channel();
    let running = engine.capture(spec, file, Box::new(move |e| drop(on_end.send(e))))?;
    eprintln!(
        "recording {} ({mode}) into {}; Ctrl-C ends it early",
        args.interface,
        args.output.display()
    );
    for refusal in engine.mode_refusals() {
        eprintln!("note: {refusal}");
    }
    if link.is_some_and(|link| !link.up) {
        eprintln!(
            "note: link of {0} is down, so nothing arrives; set it up with `ip link set {0} up` and check the cable",
            args.interface
        );
    }
    let stop = async {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
    };
    let opened = (&args.interface, link.map(|link| link.index));
    let ended = follow(&engine, &running, opened, ended, stop).await?;
    report(&args, &ended);
    Ok(if ended.stop_reason == StopReason::Error {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}

fn check(args: &RecordArgs) -> anyhow::Result<()> {
    if args.output == Path::new("-") {
        bail!("--output: `-` is no file, and a recording is finished in its file; name one");
    }
    if args.output.symlink_metadata().is_ok() {
        bail!(
            "{} exists already and is left alone; choose another --output",
            args.output.display()
        );
    }
    let capture = Capture {
        tap: TapIdentity {
            namespace: String::new(),
            name: String::new(),
            uid: String::new(),
        },
        filter: None,
        filter_tunnels: false,
        duration_ms: args.duration.as_millis().try_into().unwrap_or(u64::MAX),
        max_size_bytes: args.max_size,
        snaplen: args.snaplen,
        trigger_ns: None,
        pre_trigger_ms: 0,
        comments: vec![],
    };
    limits::check(&capture).map_err(|refused| {
        let flag = match refused.field.as_deref() {
            Some("durationMs") => "--duration must be 1ms to 1h",
            Some("maxSizeBytes") => "--max-size must be 1Mi to 1Gi",
            _ => "--snaplen must be 0 for whole packets, or 64 to 262144",
        };
        anyhow!(flag)
    })?;
    if !args.node && device::has_address(&args.interface) {
        bail!(
            "{0} has an IP address, so this machine uses it, and AF_XDP would take its frames away; add --node",
            args.interface
        );
    }
    Ok(())
}

async fn specify(args: &RecordArgs) -> anyhow::Result<CaptureSpec> {
    let text = args.filter.clone().unwrap_or_default();
    let compiled = open::filter(text, args.tunnels).await?.context("--filter")?;
    for sentence in compiled.expansion.sentences() {
        eprintln!("filter: {sentence}");
    }
    for warning in &compiled.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(CaptureSpec {
        filter: compiled.filter,
        filter_text: args.filter.clone().unwrap_or_default(),
        trigger_ns: None,
        pre_trigger_ns: 0,
        duration_ns: args.duration.as_nanos().try_into().unwrap_or(u64::MAX),
        max_size: args.max_size,
        snaplen: args.snaplen,
        comments: vec![],
        interface: args.interface.to_string(),
        application: APPLICATION.into(),
        speed: device::speed(&args.interface),
    })
}

async fn open_interface(args: &RecordArgs) -> anyhow::Result<Engine> {
    let spec = InterfaceSpec {
        interface: args.interface.to_string(),
        promiscuous: true,
    };
    let source = if args.node {
        Source::NodeInterface(spec)
    } else {
        Source::MirrorInterface(spec)
    };
    let name = args.interface.clone();
    let opened = tokio::task::spawn_blocking(move || open::engine(&source, &name)).await?;
    opened.map_err(|ErrorReply { message, .. }| anyhow!(message))
}

/// Whether another interface has the name by now, or none. A ring says nothing of that: it only stays silent.
fn is_gone((name, index): (&InterfaceName, Option<u32>)) -> bool {
    device::link(name).is_ok_and(|link| link.map(|link| link.index) != index || index.is_none())
}

async fn follow(
    engine: &Engine,
    running: &Running,
    opened: (&InterfaceName, Option<u32>),
    mut ended: oneshot::Receiver<Ended>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<Ended> {
    let terminal = std::io::stderr().is_terminal();
    let mut ticks = tokio::time::interval(Duration::from_secs(if terminal { 1 } else { 5 }));
    ticks.tick().await;
    let mut looks = tokio::time::interval(LINK_INTERVAL);
    let began = std::time::Instant::now();
    tokio::pin!(stop);
    let mut stopping = false;
    loop {
        tokio::select! {
            result = &mut ended => {
                if terminal {
                    eprintln!();
                }
                return result.context("the writer ended unexpectedly");
            }
            () = &mut stop, if !stopping => {
                stopping = true;
                engine.cancel(running.id, StopReason::Cancelled, None);
            }
            _ = looks.tick() => {
                if is_gone(opened) {
                    engine.end_captures(&format!("interface {} is gone; it was deleted, renamed or moved away", opened.0));
                }
            }
            _ = ticks.tick() => {
                let (packets, bytes) = running.written();
                let line = format!("{:>5.0} s  {packets} packets  {}", began.elapsed().as_secs_f64(), quantity::show(bytes));
                if terminal {
                    eprint!("\r\x1b[K{line}");
                    let _ = std::io::stderr().flush();
                } else {
                    eprintln!("{line}");
                }
            }
        }
    }
}

fn report(args: &RecordArgs, ended: &Ended) {
    let why = match ended.stop_reason {
        StopReason::Duration => "the duration is over",
        StopReason::Size => "the next packet would not have fitted into --max-size",
        StopReason::Cancelled => "it was interrupted; the file is finished",
        StopReason::Error => ended.message.as_deref().unwrap_or("of an error"),
    };
    let b = &ended.balance;
    let measured = |n: Option<u64>| n.map_or("not measured".into(), |n| n.to_string());
    println!(
        "{}: {} packets, {}",
        args.output.display(),
        ended.packets,
        quantity::show(ended.bytes)
    );
    println!("ended because {why}");
    println!(
        "seen {} = matched {} + filtered {}; written {}, lost by the writer {}, lost in the ring {}, in the NIC {}",
        b.seen,
        b.matched,
        b.filtered,
        b.written,
        b.lost_writer,
        measured(b.lost_ring),
        measured(b.lost_nic)
    );
    println!("sha256 {}", ended.sha256);
}
