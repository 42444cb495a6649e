//! A walk over the file of a ledger: every line is a record, and each names the one before it.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use crate::{Record, line};

/// What a whole ledger holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// How many records.
    pub records: u64,
    /// Bytes of whole lines.
    pub bytes: u64,
    /// Bytes after the last whole line: a record that is being written, or whose writer was killed. It was never
    /// acknowledged.
    pub unfinished: u64,
    /// What the next record names as the one before it; empty while there is none.
    pub last: String,
}

/// Why a ledger is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// A line is no record.
    #[error("line {line} is damaged: {why}")]
    Damaged {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A record does not follow from the one before it.
    #[error("line {line} does not follow from the one before it: a record was changed, removed or put in")]
    Chain {
        /// Number of the line, from 1.
        line: u64,
    },
}

/// Checks the file of a ledger from its first line to its last.
///
/// # Errors
/// The first line that is damaged or does not follow.
pub fn verify(path: &Path) -> Result<Walk, Broken> {
    verify_from(BufReader::new(File::open(path)?))
}

/// Checks what `reader` holds, as [`verify`] does.
///
/// # Errors
/// The first line that is damaged or does not follow.
pub fn verify_from(reader: impl BufRead) -> Result<Walk, Broken> {
    walk(reader, |_, _, _| ())
}

/// Checks what `reader` holds and shows each record with its offset and the length of its line.
pub fn walk(mut reader: impl BufRead, mut each: impl FnMut(Record, u64, usize)) -> Result<Walk, Broken> {
    let mut seen = Walk::default();
    let mut text = Vec::new();
    loop {
        text.clear();
        // One byte more than a line and its end may have, so that one that is too long is noticed.
        let limit = line::MAX_LINE_BYTES as u64 + 2;
        let length = reader.by_ref().take(limit).read_until(b'\n', &mut text)?;
        let number = seen.records + 1;
        match text.last() {
            None => return Ok(seen),
            Some(b'\n') => {}
            Some(_) if (length as u64) < limit => {
                seen.unfinished = length as u64;
                return Ok(seen);
            }
            Some(_) => {
                let why = format!("longer than {} bytes", line::MAX_LINE_BYTES);
                return Err(Broken::Damaged { line: number, why });
            }
        }
        let text = &text[..length - 1];
        let record = line::parse(text).map_err(|why| Broken::Damaged { line: number, why })?;
        if record.previous != seen.last {
            return Err(Broken::Chain { line: number });
        }
        each(record, seen.bytes, text.len());
        seen.last = line::link(text);
        seen.records = number;
        seen.bytes += length as u64;
    }
}
