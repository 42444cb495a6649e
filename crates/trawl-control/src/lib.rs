//! The control protocol of captured: messages, framing, descriptor passing, client and server.
//!
//! One Unix stream socket, one request per connection. Each message is a 4-byte big-endian length
//! followed by that many bytes of JSON (at most [`MAX_MESSAGE_BYTES`], in replies [`MAX_REPLY_BYTES`]). The client sends one [`Request`];
//! the daemon answers with one or more [`Reply`] messages. `docs/protocol.md` describes the whole exchange.
#![forbid(unsafe_code)]

pub mod client;
pub mod codec;
pub mod connection;
pub mod limits;
pub mod messages;
mod peer_fd;
pub mod server;

pub use client::{Attachment, CancelHandle, Client, ClientError, Fed, Replies};
pub use connection::{Connection, ConnectionError};
pub use messages::*;
pub use peer_fd::PeerFd;
