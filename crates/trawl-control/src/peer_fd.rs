//! Descriptors that came from peers.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Room for a thread that only closes.
const STACK: usize = 64 << 10;
const HELD: &str = "it is held until it is taken or dropped, which both consume it";

/// A descriptor that came from a peer. Closing one asks the file system that the peer chose, which may not answer: a
/// thread of its own waits for that, and nobody else.
#[derive(Debug)]
pub struct PeerFd(Option<OwnedFd>);

impl PeerFd {
    /// Takes over what was received.
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        Self(Some(fd))
    }

    /// The descriptor itself, for a thread that may wait when it is closed: not an async worker.
    #[must_use]
    pub fn take(mut self) -> OwnedFd {
        self.0.take().expect(HELD)
    }
}

impl AsFd for PeerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_ref().expect(HELD).as_fd()
    }
}

impl Drop for PeerFd {
    fn drop(&mut self) {
        if let Some(fd) = self.0.take() {
            let closer = std::thread::Builder::new()
                .name("trawl-close".into())
                .stack_size(STACK);
            // When there is no thread to be had it is closed here: better late than leaked.
            let _ = closer.spawn(move || drop(fd));
        }
    }
}
