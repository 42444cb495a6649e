//! One connection: whole messages in both directions, with at most one descriptor beside a message.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::codec::{self, CodecError, Decoder};
use crate::messages::{MAX_MESSAGE_BYTES, MAX_REPLY_BYTES, Message};
use crate::peer_fd::PeerFd;

/// Most descriptors taken from one read; whatever a peer sends beyond is closed.
const MAX_FDS: usize = 4;

/// Why a message could not be exchanged.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The bytes are not a message.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The socket failed.
    #[error("socket: {0}")]
    Io(#[from] io::Error),
}

/// A Unix stream that carries messages.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    decoder: Decoder,
    fds: Vec<PeerFd>,
}

impl Connection {
    /// Wraps the daemon's end of a stream, where requests arrive.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        Self::with_limit(stream, MAX_MESSAGE_BYTES)
    }

    /// Wraps a client's end of a stream, where replies arrive.
    #[must_use]
    pub fn of_client(stream: UnixStream) -> Self {
        Self::with_limit(stream, MAX_REPLY_BYTES)
    }

    fn with_limit(stream: UnixStream, limit: usize) -> Self {
        Self {
            stream,
            decoder: Decoder::with_limit(limit),
            fds: Vec::new(),
        }
    }

    /// The stream below, for `shutdown` and peer credentials.
    #[must_use]
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Descriptors that arrived so far; the caller owns them.
    pub fn take_fds(&mut self) -> Vec<PeerFd> {
        std::mem::take(&mut self.fds)
    }

    /// Sends one message.
    ///
    /// # Errors
    /// A message over the limit, or a broken socket.
    pub async fn send<T: Serialize + Message>(&self, message: &T) -> Result<(), ConnectionError> {
        self.send_bytes(&codec::encode(message)?, None)
            .await
            .map_err(Into::into)
    }

    /// Sends one message with a descriptor beside it (`SCM_RIGHTS`).
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub async fn send_with_fd<T: Serialize + Message>(
        &self,
        message: &T,
        fd: BorrowedFd<'_>,
    ) -> Result<(), ConnectionError> {
        self.send_bytes(&codec::encode(message)?, Some(fd))
            .await
            .map_err(Into::into)
    }

    /// The next message; `None` when the peer closed between two messages.
    ///
    /// # Errors
    /// Malformed or oversized messages, an end inside a message, a broken socket.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ConnectionError> {
        match self.receive_body().await? {
            Some(body) => Ok(Some(codec::parse(&body)?)),
            None => Ok(None),
        }
    }

    /// The next message as bytes. Cancel-safe: a half-read message is kept for the next call.
    ///
    /// # Errors
    /// As [`Connection::receive`], but for the JSON.
    pub async fn receive_body(&mut self) -> Result<Option<Vec<u8>>, ConnectionError> {
        let mut chunk = [0u8; 4096];
        loop {
            let want = self.decoder.needs().min(chunk.len());
            self.stream.readable().await?;
            let fds = &mut self.fds;
            let stream = &self.stream;
            let got = stream.try_io(Interest::READABLE, || {
                receive_into(stream.as_fd(), &mut chunk[..want], fds)
            });
            match got {
                Ok(0) => return self.decoder.finish().map(|()| None).map_err(Into::into),
                Ok(n) => {
                    if let Some(body) = self.decoder.feed(&mut &chunk[..n])? {
                        return Ok(Some(body));
                    }
                }
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    async fn send_bytes(&self, bytes: &[u8], mut fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            self.stream.writable().await?;
            let sent = self
                .stream
                .try_io(Interest::WRITABLE, || send_from(self.stream.as_fd(), rest, fd));
            match sent {
                Ok(n) => {
                    rest = &rest[n..];
                    fd = None;
                }
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

fn send_from(socket: BorrowedFd<'_>, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<_> = fd.into_iter().collect();
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("no room for the descriptor"));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    Ok(rustix::net::sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        flags,
    )?)
}

fn receive_into(socket: BorrowedFd<'_>, buffer: &mut [u8], fds: &mut Vec<PeerFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let message = rustix::net::recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, flags)?;
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            // All are taken out, for what stays behind is closed on this thread.
            let received: Vec<_> = received.map(PeerFd::new).collect();
            let room = MAX_FDS.saturating_sub(fds.len());
            fds.extend(received.into_iter().take(room));
        }
    }
    Ok(message.bytes)
}
