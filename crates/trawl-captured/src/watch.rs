//! `trawl-captured watch`: what arrives, what is lost, what is held, once a second.

use std::collections::HashMap;
use std::io::{IsTerminal, stdout};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};
use trawl_control::{AttachmentStatus, Client, TapIdentity};
use trawl_dataplane::clock;

use crate::attachment::{Attachment, Inheritance, Need};
use crate::cli::WatchArgs;
use crate::tell::{self, tell};
use crate::view::{self, Row};
use crate::{daemon, generate, open};

const LOOK: Duration = Duration::from_secs(1);
const LOOKS_PER_NIC_LOOK: u64 = 10;

/// Where the numbers come from.
enum Eye {
    /// Everything that the daemon has attached, or one interface of it.
    Daemon(Client, Option<u32>),
    /// An interface that was opened for this.
    Own(Box<Attachment>),
}

pub(crate) async fn run(args: WatchArgs) -> anyhow::Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut eye = open_eye(&args).await?;
    let screen = stdout().is_terminal() && !args.json;
    let (began, mut before) = (Instant::now(), HashMap::new());
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut over = pin!(async {
        match args.length {
            Some(length) => tokio::time::sleep(length).await,
            None => std::future::pending().await,
        }
    });
    for look in 0u64.. {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            _ = hangup.recv() => break,
            () = &mut over => break,
        }
        let statuses = eye.look(look).await?;
        let rows = rows(&statuses, &mut before, began.elapsed());
        // The first look only says what to count from.
        if look == 0 && !screen {
            continue;
        }
        if !show(&args, screen, &rows)? {
            break;
        }
    }
    if let Eye::Own(attachment) = eye {
        tokio::task::spawn_blocking(move || attachment.shut("watching ended")).await?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn open_eye(args: &WatchArgs) -> anyhow::Result<Eye> {
    let client = Client::new(&args.daemon.socket).with_answer_timeout(Duration::from_secs(5));
    let Some(name) = &args.interface else {
        client.status().await?;
        return Ok(Eye::Daemon(client, None));
    };
    if let Some(found) = daemon::attachment_on(&client, name).await {
        tell!(
            "{name} is attached by the daemon, for tap {}; this is what it counts",
            found.tap.name
        );
        return Ok(Eye::Daemon(client, Some(found.ifindex)));
    }
    let opened = Attachment::open_beside(
        own_identity(),
        daemon::source(name, args.node),
        open::ring_options(&args.ring),
        Inheritance::default(),
    );
    let attachment = opened.await.map_err(|refusal| anyhow!(refusal.message))?;
    Ok(Eye::Own(Box::new(attachment)))
}

/// Nobody's tap: an interface that one command opens for itself.
pub(crate) fn own_identity() -> TapIdentity {
    TapIdentity {
        namespace: String::new(),
        name: "trawl-captured".into(),
        uid: String::new(),
    }
}

impl Eye {
    async fn look(&mut self, number: u64) -> anyhow::Result<Vec<AttachmentStatus>> {
        match self {
            Self::Daemon(client, only) => {
                let mut all = client.status().await?.attachments;
                if let Some(index) = only {
                    all.retain(|a| a.ifindex == *index);
                }
                Ok(all)
            }
            Self::Own(attachment) => {
                if number.is_multiple_of(LOOKS_PER_NIC_LOOK) {
                    tokio::task::block_in_place(|| attachment.look_at_nic());
                }
                match tokio::task::block_in_place(|| attachment.look()) {
                    Need::Reopen(why) => self.reopen(&why).await,
                    Need::Nothing => Ok(vec![attachment.status()]),
                }
            }
        }
    }

    async fn reopen(&mut self, why: &str) -> anyhow::Result<Vec<AttachmentStatus>> {
        let Self::Own(attachment) = self else {
            return Ok(vec![]);
        };
        tell::line(why);
        let (source, ring, inherited) = (
            attachment.source.clone(),
            attachment.ring,
            attachment.inheritance(),
        );
        tokio::task::block_in_place(|| attachment.shut(why));
        let opened = Attachment::open_beside(own_identity(), source, ring, inherited);
        **attachment = opened.await.map_err(|refusal| anyhow!(refusal.message))?;
        Ok(vec![attachment.status()])
    }
}

type Before = HashMap<(TapIdentity, u64), (Duration, u64, u64)>;

/// Rates since the look before, per attachment and opening of it.
fn rows(statuses: &[AttachmentStatus], before: &mut Before, now: Duration) -> Vec<Row> {
    let mut seen = HashMap::new();
    let time_ns = clock::realtime_ns();
    let rows = statuses.iter().map(|status| {
        let key = (status.tap.clone(), status.attached_at_ns);
        let (packets, bytes) = (status.counters.packets, status.counters.bytes);
        let rate = before.get(&key).map(|(then, p, b)| {
            let seconds = (now - *then).as_secs_f64().max(0.001);
            let per_second = |n: u64, was: u64| n.saturating_sub(was) as f64 / seconds;
            (per_second(packets, *p), per_second(bytes, *b) * 8.0)
        });
        seen.insert(key, (now, packets, bytes));
        Row::new(time_ns, status, rate)
    });
    let rows = rows.collect();
    *before = seen;
    rows
}

/// False when nobody reads it any more.
fn show(args: &WatchArgs, screen: bool, rows: &[Row]) -> anyhow::Result<bool> {
    let text = if args.json {
        let lines: Result<Vec<_>, _> = rows.iter().map(serde_json::to_string).collect();
        lines?.iter().map(|line| format!("{line}\n")).collect()
    } else if screen {
        format!("\x1b[H\x1b[J{}", view::picture(rows))
    } else {
        view::lines(rows)
    };
    generate::write(text.as_bytes())
}
