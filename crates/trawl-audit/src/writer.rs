//! The thread that writes: whatever waits is written together and made durable by one `fdatasync`.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader},
    os::unix::fs::{FileExt, MetadataExt},
    path::PathBuf,
};

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use crate::{
    Entry, LedgerError, Record, SCHEMA,
    index::{Index, Place},
    line,
    walk::{self, Broken, Walk},
};

/// Entries that one `fdatasync` makes durable at most.
const MAX_BATCH: usize = 512;

/// What is asked of the thread.
pub struct Commit {
    pub entry: Entry,
    pub reply: oneshot::Sender<Result<Record, LedgerError>>,
}

/// The end of a file whose first `length` bytes are whole, durable lines.
pub struct Writer {
    file: File,
    path: PathBuf,
    length: u64,
    last: String,
    index: Index,
    /// Something may stand behind `length` that nobody was told about.
    dirty: bool,
    /// Somebody moved, removed or cut the file: nothing is written any more.
    lost: bool,
}

/// What becomes of one entry of a batch.
enum Fate {
    /// It is the record with this number in the batch.
    Fresh(usize),
    /// Decided without writing.
    Settled(Box<Result<Record, LedgerError>>),
}

impl Writer {
    /// Checks the file and cuts off an unfinished last line.
    pub fn open(file: File, path: PathBuf) -> Result<(Self, Walk), Broken> {
        let mut index = Index::default();
        let walk = walk::walk(BufReader::new(&file), |record, offset, length| {
            let length = length as u32;
            index.insert(&record.entry.stable_key, Place { offset, length });
        })?;
        let mut writer = Self {
            file,
            path,
            length: walk.bytes,
            last: walk.last.clone(),
            index,
            dirty: walk.unfinished > 0,
            lost: false,
        };
        writer.cut()?;
        Ok((writer, walk))
    }

    /// Works until nobody can ask any more, or the file is lost.
    pub fn run(mut self, mut asked: mpsc::Receiver<Commit>) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while asked.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
            let (entries, replies): (Vec<_>, Vec<_>) = batch.drain(..).map(|c| (c.entry, c.reply)).unzip();
            for (reply, answer) in replies.into_iter().zip(self.commit(entries)) {
                // Who asked may have given up waiting.
                let _ = reply.send(answer);
            }
            if self.lost {
                return;
            }
        }
    }

    fn commit(&mut self, entries: Vec<Entry>) -> Vec<Result<Record, LedgerError>> {
        let mut batch = Batch::after(self.length, self.last.clone());
        let places: Vec<_> = entries
            .into_iter()
            .map(|entry| self.place(&mut batch, line::tidy(entry)))
            .collect();
        let written = self.write(&batch).map_err(|e| e.to_string());
        let records = batch.records;
        if written.is_ok() {
            for (record, place) in records.iter().zip(&batch.places) {
                self.index.insert(&record.entry.stable_key, *place);
            }
            (self.length, self.last) = (batch.end, batch.last);
        }
        let answer = |place| match (place, &written) {
            (Fate::Settled(answer), _) => *answer,
            (Fate::Fresh(n), Ok(())) => Ok(records[n].clone()),
            (Fate::Fresh(_), Err(why)) => Err(LedgerError::Unavailable(why.clone())),
        };
        places.into_iter().map(answer).collect()
    }

    fn place(&self, batch: &mut Batch, entry: Entry) -> Fate {
        let settled = |kept: Record| {
            if line::same(&kept.entry, &entry) {
                Ok(kept)
            } else {
                Err(LedgerError::Conflict)
            }
        };
        if let Some(&n) = batch.keys.get(&entry.stable_key) {
            return match line::same(&batch.records[n].entry, &entry) {
                true => Fate::Fresh(n),
                false => Fate::Settled(Box::new(Err(LedgerError::Conflict))),
            };
        }
        match self.index.get(&entry.stable_key) {
            Some(place) => Fate::Settled(Box::new(self.read(place).and_then(settled))),
            None => match batch.add(entry) {
                Ok(n) => Fate::Fresh(n),
                Err(error) => Fate::Settled(Box::new(Err(error))),
            },
        }
    }

    fn read(&self, place: Place) -> Result<Record, LedgerError> {
        let mut text = vec![0; place.length as usize];
        self.file
            .read_exact_at(&mut text, place.offset)
            .map_err(|e| LedgerError::Unavailable(e.to_string()))?;
        line::parse(&text).map_err(LedgerError::Unavailable)
    }

    /// All of a batch, durably, or nothing of it.
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        if batch.bytes.is_empty() {
            return Ok(());
        }
        self.lost = !self.is_in_place();
        if self.lost {
            return Err(io::Error::other(
                "the file was moved, removed or cut short while it was open",
            ));
        }
        self.cut()?;
        self.is_ours()?;
        self.dirty = true;
        let done = self
            .file
            .write_all_at(&batch.bytes, self.length)
            .and_then(|()| self.file.sync_data());
        self.dirty = done.is_err();
        if done.is_err() {
            // If this fails too, it is tried again before the next line is written.
            let _ = self.cut();
        }
        done
    }

    /// Whether the file still has its name and all that was acknowledged. What is written elsewhere is kept for nobody.
    fn is_in_place(&self) -> bool {
        let (Ok(own), Ok(named)) = (self.file.metadata(), std::fs::metadata(&self.path)) else {
            return false;
        };
        (own.dev(), own.ino()) == (named.dev(), named.ino()) && own.len() >= self.length
    }

    /// Refuses to write next to what somebody else wrote.
    fn is_ours(&self) -> io::Result<()> {
        if self.file.metadata()?.len() != self.length {
            return Err(io::Error::other(
                "somebody else wrote to its file; keep the file as evidence, move it aside, and the operator begins another",
            ));
        }
        Ok(())
    }

    /// Takes away what stands behind the last acknowledged line.
    fn cut(&mut self) -> io::Result<()> {
        if self.dirty {
            self.file.set_len(self.length)?;
            self.file.sync_data()?;
            self.dirty = false;
        }
        Ok(())
    }
}

/// Lines that will be written together.
struct Batch {
    records: Vec<Record>,
    places: Vec<Place>,
    keys: HashMap<String, usize>,
    bytes: Vec<u8>,
    end: u64,
    last: String,
    now: Timestamp,
}

impl Batch {
    fn after(end: u64, last: String) -> Self {
        Self {
            records: Vec::new(),
            places: Vec::new(),
            keys: HashMap::new(),
            bytes: Vec::new(),
            end,
            last,
            now: Timestamp::now(),
        }
    }

    fn add(&mut self, entry: Entry) -> Result<usize, LedgerError> {
        let n = self.records.len();
        let record = Record {
            schema: SCHEMA.into(),
            ledger_key: format!("ledger.jsonl@{}", self.end),
            committed_at: self.now,
            previous: self.last.clone(),
            entry,
        };
        let text = serde_json::to_vec(&record).map_err(|e| LedgerError::Unavailable(e.to_string()))?;
        if text.len() > line::MAX_LINE_BYTES {
            let why = format!("the record is longer than {} bytes", line::MAX_LINE_BYTES);
            return Err(LedgerError::Unavailable(why));
        }
        let length = text.len() as u32;
        self.places.push(Place {
            offset: self.end,
            length,
        });
        self.last = line::link(&text);
        self.bytes.extend_from_slice(&text);
        self.bytes.push(b'\n');
        self.end += u64::from(length) + 1;
        self.keys.insert(record.entry.stable_key.clone(), n);
        self.records.push(record);
        Ok(n)
    }
}
