//! AF_XDP on a mirror interface (Linux 5.11 and later; jumbo frames 6.6). Needs CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF, and
//! CAP_IPC_LOCK or room in RLIMIT_MEMLOCK for the frames.
//!
//! Tries zero-copy, then the driver's copy mode, then generic mode, and reports what the sockets say they have; a mode
//! that one queue refuses is refused for all. Each frame is stamped by the XDP program at its redirect. Frames reach
//! the fill rings before the sockets are entered into the program's map, so none is redirected to a socket without room.

mod plan;
mod queue;
mod region;
mod socket;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use trawl_control::CaptureMode;
use xsk_rs::config::BindFlags;

use super::bpf::{Hook, Redirect};
use super::device::{self, Link};
use super::ethtool::Ethtool;
use super::nic_losses::NicLosses;
use super::{Guard, OpenError, Opened, RingOptions, tpacket};
use crate::interface::{InterfaceName, MirrorInterface};
use plan::Plan;
pub use queue::XdpQueue;
use socket::{Bound, FrameMemory};

/// How long queues and the hook may stay busy after their last owner closed them.
const BUSY: Duration = Duration::from_secs(3);

type Step<T> = Result<T, (&'static str, io::Error)>;

/// Opens every receive queue of a mirror interface, in the best mode that all of them take.
///
/// # Errors
/// See [`OpenError`].
pub fn open(interface: &MirrorInterface, options: &RingOptions) -> Result<Opened<XdpQueue>, OpenError> {
    let name = interface.0.as_str();
    let link = look(&interface.0)?;
    let tool = Ethtool::open().map_err(|e| OpenError::at(name, "ask the driver", e))?;
    let queues = tool.receive_queues(&interface.0).unwrap_or(1).max(1);
    let mtu = device::mtu(&interface.0).map_err(|e| OpenError::at(name, "read the MTU", e))?;
    // Not every driver tells its name, and none is as good as an unknown one.
    let driver = tool
        .driver(&interface.0)
        .map_or_else(|_| String::new(), |driver| driver.name);
    let mut refusals = Vec::new();
    if let Err(e) = tool.keep_vlan_tags(&interface.0) {
        refusals.push(format!(
            "VLAN tags are cut off by the NIC (rx-vlan-offload cannot be turned off: {e})"
        ));
    }
    let mut attempt = Attempt {
        name,
        link,
        plan: Plan::new(mtu, &driver, options.history_bytes, queues),
        options,
        memories: (0..queues).map(|_| None).collect(),
        patience: Instant::now() + BUSY,
    };
    for rung in RUNGS {
        match attempt.open(&rung) {
            Ok((queues, mode, guard)) => {
                return Ok(Opened {
                    guard,
                    queues,
                    mode,
                    refusals,
                });
            }
            Err((step, e)) if e.raw_os_error() == Some(libc::EPERM) => {
                return Err(OpenError::at(name, step, e));
            }
            Err((step, e)) => {
                refusals.push(format!(
                    "{}: {}",
                    rung.mode.as_str(),
                    explain(step, &e, name, attempt.plan.several_buffers)
                ));
            }
        }
    }
    Err(OpenError::NoMode {
        interface: name.into(),
        refusals,
    })
}

fn look(interface: &InterfaceName) -> Result<Link, OpenError> {
    let name = interface.as_str();
    let found = device::link(interface).map_err(|e| OpenError::at(name, "look at the link", e))?;
    let link = found.ok_or_else(|| OpenError::NoSuchInterface(name.into()))?;
    if !link.ethernet || link.loopback {
        return Err(OpenError::NotEthernet(name.into()));
    }
    Ok(link)
}

struct Rung {
    mode: CaptureMode,
    hook: Hook,
    bind: BindFlags,
}

const RUNGS: [Rung; 3] = [
    Rung {
        mode: CaptureMode::ZeroCopy,
        hook: Hook::Driver,
        bind: BindFlags::XDP_ZEROCOPY,
    },
    Rung {
        mode: CaptureMode::Copy,
        hook: Hook::Driver,
        bind: BindFlags::XDP_COPY,
    },
    Rung {
        mode: CaptureMode::Generic,
        hook: Hook::Generic,
        bind: BindFlags::XDP_COPY,
    },
];

struct Attempt<'a> {
    name: &'a str,
    link: Link,
    plan: Plan,
    options: &'a RingOptions,
    /// What was registered for a rung that then failed serves the next one.
    memories: Vec<Option<FrameMemory>>,
    patience: Instant,
}

