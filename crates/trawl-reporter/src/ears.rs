//! Hearing of a new record at once, instead of at the next look.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Weak};

use rustix::fs::inotify;
use rustix::io::Errno;
use tokio::sync::Notify;

/// The kernel's notices of new names in one directory. A notice says only that a look is worth it.
pub struct Ears(Arc<Notify>);

impl Ears {
    /// Listens to `directory` from now on, in a thread that sleeps in the kernel.
    ///
    /// # Errors
    /// When the kernel has no inotify instance to spare, or the directory is not there.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let fd = inotify::init(inotify::CreateFlags::CLOEXEC)?;
        let names = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
        inotify::add_watch(&fd, directory, names | inotify::WatchFlags::ONLYDIR)?;
        let heard = Arc::new(Notify::new());
        let listener = Arc::downgrade(&heard);
        std::thread::Builder::new()
            .name("ears".into())
            .spawn(move || listen(&fd, &listener))?;
        Ok(Self(heard))
    }

    /// Resolves when something was added since the last call, however much it was.
    pub async fn heard(&self) {
        self.0.notified().await;
    }
}

fn listen(fd: &OwnedFd, listener: &Weak<Notify>) {
    let mut buffer = [0; 4096];
    loop {
        match rustix::io::read(fd, &mut buffer) {
            Ok(_) => match listener.upgrade() {
                Some(heard) => heard.notify_one(),
                None => return,
            },
            Err(Errno::INTR) => {}
            Err(error) => {
                tracing::warn!(%error, "no more notice of new records; looking at intervals");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const AT_ONCE: Duration = Duration::from_secs(5);
    const A_WHILE: Duration = Duration::from_millis(100);

    #[tokio::test]
    async fn a_new_name_is_heard_and_silence_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let ears = Ears::open(directory.path()).unwrap();
        assert!(
            timeout(A_WHILE, ears.heard()).await.is_err(),
            "heard nothing happen"
        );
        // Written elsewhere: two names in the directory could be heard one after the other.
        let elsewhere = tempfile::tempdir().unwrap();
        let new = elsewhere.path().join(".new");
        std::fs::write(&new, "record").unwrap();
        std::fs::hard_link(&new, directory.path().join("record")).unwrap();
        timeout(AT_ONCE, ears.heard()).await.unwrap();
        assert!(
            timeout(A_WHILE, ears.heard()).await.is_err(),
            "heard the same twice"
        );
        std::fs::rename(&new, directory.path().join("other")).unwrap();
        timeout(AT_ONCE, ears.heard()).await.unwrap();
    }

    #[tokio::test]
    async fn what_happens_between_two_calls_is_heard_by_the_second() {
        let directory = tempfile::tempdir().unwrap();
        let ears = Ears::open(directory.path()).unwrap();
        std::fs::write(directory.path().join("record"), "").unwrap();
        timeout(AT_ONCE, ears.heard()).await.unwrap();
    }

    #[tokio::test]
    async fn a_directory_that_is_not_there_is_an_error_and_no_silence() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Ears::open(&directory.path().join("none")).is_err());
    }
}
