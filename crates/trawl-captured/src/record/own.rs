//! Recording from an interface that is opened for it.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::sync::oneshot;
use tokio::time::interval;
use trawl_control::{Ended, StopReason};
use trawl_dataplane::ring::device;
use trawl_dataplane::{CaptureSpec, Running, clock};

use super::report::Progress;
use super::trigger::Signals;
use super::{Outcome, Prepared};
use crate::attachment::{Attachment, Inheritance, Need};
use crate::cli::RecordArgs;
use crate::open::{self, APPLICATION};
use crate::tell::tell;
use crate::{daemon, watch};

/// How often the interface is looked at while it is recorded.
const LOOK: Duration = Duration::from_secs(1);

pub(super) async fn record(prepared: Prepared) -> anyhow::Result<(RecordArgs, Outcome)> {
    let Prepared { args, file, compiled } = prepared;
    let mut signals = Signals::new()?;
    let attachment = open_interface(&args).await?;
    let listening_since_ns = clock::realtime_ns();
    notes(&attachment);
    let trigger_ns = signals.trigger(&args, args.pre).await?;
    let pre_asked_ns = args.pre.as_nanos() as u64;
    let spec = CaptureSpec {
        filter: compiled.filter,
        filter_text: args.filter.clone().unwrap_or_default(),
        duration_ns: args.duration.as_nanos().try_into().unwrap_or(u64::MAX),
        max_size: args.max_size,
        snaplen: args.snaplen,
        comments: vec![],
        interface: args.interface.to_string(),
        application: APPLICATION.into(),
        speed: device::speed(&args.interface),
        trigger_ns: Some(trigger_ns),
        pre_trigger_ns: pre_asked_ns,
    };
    let (on_end, ended) = oneshot::channel();
    let running = attachment
        .engine
        .capture(spec, file, Box::new(move |e| drop(on_end.send(e))))?;
    tell!(
        "recording {} ({}) into {}; Ctrl-C ends it early",
        args.interface,
        attachment.engine.mode().as_str(),
        args.output.display()
    );
    let covered = trigger_ns.saturating_sub(running.covered_from_ns);
    let ended = follow(&attachment, &running, ended, &mut signals).await?;
    tokio::task::spawn_blocking(move || attachment.shut("the recording is over")).await?;
    let outcome = Outcome {
        ended,
        pre_asked_ns,
        pre_covered_ns: covered,
        advice: if running.covered_from_ns <= listening_since_ns {
            "it had not listened for longer; start it earlier"
        } else {
            "more memory holds more: --history"
        },
    };
    Ok((args, outcome))
}

async fn open_interface(args: &RecordArgs) -> anyhow::Result<Attachment> {
    let opened = Attachment::open_beside(
        watch::own_identity(),
        daemon::source(&args.interface, args.node),
        open::ring_options(&args.ring),
        Inheritance::default(),
    );
    let opened = opened.await.map_err(|refusal| anyhow!(refusal.message));
    if args.node {
        opened
    } else {
        opened.context("without --node")
    }
}

fn notes(attachment: &Attachment) {
    let status = attachment.status();
    for refusal in &status.mode_refusals {
        tell!("note: {refusal}");
    }
    if let Some(problem) = &status.problem {
        tell!("note: {problem}; nothing arrives until then");
    }
    for verdict in status
        .nic
        .iter()
        .filter(|v| v.state == trawl_control::NicState::Wrong)
    {
        tell!("note: {}", verdict.consequence);
    }
}

async fn follow(
    attachment: &Attachment,
    running: &Running,
    mut ended: oneshot::Receiver<Ended>,
    signals: &mut Signals,
) -> anyhow::Result<Ended> {
    let mut progress = Progress::begin().await;
    let mut looks = interval(LOOK);
    let mut stopping = false;
    let mut stop = pin!(signals.stop());
    loop {
        tokio::select! {
            result = &mut ended => {
                progress.end();
                return result.context("the writer ended unexpectedly");
            }
            () = &mut stop, if !stopping => {
                stopping = true;
                attachment.engine.cancel(running.id, StopReason::Cancelled, None);
            }
            _ = looks.tick() => {
                let need = tokio::task::block_in_place(|| attachment.look());
                if let Need::Reopen(why) = need {
                    attachment.engine.end_captures(&why);
                }
            }
            () = progress.due() => {
                let (packets, bytes) = running.written();
                progress.show(packets, bytes);
            }
        }
    }
}
