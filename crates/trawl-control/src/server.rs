//! The answering side: the listening socket, who may speak, and one request with a deadline.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use crate::codec::{self, CodecError};
use crate::connection::{Connection, ConnectionError};
use crate::messages::{ErrorCode, ErrorReply, PROTOCOL_VERSION, Request, RequestBody};
use crate::peer_fd::PeerFd;

/// A peer must have sent its request within this time.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(5);
/// A peer must take a reply within this time.
pub const REPLY_DEADLINE: Duration = Duration::from_secs(5);

/// Why the socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A daemon answers at the path.
    #[error("another trawl-captured listens at {0}; stop it first, or choose another --socket")]
    InUse(PathBuf),
    /// Something that is not a socket is at the path.
    #[error("{0} exists and is not a socket; remove it, or choose another --socket")]
    NotASocket(PathBuf),
    /// The group could not be given to the socket.
    #[error(
        "cannot give the socket {path} to group {group}: {source}; run the daemon with that supplementary group, or with CAP_CHOWN"
    )]
    Group {
        /// The socket.
        path: PathBuf,
        /// The wanted group.
        group: u32,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else, with the path.
    #[error("cannot listen at {path}: {source}; the directory must exist and be writable")]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The listening socket, mode 0660 with one group. Removed from the file system on drop.
#[derive(Debug)]
pub struct Listener {
    inner: UnixListener,
    _name: SocketName,
    group: Option<u32>,
}

/// Who is at the other end of a connection, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// Process, when the kernel knows it in this namespace.
    pub pid: Option<i32>,
}

/// A socket that is bound and not served yet. Making it needs no async runtime, so that a daemon can give away what it
/// needed for this before its threads start. Removed from the file system on drop.
#[derive(Debug)]
pub struct Bound {
    inner: std::os::unix::net::UnixListener,
    name: SocketName,
    group: Option<u32>,
}

/// A socket's name in the file system, which goes with it.
#[derive(Debug)]
struct SocketName(PathBuf);

impl Drop for SocketName {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Bound {
    /// Listens at `path`. The socket appears under its name only with its final mode and group; a socket that a
    /// dead daemon left is replaced.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn new(path: &Path, group: Option<u32>) -> Result<Self, BindError> {
        let io = |source| BindError::Io {
            path: path.to_owned(),
            source,
        };
        match std::fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(BindError::NotASocket(path.to_owned()));
            }
            Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
                return Err(BindError::InUse(path.to_owned()));
            }
            _ => {}
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let fresh = path.with_file_name(name);
        let _ = std::fs::remove_file(&fresh);
        let inner = std::os::unix::net::UnixListener::bind(&fresh).map_err(io)?;
        let ready = prepare(&fresh, group, path)
            .and_then(|()| inner.set_nonblocking(true).map_err(io))
            .and_then(|()| std::fs::rename(&fresh, path).map_err(io));
        if let Err(e) = ready {
            let _ = std::fs::remove_file(&fresh);
            return Err(e);
        }
        Ok(Self {
            inner,
            name: SocketName(path.to_owned()),
            group,
        })
    }

    /// Begins to serve; only inside of an async runtime.
    ///
    /// # Errors
    /// The runtime could not take the socket.
    pub fn listen(self) -> io::Result<Listener> {
        Ok(Listener {
            inner: UnixListener::from_std(self.inner)?,
            _name: self.name,
            group: self.group,
        })
    }
}

impl Listener {
    /// [`Bound::new`] and [`Bound::listen`] in one.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind(path: &Path, group: Option<u32>) -> Result<Self, BindError> {
        Bound::new(path, group)?.listen().map_err(|source| BindError::Io {
            path: path.to_owned(),
            source,
        })
    }

    /// Waits for the next peer.
    ///
    /// # Errors
    /// What the system says; out of descriptors is the usual one, so wait a moment before the next call.
    pub async fn accept(&self) -> io::Result<(Connection, Peer)> {
        let (stream, _) = self.inner.accept().await?;
        let peer = peer_of(&stream)?;
        Ok((Connection::new(stream), peer))
    }

    /// Whether a peer may ask: root, the daemon's own user, or a process whose group is the socket's.
    ///
    /// # Errors
    /// The reply to send when it may not.
    pub fn authorize(&self, peer: Peer) -> Result<(), ErrorReply> {
        let own = rustix::process::geteuid().as_raw();
        if peer.uid == 0 || peer.uid == own || self.group == Some(peer.gid) {
            return Ok(());
        }
        Err(ErrorReply {
            code: ErrorCode::NotAuthorized,
            field: None,
            message: format!(
                "user {} with group {} may not use this socket; run as root or with the socket's group as primary group",
                peer.uid, peer.gid
            ),
        })
    }
}

