//! How numbers are shown: a picture for a terminal, a line for a pipe, an object for a program.

use std::fmt::Write;

use serde::Serialize;
use trawl_control::{AttachmentStatus, NicState, QueueStatus};

use crate::check;
use crate::open::spec_of;
use crate::quantity::{bits, seconds, show};

/// One attachment at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    /// Nanoseconds since the epoch.
    time_ns: u64,
    interface: String,
    /// Absent at the first look: there is nothing yet to compare with.
    packets_per_second: Option<u64>,
    bits_per_second: Option<u64>,
    /// How far back the history is complete, in seconds; absent while it is not known.
    history_seconds: Option<f64>,
    #[serde(flatten)]
    status: AttachmentStatus,
}

impl Row {
    /// `rate` is packets and bits per second.
    pub fn new(time_ns: u64, status: &AttachmentStatus, rate: Option<(f64, f64)>) -> Self {
        let held = status
            .history
            .map(|h| time_ns.saturating_sub(h.complete_from_ns) as f64 / 1e9);
        Self {
            time_ns,
            interface: spec_of(&status.source).interface.clone(),
            packets_per_second: rate.map(|(packets, _)| packets.round() as u64),
            bits_per_second: rate.map(|(_, bits)| bits.round() as u64),
            history_seconds: held,
            status: status.clone(),
        }
    }

    fn rate(&self) -> String {
        match (self.packets_per_second, self.bits_per_second) {
            (Some(p), Some(b)) => format!("{p} packets/s  {}", bits(b as f64)),
            _ => "counting".into(),
        }
    }

    fn lost(&self) -> String {
        let c = &self.status.counters;
        format!(
            "ring {}, nic {}",
            measured(c.dropped_ring),
            measured(c.dropped_nic)
        )
    }

    fn history(&self) -> String {
        match (self.history_seconds, &self.status.history) {
            (Some(held), Some(h)) => format!(
                "{} ({} packets in {})",
                seconds((held * 1e9) as u64),
                h.packets,
                show(h.budget_bytes)
            ),
            _ => "not known".into(),
        }
    }
}

/// Absent is not zero.
pub(crate) fn measured(count: Option<u64>) -> String {
    count.map_or("-".into(), |n| n.to_string())
}

/// One line for each, for a pipe.
pub(crate) fn lines(rows: &[Row]) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        text.push_str("nothing is attached\n");
    }
    for row in rows {
        let _ = write!(
            text,
            "{}  {}  {}  {}  lost: {}  history {}",
            clock_of(row.time_ns),
            row.interface,
            row.status.mode.as_str(),
            row.rate(),
            row.lost(),
            row.history()
        );
        if let Some(problem) = &row.status.problem {
            let _ = write!(text, "  PROBLEM: {problem}");
        }
        text.push('\n');
    }
    text
}

/// Everything, for a terminal that is redrawn.
pub(crate) fn picture(rows: &[Row]) -> String {
    let mut text = String::from("trawl-captured watch   (Ctrl-C ends)\n");
    if rows.is_empty() {
        text.push_str(
            "\nThe daemon has nothing attached. Name an interface with --interface to watch one yourself.\n",
        );
    }
    for row in rows {
        draw(&mut text, row);
    }
    text
}

fn draw(text: &mut String, row: &Row) {
    let s = &row.status;
    let proved = if s.mode_proved { "" } else { ", no frame yet" };
    let _ = writeln!(
        text,
        "\n{}  {}{proved}  tap {}",
        row.interface,
        s.mode.as_str(),
        s.tap.name
    );
    if let Some(problem) = &s.problem {
        let _ = writeln!(text, "  PROBLEM   {problem}");
    }
    let _ = writeln!(text, "  now       {}", row.rate());
    let _ = writeln!(
        text,
        "  in all    {} packets, {}; lost: {}",
        s.counters.packets,
        show(s.counters.bytes),
        row.lost()
    );
    let _ = writeln!(text, "  history   {}", row.history());
    if s.active_captures > 0 {
        let _ = writeln!(text, "  captures  {} under way", s.active_captures);
    }
    if s.queues.len() > 1 || s.queues.iter().any(|q| q.rebinds > 0) {
        s.queues.iter().for_each(|queue| draw_queue(text, queue));
    }
    for feed in &s.feeds {
        let problem = feed
            .problem
            .as_ref()
            .map(|p| format!("; {p}"))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "  feed      {}: {} packets, {} dropped{problem}",
            feed.interface, feed.packets, feed.dropped
        );
    }
    for refusal in &s.mode_refusals {
        let _ = writeln!(text, "  mode      {refusal}");
    }
    for verdict in s.nic.iter().filter(|v| v.state == NicState::Wrong) {
        let found = check::found(verdict);
        let _ = writeln!(
            text,
            "  NIC       {} {found}: {}",
            verdict.item, verdict.consequence
        );
    }
}

