//! Writing records so that a reader sees a whole one or none.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use jiff::Timestamp;

use super::{MAX_RECORD_BYTES, PROGRESS_SCHEMA, ProgressBody, ProgressError, ProgressRecord, read};

/// Writes the records of one job into one directory.
#[derive(Clone, Debug)]
pub struct ProgressWriter {
    directory: PathBuf,
    job_uid: String,
}

impl ProgressWriter {
    /// `directory` must exist and be on one file system.
    pub fn new(directory: impl Into<PathBuf>, job_uid: impl Into<String>) -> Self {
        Self {
            directory: directory.into(),
            job_uid: job_uid.into(),
        }
    }

    /// Writes one record: temporary name, fsync, final name, fsync of the directory. Refuses to replace.
    pub fn write(&self, body: ProgressBody, now: Timestamp) -> Result<(), ProgressError> {
        let (sequence, file) = body.slot();
        let record = ProgressRecord {
            schema: PROGRESS_SCHEMA.into(),
            job_uid: self.job_uid.clone(),
            sequence,
            recorded_at: now,
            body,
        };
        read::check_record(&record, file, sequence, &self.job_uid)?;
        let bytes =
            serde_json::to_vec(&record).map_err(|source| ProgressError::Malformed { file, source })?;
        if bytes.len() as u64 > MAX_RECORD_BYTES {
            return Err(ProgressError::TooLarge { file });
        }
        self.place(file, &bytes).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => ProgressError::AlreadyWritten { file },
            _ => ProgressError::Io { file, source },
        })
    }

    fn place(&self, file: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.directory.join(format!(".{file}.tmp"));
        // What a killed predecessor left; only ever a half-written record.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut out = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o640)
            .open(&temporary)?;
        out.write_all(bytes)?;
        out.sync_all()?;
        // A link, unlike a rename, never replaces.
        let placed = fs::hard_link(&temporary, self.directory.join(file));
        fs::remove_file(&temporary)?;
        placed?;
        File::open(&self.directory)?.sync_all()
    }
}