fn prepare(fresh: &Path, group: Option<u32>, path: &Path) -> Result<(), BindError> {
    if let Some(gid) = group {
        std::os::unix::fs::chown(fresh, None, Some(gid)).map_err(|source| BindError::Group {
            path: path.to_owned(),
            group: gid,
            source,
        })?;
    }
    std::fs::set_permissions(fresh, std::fs::Permissions::from_mode(0o660)).map_err(|source| BindError::Io {
        path: path.to_owned(),
        source,
    })
}

fn peer_of(stream: &UnixStream) -> io::Result<Peer> {
    let cred = stream.peer_cred()?;
    Ok(Peer {
        uid: cred.uid(),
        gid: cred.gid(),
        pid: cred.pid(),
    })
}

/// Reads the one request of a connection, within `deadline`. `Ok(None)`: the peer left without a word.
///
/// # Errors
/// The reply to send before the connection is closed.
pub async fn receive_request(
    connection: &mut Connection,
    deadline: Duration,
) -> Result<Option<(RequestBody, Option<PeerFd>)>, ErrorReply> {
    let body = match timeout(deadline, connection.receive_body()).await {
        Err(_) => {
            let limit = deadline.as_secs_f32();
            return Err(malformed(
                None,
                format!("no complete request within {limit} s; send it in one piece"),
            ));
        }
        Ok(Err(ConnectionError::Codec(e @ CodecError::TooLarge { .. }))) => {
            let message = e.to_string();
            return Err(ErrorReply {
                code: ErrorCode::MessageTooLarge,
                field: None,
                message,
            });
        }
        Ok(Err(ConnectionError::Codec(e))) => return Err(malformed(None, e.to_string())),
        Ok(Err(ConnectionError::Io(e))) => return Err(malformed(None, format!("the socket failed: {e}"))),
        Ok(Ok(None)) => return Ok(None),
        Ok(Ok(Some(body))) => body,
    };
    let request = read_request(&body)?;
    let mut fds = connection.take_fds();
    match (&request, fds.len()) {
        (RequestBody::Capture(_) | RequestBody::Feed(_), 1) => Ok(Some((request, fds.pop()))),
        (RequestBody::Capture(_), n) => Err(missing_descriptor("a capture", "output", n)),
        (RequestBody::Feed(_), n) => Err(missing_descriptor("a feed", "network namespace", n)),
        (_, 0) => Ok(Some((request, None))),
        (_, n) => Err(malformed(
            None,
            format!("only a capture or a feed carries a descriptor; {n} came"),
        )),
    }
}

fn missing_descriptor(what: &str, of: &str, came: usize) -> ErrorReply {
    ErrorReply {
        code: ErrorCode::MissingDescriptor,
        field: None,
        message: format!("{what} carries exactly 1 {of} descriptor (SCM_RIGHTS); {came} came"),
    }
}

/// Reads the body of a request: its version first, then the rest. Bytes in, request out.
///
/// # Errors
/// The reply to send.
pub fn read_request(body: &[u8]) -> Result<RequestBody, ErrorReply> {
    let value: serde_json::Value = codec::parse(body).map_err(|e| malformed(None, e.to_string()))?;
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(v) if v == u64::from(PROTOCOL_VERSION) => {}
        Some(v) => {
            return Err(ErrorReply {
                code: ErrorCode::UnsupportedVersion,
                field: Some("version".into()),
                message: format!(
                    "version {v} is not spoken here; this daemon speaks version {PROTOCOL_VERSION}"
                ),
            });
        }
        None => {
            let message = format!("version is missing or not a number; send {PROTOCOL_VERSION}");
            return Err(malformed(Some("version"), message));
        }
    }
    let request: Request = codec::parse(body).map_err(|e| malformed(Some("body"), e.to_string()))?;
    Ok(request.body)
}

fn malformed(field: Option<&str>, message: String) -> ErrorReply {
    ErrorReply {
        code: ErrorCode::MalformedRequest,
        field: field.map(Into::into),
        message,
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