fn draw_queue(text: &mut String, queue: &QueueStatus) {
    let c = &queue.counters;
    let _ = write!(
        text,
        "  queue {:<3} {}  {} packets, {}; lost: ring {}, nic {}",
        queue.queue,
        queue.mode.as_str(),
        c.packets,
        show(c.bytes),
        measured(c.dropped_ring),
        measured(c.dropped_nic)
    );
    if queue.rebinds > 0 {
        let _ = write!(text, "; opened again {} times", queue.rebinds);
    }
    text.push('\n');
}

/// Time of day in UTC.
fn clock_of(time_ns: u64) -> String {
    let seconds = time_ns / 1_000_000_000 % 86_400;
    format!(
        "{:02}:{:02}:{:02}Z",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use trawl_control::{
        CaptureMode, Counters, HistoryStatus, InterfaceSpec, NicVerdict, Source, TapIdentity,
    };

    use super::*;

    const NOW: u64 = 1_800_000_000_000_000_000;

    fn status() -> AttachmentStatus {
        AttachmentStatus {
            tap: TapIdentity {
                namespace: "trawl-system".into(),
                name: "north".into(),
                uid: "u".into(),
            },
            source: Source::MirrorInterface(InterfaceSpec {
                interface: "mirror0".into(),
                promiscuous: true,
            }),
            ifindex: 3,
            mode: CaptureMode::ZeroCopy,
            mode_proved: true,
            mode_refusals: vec![],
            link_up: true,
            attached_at_ns: 1,
            last_packet_ns: None,
            counters: Counters {
                packets: 5000,
                bytes: 1 << 20,
                dropped_ring: Some(7),
                dropped_nic: None,
            },
            active_captures: 0,
            problem: None,
            queues: vec![],
            history: Some(HistoryStatus {
                packets: 4000,
                budget_bytes: 64 << 20,
                complete_from_ns: NOW - 2_500_000_000,
            }),
            nic: vec![],
            feeds: vec![],
        }
    }

    #[test]
    fn a_line_has_rates_losses_and_history_and_what_is_not_measured_is_no_zero() {
        let line = lines(&[Row::new(NOW, &status(), Some((1234.4, 9.5e6)))]);
        assert_eq!(
            line,
            "08:00:00Z  mirror0  zero-copy  1234 packets/s  9.5 Mbit/s  lost: ring 7, nic -  \
             history 2.5 s (4000 packets in 64.0 MiB)\n"
        );
    }

    #[test]
    fn a_picture_shows_problems_and_what_is_wrong_with_the_nic_and_not_what_is_right() {
        let verdict = |item: &str, state| NicVerdict {
            item: item.into(),
            found: Some("on".into()),
            wanted: Some("off".into()),
            state,
            consequence: format!("{item} matters."),
        };
        let mut sick = status();
        sick.problem = Some("link of mirror0 is down".into());
        sick.nic = vec![verdict("gro", NicState::Wrong), verdict("lro", NicState::Good)];
        let text = picture(&[Row::new(NOW, &sick, None)]);
        assert!(text.contains("PROBLEM   link of mirror0 is down"), "{text}");
        assert!(text.contains("gro on (right: off): gro matters."), "{text}");
        assert!(!text.contains("lro"), "{text}");
        assert!(text.contains("counting"), "{text}");
    }

    #[test]
    fn a_row_as_json_holds_the_rates_beside_the_status() {
        let row = serde_json::to_value(Row::new(NOW, &status(), Some((10.0, 80.0)))).unwrap();
        assert_eq!(row["packetsPerSecond"], 10);
        assert_eq!(row["historySeconds"], 2.5);
        assert_eq!(row["counters"]["packets"], 5000);
        assert_eq!(row["counters"]["droppedNic"], serde_json::Value::Null);
    }
}
