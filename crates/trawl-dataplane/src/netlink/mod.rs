//! Questions to the kernel by netlink: links, addresses, routes, and what a driver can do for XDP.
//!
//! Only the few attributes that are needed are read, and unknown ones are passed over: the messages of newer kernels
//! are longer, never different. Every answer is about the network namespace in which the socket was opened.

pub(crate) mod driver;
pub(crate) mod link;
mod message;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

pub(crate) use message::{Message, attributes, text, word};

use crate::ring::device::set_option;

const ROUTE: u32 = 0;
const GENERIC: u32 = 16;
const SOL_NETLINK: i32 = 270;
const NETLINK_EXT_ACK: i32 = 11;
/// The kernel answers in the same call; this only bounds a kernel that does not.
const PATIENCE: Duration = Duration::from_secs(5);
const ROOM: usize = 1 << 17;
/// Tries at a list that changed while it was read.
const TRIES: usize = 4;

/// What the kernel refused, with its own words when it has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The error number.
    pub errno: i32,
    /// The kernel's explanation.
    pub words: Option<String>,
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = io::Error::from_raw_os_error(self.errno);
        match &self.words {
            Some(words) => write!(f, "{system}: {words}"),
            None => system.fmt(f),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(e: io::Error) -> Self {
        Self {
            errno: e.raw_os_error().unwrap_or(libc::EIO),
            words: None,
        }
    }
}

impl From<rustix::io::Errno> for Refusal {
    fn from(e: rustix::io::Errno) -> Self {
        io::Error::from(e).into()
    }
}

/// A socket to the kernel.
#[derive(Debug)]
pub(crate) struct Netlink {
    fd: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Links, addresses, routes.
    pub(crate) fn route() -> Result<Self, Refusal> {
        Self::open(ROUTE)
    }

    /// Generic netlink.
    pub(crate) fn generic() -> Result<Self, Refusal> {
        Self::open(GENERIC)
    }

    fn open(family: u32) -> Result<Self, Refusal> {
        let protocol = std::num::NonZeroU32::new(family).map(Protocol::from_raw);
        let fd = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        set_socket_timeout(&fd, Timeout::Recv, Some(PATIENCE))?;
        // Without it refusals are numbers alone, which is bearable.
        let _ = set_option(fd.as_fd(), SOL_NETLINK, NETLINK_EXT_ACK, &1i32);
        Ok(Self { fd, sequence: 0 })
    }

    /// Sends a request and returns the bodies of the answers, headers of the family included.
    pub(crate) fn ask(&mut self, request: Message) -> Result<Vec<Vec<u8>>, Refusal> {
        let mut bytes = request.finish();
        for _ in 1..TRIES {
            match self.exchange(&mut bytes) {
                Err(e) if e.errno == libc::EINTR => {}
                other => return other,
            }
        }
        self.exchange(&mut bytes)
    }

    fn exchange(&mut self, bytes: &mut [u8]) -> Result<Vec<Vec<u8>>, Refusal> {
        self.sequence += 1;
        message::number(bytes, self.sequence);
        rustix::net::send(&self.fd, bytes, SendFlags::empty())?;
        let (mut answers, mut room, mut changed) = (Vec::new(), vec![0; ROOM], false);
        loop {
            let (_, length) = rustix::net::recv(&self.fd, &mut room[..], RecvFlags::TRUNC)?;
            let received = room.get(..length).ok_or(Refusal {
                errno: libc::EMSGSIZE,
                words: None,
            })?;
            for part in message::parts(received) {
                if part.sequence != self.sequence {
                    continue;
                }
                changed |= part.interrupted;
                match part.end()? {
                    true if changed => return Err(rustix::io::Errno::INTR.into()),
                    true => return Ok(answers),
                    false => answers.push(part.body.to_vec()),
                }
            }
        }
    }
}
