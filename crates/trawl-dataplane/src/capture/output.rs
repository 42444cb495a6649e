//! A file and its hash, in one pass.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};

use sha2::{Digest, Sha256};

pub(crate) struct Output {
    file: File,
    hash: Sha256,
    /// Bytes that are in the file for certain.
    good: u64,
    failure: Option<String>,
}

impl Output {
    /// Takes an empty file.
    pub fn new(file: File) -> Self {
        Self {
            file,
            hash: Sha256::new(),
            good: 0,
            failure: None,
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

    /// Writes whole blocks or, after a failure, nothing: the file never ends inside a block.
    pub fn put(&mut self, bytes: &[u8]) -> bool {
        self.put_parts(std::iter::once(bytes))
    }

    /// The same for blocks that lie in several places.
    pub fn put_parts<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let mut slices: Vec<_> = parts.map(IoSlice::new).collect();
        // What fails to be written must not be in the hash.
        let mut hash = self.hash.clone();
        for slice in &slices {
            hash.update(&slice[..]);
        }
        let length: usize = slices.iter().map(|s| s.len()).sum();
        if let Err(e) = write_all(&mut self.file, &mut slices) {
            self.fail(format!(
                "writing the output failed after {} bytes: {e}",
                self.good
            ));
            let _ = self.file.set_len(self.good);
            return false;
        }
        self.hash = hash;
        self.good += length as u64;
        true
    }

    /// Lower-case hex of the SHA-256 of what is in the file for certain.
    pub fn finish(self) -> String {
        let hash = self.hash.finalize();
        hash.iter().map(|b| format!("{b:02x}")).collect()
    }
}

fn write_all(file: &mut impl Write, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Empty slices at the front would make a whole write look like none.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// Takes a few bytes at a time, interrupted before each.
    #[derive(Default)]
    struct Reluctant {
        taken: Vec<u8>,
        ready: bool,
    }

    impl Write for Reluctant {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.ready = !self.ready;
            if self.ready {
                return Err(ErrorKind::Interrupted.into());
            }
            let some = &bytes[..bytes.len().min(3)];
            self.taken.extend_from_slice(some);
            Ok(some.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn short_and_interrupted_writes_lose_nothing() {
        let parts: [&[u8]; 5] = [b"", b"one", b"", b"twenty-two", b""];
        let mut file = Reluctant::default();
        write_all(&mut file, &mut parts.map(IoSlice::new)).unwrap();
        assert_eq!(file.taken, parts.concat());
    }

    #[test]
    fn the_hash_is_that_of_the_file_whether_its_blocks_lay_in_one_place_or_in_many() {
        let file = tempfile::tempfile().unwrap();
        let mut output = Output::new(file.try_clone().unwrap());
        assert!(output.put(&[1; 5000]));
        let many: Vec<_> = (0..3000u32)
            .map(|n| n.to_le_bytes().repeat(n as usize % 7))
            .collect();
        assert!(output.put_parts(many.iter().map(Vec::as_slice)));
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, [vec![1; 5000], many.concat()].concat());
        assert_eq!(output.length(), bytes.len() as u64);
        let wanted = Sha256::digest(&bytes);
        let wanted: String = wanted.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(output.finish(), wanted);
    }

    #[test]
    fn what_could_not_be_written_is_not_in_the_hash() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut output = Output::new(full);
        assert!(!output.put(b"no room for this"));
        assert!(output.failure().unwrap().contains("after 0 bytes"));
        assert!(!output.put(b"nor for more"));
        assert_eq!(output.length(), 0);
        let nothing = Sha256::digest(b"");
        let nothing: String = nothing.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(output.finish(), nothing);
    }
}
