//! Sends the packets of a file again, when they came then or at a rate.

use std::io::Read;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::file::Packets;
use crate::pace::{self, Plan, Sent};
use crate::ring::packet::{BATCH, PacketSender};

/// Packets that were sent of a file.
pub(crate) struct Replayed {
    pub sent: Sent,
    /// How many of them the file holds in part only, and which were therefore sent short.
    pub cut: u64,
}

/// Packets that wait to be sent together.
#[derive(Default)]
struct Batch {
    frames: Vec<Vec<u8>>,
    used: usize,
}

impl Batch {
    fn push(&mut self, bytes: &[u8]) {
        if self.used == self.frames.len() {
            self.frames.push(vec![]);
        }
        let frame = &mut self.frames[self.used];
        frame.clear();
        frame.extend_from_slice(bytes);
        self.used += 1;
    }

    fn send(&mut self, sender: &PacketSender) -> std::io::Result<()> {
        let frames: Vec<&[u8]> = self.frames[..self.used].iter().map(Vec::as_slice).collect();
        self.used = 0;
        sender.send(&frames)
    }
}

/// `original` keeps the time between packets, otherwise the rate of the plan holds.
pub(crate) fn replay(
    sender: &PacketSender,
    file: impl Read,
    plan: &Plan,
    original: bool,
) -> anyhow::Result<Replayed> {
    let mut packets = Packets::new(file)?;
    let (mut batch, mut cut, mut frames) = (Batch::default(), 0, 0);
    let (began, mut first) = (Instant::now(), None);
    let over = |frames| {
        plan.count.is_some_and(|count| frames >= count) || plan.duration.is_some_and(|d| began.elapsed() >= d)
    };
    while !over(frames) {
        let Some(packet) = packets.next_packet()? else {
            break;
        };
        let due = if original {
            let stamp = packet
                .stamp_ns
                .context("a packet of the file has no stamp; name a --rate")?;
            Duration::from_nanos(stamp.saturating_sub(*first.get_or_insert(stamp)))
        } else {
            pace::due_at(plan, frames)
        };
        if batch.used == BATCH || (batch.used > 0 && due > began.elapsed()) {
            batch.send(sender)?;
        }
        pace::wait_until(began, due);
        batch.push(packet.bytes);
        frames += 1;
        cut += u64::from(packet.bytes.len() < packet.wire_length as usize);
    }
    batch.send(sender)?;
    let took = began.elapsed();
    Ok(Replayed {
        sent: Sent { frames, took },
        cut,
    })
}
