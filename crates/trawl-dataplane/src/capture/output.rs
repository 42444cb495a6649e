//! A file that is written and its hash.
//!
//! Hashing takes longer than writing. As long as the writer keeps up both happen in one pass; when it is behind, it
//! writes first, and what it owes the hash is read back from the page cache when there is time, at the end at last.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

/// Bytes that are read back at a time.
const CHUNK: usize = 128 << 10;

pub(crate) struct Output {
    file: File,
    /// Whether what was written can be read again.
    readable: bool,
    hash: Sha256,
    /// Bytes that the hash has seen.
    hashed: u64,
    /// Bytes that are in the file for certain.
    good: u64,
    failure: Option<String>,
    chunk: Vec<u8>,
}

impl Output {
    /// Takes an empty file.
    pub fn new(file: File) -> Self {
        let flags = rustix::fs::fcntl_getfl(&file);
        Self {
            readable: flags.is_ok_and(|f| f.contains(OFlags::RDWR)),
            file,
            hash: Sha256::new(),
            hashed: 0,
            good: 0,
            failure: None,
            chunk: Vec::new(),
        }
    }

    /// Bytes in the file.
    pub fn length(&self) -> u64 {
        self.good
    }

    /// Why nothing more is written.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Writes nothing more for this reason; the first one stays.
    pub fn fail(&mut self, message: impl Into<String>) {
        self.failure.get_or_insert_with(|| message.into());
    }

    /// Writes whole blocks or, after a failure, nothing: the file never ends inside a block. In a hurry they are not
    /// hashed yet.
    pub fn put(&mut self, bytes: &[u8], hurry: bool) -> bool {
        if self.failure.is_some() {
            return false;
        }
        if let Err(e) = self.file.write_all(bytes) {
            self.fail(format!(
                "writing the output failed after {} bytes: {e}",
                self.good
            ));
            let _ = self.file.set_len(self.good);
            return false;
        }
        if self.hashed == self.good && !(hurry && self.readable) {
            self.hash.update(bytes);
            self.hashed += bytes.len() as u64;
        }
        self.good += bytes.len() as u64;
        true
    }

    /// Whether the hash lacks something.
    pub fn owes(&self) -> bool {
        self.hashed < self.good
    }

    /// Hashes a piece of what the hash lacks.
    pub fn pay(&mut self) {
        let length = CHUNK.min((self.good - self.hashed) as usize);
        self.chunk.resize(CHUNK, 0);
        match self.file.read_exact_at(&mut self.chunk[..length], self.hashed) {
            Ok(()) => {
                self.hash.update(&self.chunk[..length]);
                self.hashed += length as u64;
            }
            Err(e) => self.lose(&e),
        }
    }

    /// What cannot be read again is not vouched for: length and hash speak of what could.
    fn lose(&mut self, error: &io::Error) {
        self.fail(format!(
            "reading the output back failed after {} bytes: {error}; nobody else may change it",
            self.hashed
        ));
        self.good = self.hashed;
    }

    /// Lower-case hex of the SHA-256 of the whole file.
    pub fn finish(mut self) -> String {
        while self.owes() {
            self.pay();
        }
        let hash = self.hash.finalize();
        hash.iter().map(|b| format!("{b:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(file: &File) -> Vec<u8> {
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn the_hash_is_that_of_the_file_whether_it_was_in_a_hurry_or_not() {
        for pattern in 0..64u32 {
            let file = tempfile::tempfile().unwrap();
            let mut output = Output::new(file.try_clone().unwrap());
            for i in 0..6u32 {
                let bytes = vec![i as u8; 50_000 + i as usize * 777];
                assert!(output.put(&bytes, pattern >> i & 1 == 1));
                if i == 3 && output.owes() {
                    output.pay();
                }
            }
            let bytes = written(&file);
            assert_eq!(output.length(), bytes.len() as u64);
            let wanted: String = Sha256::digest(&bytes)
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            assert_eq!(output.finish(), wanted);
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_hashed_as_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = File::create(dir.path().join("f")).unwrap();
        let mut output = Output::new(file);
        output.put(b"some", true);
        assert!(!output.owes());
    }

    #[test]
    fn a_file_that_somebody_cut_is_a_failure_and_not_a_wrong_hash() {
        let file = tempfile::tempfile().unwrap();
        let mut output = Output::new(file.try_clone().unwrap());
        output.put(b"first", false);
        output.put(b"second", true);
        file.set_len(3).unwrap();
        output.pay();
        assert!(
            output
                .failure()
                .unwrap()
                .contains("reading the output back failed")
        );
        assert_eq!(output.length(), 5);
    }
}
