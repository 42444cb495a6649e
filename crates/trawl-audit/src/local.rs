//! A ledger in a file of its own: `ledger.jsonl`, one record a line, appended and never changed.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use tokio::sync::{mpsc, oneshot};

use crate::{
    Entry, Ledger, LedgerError, Record,
    walk::{Broken, Walk},
    writer::{Commit, Writer},
};

/// Name of the file in the ledger's directory.
const FILE: &str = "ledger.jsonl";
/// Commits that wait for the thread that writes; the next one waits outside.
const MAX_WAITING: usize = 1024;

/// A ledger in a local file. Cheap to clone; the file is let go of when the last clone is dropped.
///
/// Concurrent commits share one `fdatasync`. Memory is bounded: of the records only the place of the newest 100,000
/// stable keys is kept, which takes about 8 MB.
#[derive(Clone, Debug)]
pub struct LocalLedger {
    asked: mpsc::Sender<Commit>,
}

/// What was found on opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The file.
    pub path: PathBuf,
    /// What it holds. `unfinished` is what was cut off: a record whose writer was killed, never acknowledged.
    pub walk: Walk,
}

impl LocalLedger {
    /// Opens the ledger in `directory`, which must exist, and checks it from its first line to its last. This blocks.
    ///
    /// # Errors
    /// It cannot be read or written, another process writes to it, or it is not whole. Nothing is changed then.
    pub fn open(directory: &Path) -> Result<(Self, Opened), LedgerError> {
        let path = directory.join(FILE);
        let failed = |why: String| LedgerError::Unavailable(format!("{}: {why}", path.display()));
        let file = lock(&path).map_err(|e| failed(e.to_string()))?;
        let (writer, walk) = Writer::open(file, path.clone()).map_err(|broken| match broken {
            Broken::Read(error) => failed(error.to_string()),
            other => failed(format!(
                "{other}; see docs/audit.md before you move the file aside"
            )),
        })?;
        let (asked, answered) = mpsc::channel(MAX_WAITING);
        std::thread::Builder::new()
            .name("audit-ledger".into())
            .spawn(move || writer.run(answered))
            .map_err(|e| failed(e.to_string()))?;
        Ok((Self { asked }, Opened { path, walk }))
    }

    /// Whether nothing can be committed any more, because somebody moved, removed or cut the file: open another one.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.asked.is_closed()
    }
}

/// Opens or makes the file, for this process alone. A new one is durable with its name.
fn lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    file.try_lock().map_err(|e| match e {
        TryLockError::WouldBlock => io::Error::other("another process writes to it"),
        TryLockError::Error(error) => error,
    })?;
    if let Some(directory) = path.parent() {
        fs::File::open(directory)?.sync_all()?;
    }
    Ok(file)
}

#[async_trait::async_trait]
impl Ledger for LocalLedger {
    async fn commit(&self, entry: Entry) -> Result<Record, LedgerError> {
        let gone = || LedgerError::Unavailable("the thread that writes it has ended".into());
        let (reply, answer) = oneshot::channel();
        self.asked
            .send(Commit { entry, reply })
            .await
            .map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
