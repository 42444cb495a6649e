//! The asking side. Every wait has a deadline, so that a stalled daemon never stalls its callers.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::connection::{Connection, ConnectionError};
use crate::messages::{
    Attach, AttachmentStatus, Capture, DaemonStatus, Detach, ErrorReply, Feed, FeedStatus, PROTOCOL_VERSION,
    Reply, Request, RequestBody, TapIdentity,
};

/// How long one answer may take unless told otherwise. Opening an interface may retry a busy queue for seconds.
pub const DEFAULT_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a request gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens at the socket, or this process may not open it.
    #[error(
        "cannot reach trawl-captured at {path}: {problem}; check that it runs on this node (`trawl-captured serve`) and that this process has the socket's group"
    )]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        problem: io::Error,
    },
    /// No answer in time.
    #[error("trawl-captured gave no answer within {0:?}")]
    Silent(Duration),
    /// The connection broke or carried nonsense.
    #[error("talking to trawl-captured: {0}")]
    Connection(#[from] ConnectionError),
    /// The daemon closed the connection before its last word: it stopped or was killed.
    #[error("trawl-captured closed the connection before the request was finished")]
    Closed,
    /// The daemon refused; code, field and message say why.
    #[error("trawl-captured refused: {}", .0.message)]
    Refused(ErrorReply),
    /// The daemon answered with a reply that does not belong to the request.
    #[error("trawl-captured answered with a reply of another request")]
    Unexpected,
}

/// Speaks to one daemon. Opens one connection per request.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    answer: Duration,
}

