//! The capture file as the runner finds it: measured, and cut to its whole packets when its writer died.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use trawl_artifact::{Measured, Verifier};

/// Bytes read at a time.
const CHUNK: usize = 256 * 1024;

/// Hashes and walks the whole file in one pass.
pub(crate) fn measure(file: &mut File) -> io::Result<Measured> {
    file.seek(SeekFrom::Start(0))?;
    let mut verifier = Verifier::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(verifier.measure()),
            Ok(n) => verifier.push(&chunk[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Cuts a file at the end of its last whole block and measures what is left. `None` when nothing is.
pub(crate) fn salvage(file: &mut File) -> io::Result<Option<Measured>> {
    let found = measure(file)?;
    if found.salvageable.whole_bytes == 0 {
        return Ok(None);
    }
    if found.salvageable.whole_bytes == found.size_bytes {
        return Ok(Some(found));
    }
    file.set_len(found.salvageable.whole_bytes)?;
    file.sync_all()?;
    measure(file).map(Some)
}
