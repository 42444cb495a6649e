//! The capture file as the runner finds it: measured, and cut to its whole packets when its writer died.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use trawl_artifact::{Measured, Verifier};

/// Bytes read at a time.
const CHUNK: usize = 256 * 1024;

/// The capture file for reading and cutting. captured writes through a duplicate of the runner's own descriptor, and
/// duplicates share one position: a daemon that fell silent without having stopped would write wherever the reader stands.
pub(crate) fn reader(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_writer_that_is_still_there_keeps_its_place_while_the_file_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let mut writer = File::create_new(&path).unwrap();
        writer.write_all(b"0123456789").unwrap();
        let mut reader = reader(&path).unwrap();
        reader.seek(SeekFrom::Start(2)).unwrap();
        writer.write_all(b"ab").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"0123456789ab");
    }
}
