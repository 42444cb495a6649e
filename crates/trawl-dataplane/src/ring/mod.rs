//! The rings, and with them all `unsafe` of this crate.

mod bpf;
pub mod device;
pub(crate) mod ethtool;
mod holds;
mod log;
pub mod memory;
mod nic_losses;
pub(crate) mod send;
#[cfg(test)]
pub(crate) mod test_memory;
mod timeline;
pub mod tpacket;
pub mod xdp;

use std::io;
use std::os::fd::OwnedFd;

use trawl_control::CaptureMode;

/// What may be chosen of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingOptions {
    /// Memory for frames that stay after they were received, for all queues of the interface, in bytes. Rounded up
    /// to what a queue needs at least.
    pub history_bytes: u64,
    /// AF_PACKET: sockets among which flows are spread, each served by a thread; 0 and 1 are one.
    pub node_threads: u32,
    /// AF_XDP: look into the driver for so many microseconds instead of waiting for its interrupt.
    pub busy_poll_us: Option<u32>,
}

/// The receive queues of an interface.
#[derive(Debug)]
pub struct Opened<Q> {
    /// What must live as long as the queues. Dropped first.
    pub guard: Guard,
    /// In the order of their numbers.
    pub queues: Vec<Q>,
    /// How frames arrive, as read back from the sockets.
    pub mode: CaptureMode,
    /// Why each better mode was refused, and what else is not as it should be.
    pub refusals: Vec<String>,
}

/// The program's attachment and promiscuous mode: both end with their descriptors.
#[derive(Debug)]
pub struct Guard {
    _descriptors: Vec<OwnedFd>,
}

impl Guard {
    pub(crate) fn of(descriptors: impl IntoIterator<Item = OwnedFd>) -> Self {
        Self {
            _descriptors: descriptors.into_iter().collect(),
        }
    }
}

/// Why a ring could not be opened. Messages say what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No interface of that name in this network namespace.
    #[error(
        "interface {0} does not exist here; check the name with `ip link`, and that the daemon runs in the node's network namespace"
    )]
    NoSuchInterface(String),
    /// The kernel refuses for want of a capability.
    #[error(
        "no permission to {step} on {interface}; the process needs CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF and CAP_IPC_LOCK"
    )]
    NotPermitted {
        /// Interface name.
        interface: String,
        /// What was attempted.
        step: &'static str,
    },
    /// Not something that carries Ethernet frames.
    #[error("interface {0} does not carry Ethernet frames; name an Ethernet interface")]
    NotEthernet(String),
    /// No way of receiving was accepted.
    #[error("interface {interface} cannot be opened by AF_XDP: {}", refusals.join("; "))]
    NoMode {
        /// Interface name.
        interface: String,
        /// Each refusal, best mode first.
        refusals: Vec<String>,
    },
    /// Anything else.
    #[error("cannot {step} on {interface}: {source}")]
    System {
        /// Interface name.
        interface: String,
        /// What was attempted.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn at(interface: &str, step: &'static str, source: io::Error) -> Self {
        let interface = interface.to_owned();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted { interface, step },
            Some(libc::ENODEV | libc::ENXIO) => Self::NoSuchInterface(interface),
            _ => Self::System {
                interface,
                step,
                source,
            },
        }
    }
}
