//! What a recording says while it runs and when it is over.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use tokio::time::{Interval, interval};
use trawl_control::StopReason;

use super::Outcome;
use crate::cli::RecordArgs;
use crate::generate;
use crate::quantity::{seconds, show};
use crate::tell;

/// A line that is redrawn on a terminal every second, and a new one every five seconds in a pipe.
pub(crate) struct Progress {
    terminal: bool,
    began: Instant,
    ticks: Interval,
}

impl Progress {
    pub async fn begin() -> Self {
        let terminal = stderr().is_terminal();
        let mut ticks = interval(Duration::from_secs(if terminal { 1 } else { 5 }));
        ticks.tick().await;
        Self {
            terminal,
            began: Instant::now(),
            ticks,
        }
    }

    pub async fn due(&mut self) {
        self.ticks.tick().await;
    }

    pub fn show(&self, packets: u64, bytes: u64) {
        let line = format!(
            "{:>5.0} s  {packets} packets  {}",
            self.began.elapsed().as_secs_f64(),
            show(bytes)
        );
        if self.terminal {
            tell::redraw(&line);
        } else {
            tell::line(&line);
        }
    }

    pub fn end(&self) {
        if self.terminal {
            tell::line("");
        }
    }
}

/// The last words, on standard output.
pub(super) fn print(args: &RecordArgs, outcome: &Outcome) {
    let ended = &outcome.ended;
    let why = match ended.stop_reason {
        StopReason::Duration => "the duration is over",
        StopReason::Size => {
            "the next packet would not have fitted into --max-size; it counts as lost by the writer"
        }
        StopReason::Cancelled => "it was interrupted; the file is finished",
        StopReason::Error => ended.message.as_deref().unwrap_or("of an error"),
    };
    let mut text = format!(
        "{}: {} packets, {}\nended because {why}\n",
        args.output.display(),
        ended.packets,
        show(ended.bytes)
    );
    if outcome.pre_asked_ns > 0 {
        text += &before_the_trigger(outcome);
    }
    text += &format!("{}\nsha256 {}\n", ended.balance, ended.sha256);
    let _ = generate::print(text.as_bytes());
}

fn before_the_trigger(outcome: &Outcome) -> String {
    let (asked, covered) = (seconds(outcome.pre_asked_ns), seconds(outcome.pre_covered_ns));
    if outcome.pre_covered_ns >= outcome.pre_asked_ns {
        format!("begins {covered} before the trigger, as asked\n")
    } else {
        format!(
            "begins {covered} before the trigger, not {asked}: no more was held; {}\n",
            outcome.advice
        )
    }
}
