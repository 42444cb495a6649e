//! Frames as datagrams, which is how they reach a virtual machine.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::cli::Address;

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

/// A socket that sends to one other.
#[derive(Debug)]
pub(crate) struct DatagramSender {
    socket: Socket,
    /// The file that this socket has made.
    file: Option<PathBuf>,
}

impl DatagramSender {
    pub fn open(from: &Address, to: &Address) -> anyhow::Result<Self> {
        match (from, to) {
            (Address::Udp(from), Address::Udp(to)) => {
                let socket = UdpSocket::bind(from).with_context(|| format!("cannot send from {from}"))?;
                socket
                    .connect(to)
                    .with_context(|| format!("cannot send to {to}"))?;
                let socket = Socket::Udp(socket);
                Ok(Self { socket, file: None })
            }
            (Address::Unix(from), Address::Unix(to)) => Self::unix(from, to),
            _ => bail!("--from and --to must be of one kind, both UDP or both unix"),
        }
    }

    fn unix(from: &Path, to: &Path) -> anyhow::Result<Self> {
        let socket =
            UnixDatagram::bind(from).with_context(|| format!("cannot send from {}", from.display()))?;
        let sender = Self {
            socket: Socket::Unix(socket),
            file: Some(from.to_owned()),
        };
        if let Socket::Unix(socket) = &sender.socket {
            socket
                .connect(to)
                .with_context(|| format!("cannot send to {}", to.display()))?;
        }
        Ok(sender)
    }

    pub fn send(&self, frames: &[&[u8]]) -> anyhow::Result<()> {
        frames.iter().try_for_each(|frame| Ok(self.send_one(frame)?))
    }

    fn send_one(&self, frame: &[u8]) -> io::Result<()> {
        match &self.socket {
            Socket::Unix(socket) => socket.send(frame).map(drop),
            Socket::Udp(socket) => match socket.send(frame) {
                // Said of an earlier datagram: nobody listens yet, or not any more. Its number will be missing.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
                other => other.map(drop),
            },
        }
    }
}

impl Drop for DatagramSender {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = std::fs::remove_file(file);
        }
    }
}
