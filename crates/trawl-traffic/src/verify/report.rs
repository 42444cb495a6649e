//! What was found in a file, and what is wrong with it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::Wanted;

/// The verdict on one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What is wrong, one sentence each; a good file has none.
    pub problems: Vec<String>,
    /// Size of the file.
    pub bytes: u64,
    /// Of the whole file.
    pub sha256: String,
    /// Packets of any kind.
    pub packets: u64,
    /// Packets that carry no number, or one of a stream that was not asked for.
    pub other: u64,
    /// Receive queues that packets name.
    pub queues: usize,
    /// Packets stamped earlier than the one before them of the same queue.
    pub stamps_back: u64,
    /// Earliest stamp, nanoseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_ns: Option<u64>,
    /// Latest stamp, nanoseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_ns: Option<u64>,
    /// Why the file could not be read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// Each stream in it.
    pub streams: Vec<StreamReport>,
}

/// What was found of one stream. With `--every N` first, last and missing count every N-th number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamReport {
    /// Its number.
    pub stream: u16,
    /// Packets.
    pub packets: u64,
    /// Distinct numbers.
    pub distinct: u64,
    /// Lowest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// Highest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// Holes between lowest and highest.
    pub gaps: u64,
    /// Numbers in these holes.
    pub missing: u64,
    /// Packets whose number had come before.
    pub duplicates: u64,
    /// Packets with a lower number than the one before them of the same queue.
    pub out_of_order: u64,
    /// Packets whose payload is not what was sent.
    pub broken: u64,
    /// Packets of which only a part was kept, so that their payload cannot be judged.
    pub cut: u64,
    /// Packets whose number is no multiple of `--every`.
    pub unwanted: u64,
    /// Packets whose numbers lie too far apart to be remembered.
    pub scattered: u64,
    /// Packets by their count of VLAN tags.
    pub tags: BTreeMap<u8, u64>,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.problems.is_empty()
    }

    pub(super) fn judge(&mut self, wanted: &Wanted) {
        let mut problems: Vec<String> = self.broken.iter().cloned().collect();
        if self.stamps_back > 0 {
            problems.push(format!("{} stamps go back within a queue", self.stamps_back));
        }
        if self.streams.is_empty() && wanted.expect != Some(0) {
            problems.push("no numbered packet is in the file, so nothing is proved".into());
        }
        for stream in &self.streams {
            let found = stream.problems(wanted).into_iter();
            problems.extend(found.map(|problem| format!("stream {}: {problem}", stream.stream)));
        }
        self.problems = problems;
    }
}

impl StreamReport {
    fn problems(&self, wanted: &Wanted) -> Vec<String> {
        let mut problems = vec![];
        let counts = [
            (self.duplicates, "packets came twice"),
            (self.out_of_order, "packets are out of order"),
            (self.broken, "packets are not what was sent"),
            (self.unwanted, "packets are none of those that --every names"),
            (self.scattered, "numbers lie too far apart to be judged"),
        ];
        problems.extend(
            counts
                .iter()
                .filter(|(n, _)| *n > 0)
                .map(|(n, what)| format!("{n} {what}")),
        );
        if self.missing > wanted.lost {
            let allowed = if wanted.lost > 0 {
                format!(", {} were allowed to be", wanted.lost)
            } else {
                String::new()
            };
            problems.push(format!(
                "{} numbers are missing in {} gaps{allowed}",
                self.missing, self.gaps
            ));
        }
        if let Some(expect) = wanted
            .expect
            .filter(|expect| self.distinct.saturating_add(wanted.lost) < *expect || self.distinct > *expect)
        {
            problems.push(format!(
                "{} packets are there and {expect} were expected",
                self.distinct
            ));
        }
        problems
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} packets in {} bytes, {} of them not judged",
            self.packets, self.bytes, self.other
        )?;
        writeln!(f, "sha256 {}", self.sha256)?;
        for s in &self.streams {
            write!(f, "stream {}: {} packets", s.stream, s.packets)?;
            if let (Some(first), Some(last)) = (s.first, s.last) {
                write!(f, ", numbers {first} to {last}")?;
            }
            write!(
                f,
                ", {} missing in {} gaps, {} duplicates, {} out of order",
                s.missing, s.gaps, s.duplicates, s.out_of_order
            )?;
            writeln!(f, ", {} broken, {} cut short", s.broken, s.cut)?;
            for (tags, packets) in s.tags.iter().filter(|(tags, _)| **tags > 0) {
                writeln!(f, "  {packets} with {tags} VLAN tags")?;
            }
        }
        if self.queues > 0 {
            writeln!(f, "{} receive queues", self.queues)?;
        }
        for problem in &self.problems {
            writeln!(f, "WRONG: {problem}")?;
        }
        if self.is_good() {
            writeln!(f, "good")?;
        }
        Ok(())
    }
}