impl Client {
    /// A client of the daemon at `socket`.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
            answer: DEFAULT_ANSWER_TIMEOUT,
        }
    }

    /// The same client with another limit for each answer.
    #[must_use]
    pub fn with_answer_timeout(mut self, limit: Duration) -> Self {
        self.answer = limit;
        self
    }

    /// The socket that this client asks.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Opens an interface for a tap; keep the returned guard as long as the tap lives.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn attach(&self, request: Attach) -> Result<Attachment, ClientError> {
        let mut connection = self.ask(RequestBody::Attach(request)).await?;
        match self.answer(&mut connection).await? {
            Reply::Attached(status) => Ok(Attachment { connection, status }),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Closes a tap's interface at once.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn detach(&self, tap: TapIdentity) -> Result<(), ClientError> {
        let mut connection = self.ask(RequestBody::Detach(Detach { tap })).await?;
        match self.answer(&mut connection).await? {
            Reply::Detached => Ok(()),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Everything that the daemon knows of its attachments.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status(&self) -> Result<DaemonStatus, ClientError> {
        let mut connection = self.ask(RequestBody::Status).await?;
        match self.answer(&mut connection).await? {
            Reply::Status(status) => Ok(status),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Starts a capture into `output`. The replies come from the first half; the second half cancels. Dropping the
    /// replies hangs up, which ends the capture as well, but then nobody hears its summary.
    ///
    /// # Errors
    /// See [`ClientError`]; refusals arrive as the first reply, through [`Replies::next`].
    pub async fn capture(
        &self,
        request: Capture,
        output: impl AsFd,
    ) -> Result<(Replies, CancelHandle), ClientError> {
        let connection = self.hand_over(RequestBody::Capture(request), output).await?;
        let stream = connection
            .stream()
            .as_fd()
            .try_clone_to_owned()
            .map_err(ConnectionError::Io)?;
        Ok((
            Replies {
                connection,
                limit: self.answer,
                ended: false,
            },
            CancelHandle {
                stream: Arc::new(stream),
            },
        ))
    }

    /// Makes captured send a copy of everything that an attachment receives into `namespace`, which is a descriptor of a
    /// network namespace (of `/proc/self/ns/net`, say), under the interface name in the request. Keep the returned guard
    /// as long as the feed is wanted.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn feed(&self, request: Feed, namespace: impl AsFd) -> Result<Fed, ClientError> {
        let mut connection = self.hand_over(RequestBody::Feed(request), namespace).await?;
        match self.answer(&mut connection).await? {
            Reply::Fed(status) => Ok(Fed { connection, status }),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Sends a request with its descriptor. A refusal is left to be read as the first reply.
    async fn hand_over(&self, body: RequestBody, fd: impl AsFd) -> Result<Connection, ClientError> {
        let connection = self.connect().await?;
        let message = Request {
            version: PROTOCOL_VERSION,
            body,
        };
        let sent = connection.send_with_fd(&message, fd.as_fd());
        timeout(self.answer, sent)
            .await
            .map_err(|_| ClientError::Silent(self.answer))??;
        Ok(connection)
    }

    async fn connect(&self) -> Result<Connection, ClientError> {
        let connected = timeout(self.answer, UnixStream::connect(&self.socket)).await;
        let stream = connected.map_err(|_| ClientError::Silent(self.answer))?;
        let stream = stream.map_err(|problem| ClientError::Unreachable {
            path: self.socket.clone(),
            problem,
        })?;
        Ok(Connection::of_client(stream))
    }

    async fn ask(&self, body: RequestBody) -> Result<Connection, ClientError> {
        let mut connection = self.connect().await?;
        let message = Request {
            version: PROTOCOL_VERSION,
            body,
        };
        let sent = timeout(self.answer, connection.send(&message)).await;
        let sent = sent.map_err(|_| ClientError::Silent(self.answer))?;
        self.or_its_refusal(sent, &mut connection).await?;
        Ok(connection)
    }

    /// A daemon that refuses a peer may close before the request was sent; what it said can still be read.
    async fn or_its_refusal(
        &self,
        sent: Result<(), ConnectionError>,
        connection: &mut Connection,
    ) -> Result<(), ClientError> {
        let Err(failure) = sent else { return Ok(()) };
        match self.answer(connection).await {
            Err(ClientError::Refused(refusal)) => Err(ClientError::Refused(refusal)),
            _ => Err(failure.into()),
        }
    }

    async fn answer(&self, connection: &mut Connection) -> Result<Reply, ClientError> {
        next_reply(connection, self.answer)
            .await?
            .ok_or(ClientError::Closed)
    }
}

async fn next_reply(connection: &mut Connection, limit: Duration) -> Result<Option<Reply>, ClientError> {
    let received = timeout(limit, connection.receive::<Reply>()).await;
    match received.map_err(|_| ClientError::Silent(limit))?? {
        Some(Reply::Error(refusal)) => Err(ClientError::Refused(refusal)),
        other => Ok(other),
    }
}

/// Keeps an attachment alive. Dropping it starts the linger time of the daemon; [`Client::detach`] ends it at once.
#[derive(Debug)]
pub struct Attachment {
    connection: Connection,
    status: AttachmentStatus,
}

impl Attachment {
    /// What was attached, as it stood when the daemon answered.
    #[must_use]
    pub fn status(&self) -> &AttachmentStatus {
        &self.status
    }

    /// Returns when the daemon ended the attachment: it stopped, was killed, or another client detached the tap.
    pub async fn closed(&mut self) -> ClientError {
        last_word(&mut self.connection).await
    }
}

/// Keeps an analyzer's feed alive. Dropping it removes the feed's interface.
#[derive(Debug)]
pub struct Fed {
    connection: Connection,
    status: FeedStatus,
}

impl Fed {
    /// The feed, as it stood when the daemon answered.
    #[must_use]
    pub fn status(&self) -> &FeedStatus {
        &self.status
    }

    /// Returns when the daemon ended the feed: its attachment was closed, the interface was removed from inside the
    /// namespace, or the daemon stopped.
    pub async fn closed(&mut self) -> ClientError {
        last_word(&mut self.connection).await
    }
}

async fn last_word(connection: &mut Connection) -> ClientError {
    match connection.receive::<Reply>().await {
        Ok(Some(Reply::Error(refusal))) => ClientError::Refused(refusal),
        Ok(Some(_)) => ClientError::Unexpected,
        Ok(None) => ClientError::Closed,
        Err(e) => e.into(),
    }
}

/// The replies of one capture, in order.
#[derive(Debug)]
pub struct Replies {
    connection: Connection,
    limit: Duration,
    ended: bool,
}

impl Replies {
    /// The next reply; `None` after `Ended`. An error is the last word as well.
    ///
    /// # Errors
    /// [`ClientError::Refused`] for an error reply, [`ClientError::Closed`] when the daemon went away before
    /// `Ended`, [`ClientError::Silent`] when it sent nothing for too long.
    pub async fn next(&mut self) -> Result<Option<Reply>, ClientError> {
        if self.ended {
            return Ok(None);
        }
        let reply = next_reply(&mut self.connection, self.limit).await;
        self.ended = matches!(reply, Err(_) | Ok(None | Some(Reply::Ended(_))));
        match reply? {
            None => Err(ClientError::Closed),
            some => Ok(some),
        }
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        // A cancel handle shares the socket and may live on; only this makes the daemon see a hang-up.
        let _ = rustix::net::shutdown(self.connection.stream(), rustix::net::Shutdown::Both);
    }
}

/// Cancels a capture. May be cloned into a signal handler; dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct CancelHandle {
    stream: Arc<std::os::fd::OwnedFd>,
}

impl CancelHandle {
    /// Half-closes the connection: the daemon finishes the file and still sends `Ended`.
    ///
    /// # Errors
    /// What the system says of the socket, for example that it is closed already.
    pub fn cancel(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Write)?)
    }
}
