//! One thread per capture: blocks to file and hash in the same pass, and the summary at the end.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};

use trawl_control::{Ended, LossBalance, StopReason};

use super::OnEnd;
use super::blocks::{Blocks, Contents};
use super::output::Output;
use super::statistics::{self, Measured};
use super::window::{Ending, Window};
use crate::engine::stock::Returned;
use crate::queue::Losses;
use crate::{clock, cpu};

/// What a receive thread knows at its end of a capture.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Frames of the window that it came to.
    pub frames: u64,
    /// Those of them that the filter accepted.
    pub matched: u64,
    pub lost_history: u64,
    pub losses: Losses,
    pub clock_source: &'static str,
}

pub(crate) enum Message {
    Blocks(Blocks),
    Part(Part),
}

/// What a writer is given.
pub(crate) struct Job {
    pub file: File,
    pub header: Vec<u8>,
    pub measured: Measured,
    pub window: Arc<Window>,
    /// Where the blocks of each receive thread go back to.
    pub returns: Vec<Sender<Returned>>,
    pub on_end: OnEnd,
}

/// Starts the writer of one capture. It ends when each receive thread has sent its [`Part`].
pub(crate) fn start(job: Job) -> std::io::Result<Sender<Message>> {
    let (out, messages) = channel();
    std::thread::Builder::new()
        .name("trawl-writer".into())
        .spawn(move || {
            cpu::stand_aside();
            give_up_capabilities();
            let on_end = job.on_end;
            let writer = Writer {
                output: Output::new(job.file),
                measured: job.measured,
                window: job.window,
                returns: job.returns,
                contents: Contents::default(),
                gathered: Vec::new(),
            };
            on_end(writer.run(&job.header, &messages));
        })?;
    Ok(out)
}

/// A writer writes into a file that is open already: it needs none of what a thread of captured may do. Giving up what
/// one has cannot fail.
fn give_up_capabilities() {
    let none = rustix::thread::CapabilitySet::empty();
    let sets = rustix::thread::CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    let _ = rustix::thread::set_capabilities(None, sets);
}

/// Bytes of a held packet, on average, from which on it is written from where it was received. Smaller ones are gathered:
/// that costs less than the kernel's work for a part of a write, and they go back before the hash and the write.
const WORTH_A_PART: usize = 1024;

struct Writer {
    output: Output,
    measured: Measured,
    window: Arc<Window>,
    returns: Vec<Sender<Returned>>,
    /// What the file holds.
    contents: Contents,
    gathered: Vec<u8>,
}

impl Writer {
    fn run(mut self, header: &[u8], messages: &Receiver<Message>) -> Ended {
        self.output.put(header);
        self.report();
        let mut parts = Vec::new();
        while parts.len() < self.returns.len() {
            match messages.recv() {
                Ok(Message::Blocks(blocks)) => self.write(blocks),
                Ok(Message::Part(part)) => parts.push(part),
                Err(_) => {
                    self.output
                        .fail("a receive thread ended unexpectedly; attach the interface again");
                    break;
                }
            }
        }
        self.finish(&parts)
    }

    fn write(&mut self, blocks: Blocks) {
        let contents = blocks.contents;
        let good = if blocks.payload >= WORTH_A_PART * blocks.held.len() {
            let good = self.output.put_parts(blocks.parts());
            self.give_back(blocks);
            good
        } else {
            self.gathered.clear();
            for part in blocks.parts() {
                self.gathered.extend_from_slice(part);
            }
            self.give_back(blocks);
            self.output.put(&self.gathered)
        };
        if good {
            self.contents.add(contents);
        }
        self.report();
    }

    fn give_back(&self, blocks: Blocks) {
        if let Some(queue) = self.returns.get(blocks.queue) {
            let _ = queue.send(Returned::Blocks(blocks));
        }
    }

    fn report(&self) {
        let progress = &self.window.progress;
        progress.packets.store(self.contents.packets, Ordering::Relaxed);
        progress.bytes.store(self.output.length(), Ordering::Relaxed);
        if let Some(failure) = self.output.failure() {
            self.window
                .end_now(StopReason::Error, clock::realtime_ns(), Some(failure.to_owned()));
        }
    }

    fn finish(mut self, parts: &[Part]) -> Ended {
        let ending = self.window.ending();
        let from_ns = self.window.start_ns().unwrap_or(ending.at_ns);
        let balance = self.balance(parts);
        let clock_source = parts.first().map_or("unknown", |p| p.clock_source);
        let window = (from_ns, ending.at_ns.max(from_ns));
        let closing = statistics::block(self.measured, window, &balance, clock_source);
        self.output.put(&closing);
        let failure = self.output.failure().map(str::to_owned);
        let Ending { reason, message, .. } = ending;
        Ended {
            stop_reason: failure.as_ref().map_or(reason, |_| StopReason::Error),
            started_at_ns: self.window.begun_ns,
            ended_at_ns: ending.at_ns.max(self.window.begun_ns),
            packets: self.contents.packets,
            bytes: self.output.length(),
            sha256: self.output.finish(),
            first_packet_ns: self.contents.first_ns,
            last_packet_ns: self.contents.last_ns,
            truncated_packets: self.contents.truncated,
            balance,
            clock_source: clock_source.into(),
            message: failure.or(message),
        }
    }

    fn balance(&self, parts: &[Part]) -> LossBalance {
        let sum = |of: fn(&Part) -> u64| parts.iter().map(of).sum::<u64>();
        // All queues must tell of their rings; the one NIC is told of by one of them.
        let all = parts.len() == self.returns.len();
        let ring = parts.iter().map(|p| p.losses.ring).sum::<Option<u64>>();
        let nic = parts.iter().find_map(|p| p.losses.nic);
        let written = self.contents.packets;
        // A receive thread that died took its counts along; what it delivered was seen for certain.
        let matched = sum(|p| p.matched).max(written);
        let frames = sum(|p| p.frames).max(matched);
        let lost_history = sum(|p| p.lost_history);
        let balance = LossBalance {
            seen: frames + lost_history,
            matched,
            filtered: frames - matched,
            written,
            lost_writer: matched - written,
            lost_history,
            lost_ring: ring.filter(|_| all && self.measured.ring),
            lost_nic: nic.filter(|_| self.measured.nic),
        };
        debug_assert!(balance.adds_up(), "{balance:?}");
        balance
    }
}
