//! The moment that a recording is about, and the wish to end it.

use std::io::{BufRead, IsTerminal, stdin};
use std::time::Duration;

use anyhow::bail;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use trawl_dataplane::clock;

use crate::cli::RecordArgs;
use crate::quantity::seconds;
use crate::tell::tell;

/// The signals that a recording listens to, from before it opens anything.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal went: what was recorded so far is worth as much as before.
    hangup: Signal,
    user: Signal,
}

impl Signals {
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    /// Returns when the recording is to end.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }

    /// Waits for the trigger; its moment in nanoseconds since the epoch. `filling` is how long packets have to be held
    /// first when nobody pulls it.
    pub async fn trigger(&mut self, args: &RecordArgs, filling: Duration) -> anyhow::Result<u64> {
        if args.wait {
            self.pulled(args).await?;
        } else if !filling.is_zero() {
            tell!(
                "nothing from before is held, so packets are held from now on and the recording begins in {}",
                seconds(filling.as_nanos() as u64)
            );
            tokio::select! {
                () = tokio::time::sleep(filling) => {}
                () = self.stop() => bail!("interrupted before the trigger; nothing was recorded"),
            }
        }
        Ok(clock::realtime_ns())
    }

    async fn pulled(&mut self, args: &RecordArgs) -> anyhow::Result<()> {
        let key = if stdin().is_terminal() {
            "press Enter or "
        } else {
            ""
        };
        tell!(
            "waiting for the trigger: {key}kill -USR1 {}; the file will begin {} before it and end {} after it",
            std::process::id(),
            seconds(args.pre.as_nanos() as u64),
            seconds(args.duration.as_nanos() as u64)
        );
        let mut lines = lines_of_stdin();
        tokio::select! {
            Some(()) = lines.recv() => return Ok(()),
            _ = self.user.recv() => return Ok(()),
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
        bail!("interrupted before the trigger; nothing was recorded")
    }
}

/// A line is a trigger, the end of the input is none. A thread of its own, since a read cannot be taken back.
fn lines_of_stdin() -> mpsc::UnboundedReceiver<()> {
    let (line, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        if stdin().lock().read_line(&mut text).is_ok() && text.ends_with('\n') {
            let _ = line.send(());
        }
    });
    lines
}
