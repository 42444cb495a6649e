//! Progress of long work: a bar on a terminal, plain lines elsewhere. Always on standard error.

use std::{
    io::IsTerminal,
    sync::atomic::{AtomicU64, Ordering},
};

use indicatif::{ProgressBar, ProgressStyle};

use crate::table::bytes;

/// How work on a number of bytes is shown.
pub struct Progress {
    bar: Option<ProgressBar>,
    what: &'static str,
    total: AtomicU64,
    /// Tenths that a plain line was written for.
    told: AtomicU64,
}

impl Progress {
    pub fn bytes(what: &'static str) -> Self {
        let bar = std::io::stderr().is_terminal().then(ProgressBar::no_length);
        if let Some(bar) = &bar {
            bar.set_message(what);
        }
        Self {
            bar,
            what,
            total: AtomicU64::new(0),
            told: AtomicU64::new(0),
        }
    }

    /// An attempt begins at byte `at` of `total`, where that is known.
    pub fn begin(&self, at: u64, total: Option<u64>) {
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
        match (&self.bar, total) {
            (Some(bar), Some(total)) => {
                bar.set_style(style(
                    "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}",
                ));
                bar.set_length(total);
                bar.set_position(at);
            }
            (Some(bar), None) => {
                bar.set_style(style("{msg} {spinner} {binary_bytes} {binary_bytes_per_sec}"));
                bar.set_position(at);
            }
            (None, Some(total)) if at > 0 => {
                eprintln!("{}: going on at {} of {}", self.what, bytes(at), bytes(total));
            }
            (None, Some(total)) => eprintln!("{}: {}", self.what, bytes(total)),
            (None, None) => {}
        }
    }

    pub fn at(&self, position: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
            return;
        }
        let total = self.total.load(Ordering::Relaxed);
        // Small files need no lines in between.
        let tenth = if total >= 64 << 20 {
            position.saturating_mul(10) / total
        } else {
            0
        };
        if tenth > self.told.fetch_max(tenth, Ordering::Relaxed) {
            eprintln!("{}: {} of {}", self.what, bytes(position), bytes(total));
        }
    }

    /// A line beside the progress.
    pub fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // A failure is reported on a clean line.
        self.finish();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
