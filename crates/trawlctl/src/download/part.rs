//! The unfinished file: `<output>.part`, private, held by one download at a time, with its hash so far.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, Mode, OFlags, RenameFlags};
use sha2::{Digest, Sha256};
use trawl_artifact::verify::hex;

use crate::Failure;

/// A private file that grows, and what has been hashed of it.
pub struct Part {
    file: File,
    path: PathBuf,
    output: PathBuf,
    hash: Sha256,
    len: u64,
    /// Bytes that an earlier run left.
    inherited: u64,
}

impl Part {
    /// Creates `<output>.part`, or takes up the one that an earlier download of this user left.
    pub fn open(output: &Path) -> Result<Self, Failure> {
        let mut path = output.as_os_str().to_owned();
        path.push(".part");
        let path = PathBuf::from(path);
        let fail = |error: io::Error| {
            Failure::new(format!("cannot write {}: {error}", path.display()))
                .hint("is the directory there, writable, and on a disk with space?")
        };
        let private = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fresh = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, private);
        let (fd, fresh) = match fresh {
            Ok(fd) => (fd, true),
            Err(rustix::io::Errno::EXIST) => {
                let fd = rustix::fs::open(&path, flags, Mode::empty());
                (fd.map_err(|error| not_ours(&path, &error.to_string()))?, false)
            }
            Err(error) => return Err(fail(error.into())),
        };
        if !fresh {
            check_ours(
                &path,
                &rustix::fs::fstat(&fd).map_err(|error| fail(error.into()))?,
            )?;
        }
        rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            Failure::usage(format!("{} is in use by another download", path.display()))
                .hint("wait for it, or choose another --output")
        })?;
        let mut part = Self {
            file: File::from(fd),
            path: path.clone(),
            output: output.into(),
            hash: Sha256::new(),
            len: 0,
            inherited: 0,
        };
        part.take_up().map_err(fail)?;
        Ok(part)
    }

    /// Hashes what is there already.
    fn take_up(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let count = self.file.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            self.hash.update(&buffer[..count]);
            self.len += count as u64;
        }
        self.inherited = self.len;
        Ok(())
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether an earlier run's bytes are part of this file: if the hash is wrong, they may be to blame.
    pub fn has_inherited(&self) -> bool {
        self.inherited > 0
    }

    /// Appends; on an error nothing of `bytes` counts.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Begins anew.
    pub fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.hash = Sha256::new();
        self.len = 0;
        self.inherited = 0;
        Ok(())
    }

    /// Lower-case hex of what is there.
    pub fn sha256(&self) -> String {
        hex(&self.hash.clone().finalize())
    }

    /// Gives the file its final name, which must still be free. It is on the disk before the name is.
    pub fn publish(self) -> Result<(), Failure> {
        let fail = |error: io::Error| {
            Failure::new(format!("cannot finish {}: {error}", self.output.display()))
                .hint(format!("the verified bytes are in {}", self.path.display()))
        };
        self.file.sync_all().map_err(fail)?;
        rename_if_free(&self.path, &self.output).map_err(fail)?;
        let directory = self
            .output
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(fail)
    }

    /// Removes the file when there is nothing in it to go on with.
    pub fn discard_if_empty(self) {
        if self.len == 0 {
            self.discard();
        }
    }

    /// Removes the file: its bytes are wrong.
    pub fn discard(self) {
        // What cannot be removed is found wrong again by the next run.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn not_ours(path: &Path, problem: &str) -> Failure {
    Failure::usage(format!(
        "{} is not the rest of a download: {problem}",
        path.display()
    ))
    .hint("move it away, or choose another --output")
}

fn check_ours(path: &Path, stat: &rustix::fs::Stat) -> Result<(), Failure> {
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    if kind != rustix::fs::FileType::RegularFile {
        return Err(not_ours(path, "it is no ordinary file"));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(not_ours(path, "it belongs to another user"));
    }
    if stat.st_mode & 0o077 != 0 || stat.st_nlink != 1 {
        return Err(not_ours(path, "others can reach it"));
    }
    Ok(())
}

fn rename_if_free(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::{fs::CWD, io::Errno};
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems cannot refuse to replace, but all can refuse to link.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        result => result.map_err(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().expect("directory");
        let (output, part) = (dir.path().join("x.pcapng"), dir.path().join("x.pcapng.part"));
        (dir, output, part)
    }

    #[test]
    fn nothing_is_left_of_a_download_that_brought_nothing_and_everything_of_one_that_did() {
        let (_dir, output, path) = place();
        Part::open(&output).expect("part").discard_if_empty();
        assert!(!path.exists());
        let mut part = Part::open(&output).expect("part");
        part.append(b"ab").expect("append");
        part.discard_if_empty();
        assert!(path.exists());
    }

    #[test]
    fn the_unfinished_file_is_private_and_the_final_name_appears_only_at_the_end() {
        let (_dir, output, path) = place();
        let mut part = Part::open(&output).expect("part");
        part.append(b"abc").expect("append");
        assert_eq!(path.metadata().expect("part").mode() & 0o777, 0o600);
        assert!(!output.exists());
        part.publish().expect("publish");
        assert_eq!(std::fs::read(&output).expect("output"), b"abc");
        assert!(!path.exists());
    }

    #[test]
    fn an_interrupted_file_is_taken_up_with_its_hash() {
        let (_dir, output, _) = place();
        Part::open(&output).expect("part").append(b"ab").expect("append");
        let mut part = Part::open(&output).expect("again");
        assert_eq!((part.len(), part.has_inherited()), (2, true));
        part.append(b"c").expect("append");
        assert_eq!(
            part.sha256(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        part.restart().expect("restart");
        assert_eq!((part.len(), part.has_inherited()), (0, false));
        assert_eq!(
            part.sha256(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn a_file_that_appeared_meanwhile_is_not_replaced() {
        let (_dir, output, path) = place();
        let part = Part::open(&output).expect("part");
        std::fs::write(&output, b"precious").expect("write");
        assert!(part.publish().is_err());
        assert_eq!(std::fs::read(&output).expect("output"), b"precious");
        assert!(path.exists(), "what was fetched is kept");
    }

    #[test]
    fn only_a_private_ordinary_file_is_taken_up() {
        let (dir, output, path) = place();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, b"v").expect("write");
        symlink(&victim, &path).expect("symlink");
        assert!(Part::open(&output).is_err(), "a symlink");
        std::fs::remove_file(&path).expect("remove");
        std::fs::write(&path, b"x").expect("write");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("mode");
        assert!(Part::open(&output).is_err(), "readable by others");
        std::fs::remove_file(&path).expect("remove");
        std::fs::create_dir(&path).expect("directory");
        assert!(Part::open(&output).is_err(), "a directory");
        assert_eq!(std::fs::read(&victim).expect("victim"), b"v");
    }

    #[test]
    fn two_downloads_do_not_share_one_unfinished_file() {
        let (_dir, output, _) = place();
        let _first = Part::open(&output).expect("first");
        assert!(Part::open(&output).is_err());
    }
}
