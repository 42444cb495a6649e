//! `trawl-testbed verify`: whether the numbered packets in a file are all there, whole, once, and in order.

mod report;
mod seen;

use std::collections::BTreeMap;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

use crate::file::{FileError, Packet, Packets};
use crate::frame::identify;
pub use report::{Report, StreamReport};
use seen::{Arrival, Seen};

/// Most streams and queues that are told apart; packets of others count as none of ours.
const MANY: usize = 1024;

/// What is asked of a file.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Judge this stream alone.
    pub stream: Option<u16>,
    /// Each number is a multiple of this, as in a capture of every hundredth packet.
    pub every: u64,
    /// Exactly so many distinct packets in each stream that is judged.
    pub expect: Option<u64>,
    /// So many numbers may be missing: what the capture has counted as lost.
    pub lost: u64,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            stream: None,
            every: 1,
            expect: None,
            lost: 0,
        }
    }
}

#[derive(Debug, Default)]
struct Stream {
    report: StreamReport,
    seen: Seen,
    /// The last number of each queue.
    last: BTreeMap<Option<u32>, u64>,
}

#[derive(Debug)]
struct Judge<'a> {
    wanted: &'a Wanted,
    report: Report,
    streams: BTreeMap<u16, Stream>,
    /// The newest stamp of each interface and queue.
    stamps: BTreeMap<(u32, Option<u32>), u64>,
}

/// Reads the file to its end, or to where it is broken, and judges it.
///
/// # Errors
/// The system cannot read it. A file that is no capture is a verdict, not an error.
pub fn verify(reader: impl Read, wanted: &Wanted) -> io::Result<Report> {
    let mut hashed = Hashed {
        reader,
        hash: Sha256::new(),
        bytes: 0,
    };
    let mut judge = Judge {
        wanted,
        report: Report::default(),
        streams: BTreeMap::new(),
        stamps: BTreeMap::new(),
    };
    match judge.read(&mut hashed) {
        Ok(()) => {}
        Err(FileError::Io(error)) => return Err(error),
        Err(error) => judge.report.broken = Some(error.to_string()),
    }
    io::copy(&mut hashed, &mut io::sink())?;
    let mut report = judge.finish();
    report.bytes = hashed.bytes;
    report.sha256 = hashed
        .hash
        .finalize()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    Ok(report)
}

impl Judge<'_> {
    fn read(&mut self, reader: impl Read) -> Result<(), FileError> {
        let mut packets = Packets::new(reader)?;
        while let Some(packet) = packets.next_packet()? {
            self.packet(&packet);
        }
        Ok(())
    }

    fn packet(&mut self, packet: &Packet<'_>) {
        self.report.packets += 1;
        self.stamp(packet);
        let Some(identity) = identify(packet.bytes) else {
            self.report.other += 1;
            return;
        };
        let strange = self.wanted.stream.is_some_and(|stream| stream != identity.stream);
        if strange || (self.streams.len() >= MANY && !self.streams.contains_key(&identity.stream)) {
            self.report.other += 1;
            return;
        }
        let stream = self.streams.entry(identity.stream).or_default();
        stream.report.packets += 1;
        *stream.report.tags.entry(identity.tags).or_default() += 1;
        match identity.intact {
            Some(false) => stream.report.broken += 1,
            intact => {
                stream.report.cut += u64::from(intact.is_none());
                stream.number(identity.number, packet.queue, self.wanted.every.max(1));
            }
        }
    }

    fn stamp(&mut self, packet: &Packet<'_>) {
        let Some(stamp) = packet.stamp_ns else { return };
        let key = (packet.interface, packet.queue);
        if self.stamps.len() >= MANY && !self.stamps.contains_key(&key) {
            return;
        }
        let newest = self.stamps.entry(key).or_insert(stamp);
        self.report.stamps_back += u64::from(stamp < *newest);
        *newest = stamp.max(*newest);
        self.report.first_ns = Some(self.report.first_ns.map_or(stamp, |first| first.min(stamp)));
        self.report.last_ns = self.report.last_ns.max(Some(stamp));
    }

    fn finish(self) -> Report {
        let mut report = self.report;
        report.queues = self
            .stamps
            .keys()
            .filter_map(|(_, queue)| *queue)
            .collect::<std::collections::BTreeSet<_>>()
            .len();
        for (number, stream) in self.streams {
            report.streams.push(stream.finish(number));
        }
        report.judge(self.wanted);
        report
    }
}

impl Stream {
    fn number(&mut self, number: u64, queue: Option<u32>, every: u64) {
        if !number.is_multiple_of(every) {
            self.report.unwanted += 1;
            return;
        }
        match self.seen.add(number / every) {
            Arrival::New => {}
            Arrival::Duplicate => {
                self.report.duplicates += 1;
                return;
            }
            Arrival::TooScattered => {
                self.report.scattered += 1;
                return;
            }
        }
        if self.last.len() >= MANY && !self.last.contains_key(&queue) {
            return;
        }
        if self.last.insert(queue, number).is_some_and(|last| number < last) {
            self.report.out_of_order += 1;
        }
    }

    fn finish(self, stream: u16) -> StreamReport {
        let (gaps, missing) = self.seen.gaps();
        let bounds = self.seen.bounds();
        StreamReport {
            stream,
            distinct: self.seen.count(),
            first: bounds.map(|(first, _)| first),
            last: bounds.map(|(_, last)| last),
            gaps,
            missing,
            ..self.report
        }
    }
}

/// Hashes what passes through.
struct Hashed<R> {
    reader: R,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.hash.update(&buffer[..count]);
        self.bytes += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