impl Attempt<'_> {
    fn open(&mut self, rung: &Rung) -> Step<(Vec<XdpQueue>, CaptureMode, Guard)> {
        let count = self.memories.len() as u32;
        let redirect =
            Redirect::load(count, self.plan.several_buffers).map_err(|e| ("load the XDP program", e))?;
        let link = while_busy(self.patience, || redirect.attach(self.link.index, rung.hook))
            .map_err(|e| ("attach the XDP program", e))?;
        let bound: Vec<Bound> = (0..count)
            .map(|queue| self.bind(queue, rung))
            .collect::<Step<_>>()?;
        let mut mode = rung.mode;
        for socket in &bound {
            mode = socket
                .mode(rung.hook)
                .map_err(|e| ("read the socket's mode", e))?;
        }
        let promiscuous = promiscuous(self.link).map_err(|e| ("enter promiscuous mode", e))?;
        let losses = NicLosses::open(self.link.index).ok();
        for (queue, socket) in (0..).zip(&bound) {
            redirect
                .serve(queue, socket.fd())
                .map_err(|e| ("enter the socket into the program's map", e))?;
            socket.wake_driver();
        }
        let counts = Arc::new(redirect.into_counts());
        let mut queues: Vec<_> = (0..)
            .zip(bound)
            .map(|(queue, socket)| XdpQueue::new(queue, socket, &self.plan, Arc::clone(&counts)))
            .collect();
        if let (Some(first), Some(losses)) = (queues.first_mut(), losses) {
            first.report_nic(losses);
        }
        Ok((queues, mode, Guard::of([link, promiscuous])))
    }

    fn bind(&mut self, queue: u32, rung: &Rung) -> Step<Bound> {
        let place = &mut self.memories[queue as usize];
        let memory = match place.take() {
            Some(memory) => memory,
            None => FrameMemory::register(&self.plan).map_err(|e| ("register frame memory", e))?,
        };
        let socket = while_busy(self.patience, || {
            memory.bind(self.name, queue, rung.bind, &self.plan)
        });
        match socket {
            Ok(rings) => {
                Bound::new(memory, rings, &self.plan, self.options).map_err(|e| ("set up the socket", e))
            }
            Err(e) => {
                *place = Some(memory);
                Err(("bind the AF_XDP socket", e))
            }
        }
    }
}

/// A packet socket that receives nothing and only holds the interface in promiscuous mode.
fn promiscuous(link: Link) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    tpacket::promiscuous(socket.as_fd(), link)?;
    Ok(socket)
}

fn while_busy<T>(patience: Instant, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(e)
                if matches!(e.raw_os_error(), Some(libc::EBUSY | libc::EAGAIN))
                    && Instant::now() < patience =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            result => return result,
        }
    }
}

fn explain(step: &str, error: &io::Error, name: &str, several_buffers: bool) -> String {
    let advice = match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::EINVAL) if several_buffers => {
            "; the driver or the kernel (before 6.6) does not take frames of several buffers: an MTU up to 3478 needs one only"
        }
        Some(libc::EOPNOTSUPP) => "; the driver does not support it",
        Some(libc::EBUSY | libc::EEXIST) => {
            "; another program holds the interface: find it with `ip link` or `bpftool net`"
        }
        Some(libc::ENOBUFS | libc::ENOMEM) => {
            "; give the process CAP_IPC_LOCK or a higher RLIMIT_MEMLOCK, or less history"
        }
        Some(libc::ERANGE | libc::E2BIG) => "; the MTU is too large for it",
        Some(libc::ENETDOWN) => "; bring the interface up with `ip link set up`",
        _ => "",
    };
    format!("cannot {step} on {name}: {error}{advice}")
}
