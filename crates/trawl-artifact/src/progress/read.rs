//! Reading records that another container wrote: nothing about them is believed before it was checked.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::OFlags;

use super::{MAX_RECORD_BYTES, PROGRESS_SCHEMA, ProgressBody, ProgressError, ProgressRecord, RECORD_FILES};
use crate::outcome::Outcome;
use crate::text::{MAX_MESSAGE_BYTES, is_sha256};

/// Sequence numbers in the order of [`RECORD_FILES`].
const SEQUENCES: [u32; 4] = [1, 2, 3, 9];

/// Reads the records of one job from one directory.
#[derive(Clone, Debug)]
pub struct ProgressReader {
    directory: PathBuf,
    job_uid: String,
}

impl ProgressReader {
    pub fn new(directory: impl Into<PathBuf>, job_uid: impl Into<String>) -> Self {
        Self {
            directory: directory.into(),
            job_uid: job_uid.into(),
        }
    }

    /// All records present, in order. One bad record refuses all, since the rest can no longer be believed.
    pub fn read(&self) -> Result<Vec<ProgressRecord>, ProgressError> {
        let mut records = Vec::with_capacity(RECORD_FILES.len());
        for (file, sequence) in RECORD_FILES.into_iter().zip(SEQUENCES) {
            if let Some(bytes) = self.bytes(file)? {
                records.push(parse(&bytes, file, sequence, &self.job_uid)?);
            }
        }
        check_order(&records)?;
        Ok(records)
    }

    /// The content of `file`, or `None` when it is not there yet.
    fn bytes(&self, file: &'static str) -> Result<Option<Vec<u8>>, ProgressError> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(self.directory.join(file));
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                return Err(ProgressError::NotRegular { file });
            }
            Err(source) => return Err(ProgressError::Io { file, source }),
        };
        let metadata = opened
            .metadata()
            .map_err(|source| ProgressError::Io { file, source })?;
        if !metadata.is_file() {
            return Err(ProgressError::NotRegular { file });
        }
        let mut bytes = Vec::new();
        let read = opened.take(MAX_RECORD_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|source| ProgressError::Io { file, source })?;
        if bytes.len() as u64 > MAX_RECORD_BYTES {
            return Err(ProgressError::TooLarge { file });
        }
        Ok(Some(bytes))
    }
}

/// Reads one record strictly: known fields only, right job, right place.
pub fn parse(
    bytes: &[u8],
    file: &'static str,
    sequence: u32,
    job_uid: &str,
) -> Result<ProgressRecord, ProgressError> {
    if bytes.len() as u64 > MAX_RECORD_BYTES {
        return Err(ProgressError::TooLarge { file });
    }
    let record = serde_json::from_slice(bytes).map_err(|source| ProgressError::Malformed { file, source })?;
    check_record(&record, file, sequence, job_uid)?;
    Ok(record)
}

pub(super) fn check_record(
    record: &ProgressRecord,
    file: &'static str,
    expected: u32,
    job_uid: &str,
) -> Result<(), ProgressError> {
    if record.schema != PROGRESS_SCHEMA {
        return Err(ProgressError::Schema { file });
    }
    if record.job_uid != job_uid {
        return Err(ProgressError::WrongJob { file });
    }
    if record.sequence != expected || record.body.slot() != (expected, file) {
        return Err(ProgressError::WrongSequence {
            file,
            expected,
            found: record.sequence,
        });
    }
    let refuse = |field, problem| Err(ProgressError::Field { file, field, problem });
    let too_long = |message: &Option<String>| message.as_ref().is_some_and(|m| m.len() > MAX_MESSAGE_BYTES);
    match &record.body {
        ProgressBody::Filter(body) if too_long(&body.message) => refuse("message", "longer than 512 bytes"),
        ProgressBody::Started(body) if body.interface.is_empty() || body.interface.len() > 15 => {
            refuse("interface", "must be 1 to 15 bytes")
        }
        ProgressBody::Ended(body) if !is_sha256(&body.sha256) => refuse("sha256", "must be 64 hex digits"),
        ProgressBody::Result(body) => {
            let succeeded = body.outcome == Outcome::Succeeded;
            if too_long(&body.message) {
                refuse("message", "longer than 512 bytes")
            } else if body.sha256.as_ref().is_some_and(|s| !is_sha256(s)) {
                refuse("sha256", "must be 64 hex digits")
            } else if succeeded != (body.exit_code == 0) || succeeded != body.reason.is_none() {
                refuse("outcome", "does not agree with reason and exitCode")
            } else if body.reason.is_some_and(|r| r.exit_code() != body.exit_code) {
                refuse("exitCode", "does not agree with reason")
            } else {
                Ok(())
            }
        }
        _ => Ok(()),
    }
}

/// A record may only stand on those before it; the result may come at any time, a success only at the end.
fn check_order(records: &[ProgressRecord]) -> Result<(), ProgressError> {
    let mut previous: Option<&ProgressRecord> = None;
    for record in records {
        let file = record.body.slot().1;
        let refuse = |problem| Err(ProgressError::WrongOrder { file, problem });
        let stands = match (&record.body, previous.map(|p| &p.body)) {
            (ProgressBody::Filter(_), None) => true,
            (ProgressBody::Started(_), Some(ProgressBody::Filter(verdict))) => verdict.accepted,
            (ProgressBody::Ended(_), Some(ProgressBody::Started(_))) => true,
            (ProgressBody::Result(result), before) => {
                result.outcome == Outcome::Failed || matches!(before, Some(ProgressBody::Ended(_)))
            }
            _ => false,
        };
        if !stands {
            return refuse("a record that must precede it is missing or refuses it");
        }
        if previous.is_some_and(|p| p.recorded_at > record.recorded_at) {
            return refuse("recorded before its predecessor");
        }
        previous = Some(record);
    }
    Ok(())
}
