//! Recording by the daemon that has the interface open already, history included.

use std::time::Duration;

use anyhow::{anyhow, bail};
use trawl_control::{AttachmentStatus, Client, Ended, Replies, Reply, Source, Started};

use super::report::Progress;
use super::trigger::Signals;
use super::{Outcome, Prepared, request};
use crate::cli::RecordArgs;
use crate::tell::tell;

pub(super) async fn record(
    prepared: Prepared,
    client: &Client,
    attachment: &AttachmentStatus,
) -> anyhow::Result<(RecordArgs, Outcome)> {
    let Prepared { args, file, .. } = prepared;
    let mut signals = Signals::new()?;
    announce(&args, attachment);
    let trigger_ns = signals.trigger(&args, Duration::ZERO).await?;
    let mut capture = request(&args, attachment.tap.clone());
    capture.trigger_ns = Some(trigger_ns);
    let (mut replies, cancel) = client.capture(capture, &file).await?;
    let started = started(&mut replies).await?;
    let mut progress = Progress::begin().await;
    let mut written = (0, 0);
    let mut stopping = false;
    let ended = loop {
        tokio::select! {
            reply = replies.next() => match reply? {
                Some(Reply::Progress(p)) => written = (p.packets, p.bytes),
                Some(Reply::Ended(ended)) => break ended,
                _ => bail!("the daemon ended the recording without a summary"),
            },
            () = signals.stop(), if !stopping => {
                stopping = true;
                cancel.cancel()?;
            }
            () = progress.due() => progress.show(written.0, written.1),
        }
    };
    progress.end();
    Ok((args, outcome(ended, &started, attachment, trigger_ns)))
}

fn outcome(ended: Ended, started: &Started, attachment: &AttachmentStatus, trigger_ns: u64) -> Outcome {
    Outcome {
        ended,
        pre_asked_ns: trigger_ns.saturating_sub(started.requested_from_ns),
        pre_covered_ns: trigger_ns.saturating_sub(started.covered_from_ns),
        advice: if started.covered_from_ns <= attachment.attached_at_ns {
            "the daemon had not listened there for longer"
        } else {
            "the daemon holds more with `serve --history`"
        },
    }
}

fn announce(args: &RecordArgs, attachment: &AttachmentStatus) {
    tell!(
        "the daemon has {} attached ({}, tap {}) and records into {}; Ctrl-C ends it early",
        args.interface,
        attachment.mode.as_str(),
        attachment.tap.name,
        args.output.display()
    );
    let by_node = matches!(attachment.source, Source::NodeInterface(_));
    if args.node && !by_node {
        tell!(
            "note: it takes every frame away from the machine (AF_XDP), so beside it --node would see nothing"
        );
    } else if !args.node && by_node {
        tell!(
            "note: it listens beside the machine (AF_PACKET), as with --node; --alone opens the interface anew"
        );
    }
    if let Some(problem) = &attachment.problem {
        tell!("note: {problem}");
    }
}

async fn started(replies: &mut Replies) -> anyhow::Result<Started> {
    loop {
        match replies.next().await {
            Ok(Some(Reply::FilterAccepted)) => {}
            Ok(Some(Reply::Started(started))) => return Ok(started),
            Ok(_) => bail!("the daemon did not begin the recording"),
            Err(e) => return Err(anyhow!(e)),
        }
    }
}
