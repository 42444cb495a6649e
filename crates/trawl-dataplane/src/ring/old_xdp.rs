//! AF_XDP on a mirror interface (Linux 5.11 and later). Needs CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF, and CAP_IPC_LOCK or
//! room in RLIMIT_MEMLOCK for the frames.
//!
//! Tries zero-copy, then the driver's copy mode, then generic mode, and reports what the socket says it has. Each
//! frame is stamped by the XDP program at its redirect. Frames reach the fill ring before the socket is entered into
//! the program's map, so none is redirected to a socket without room.

use std::error::Error;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use trawl_control::CaptureMode;
use xsk_rs::config::{BindFlags, FrameSize, Interface, LibxdpFlags, QueueSize, SocketConfig, UmemConfig};
use xsk_rs::{CompQueue, FillQueue, FrameDesc, RxQueue, Socket, TxQueue, Umem};

use super::bpf::{Hook, Redirect, STAMP_BYTES, STAMP_MAGIC};
use super::device::{self, Link};
use super::{OpenError, old_tpacket as tpacket};
use crate::backend::{Backend, Frame, Losses};
use crate::clock;
use crate::interface::MirrorInterface;

const FRAME_BYTES: u32 = 4096;
const FRAMES: u32 = 16384;
const BATCH: usize = 256;
const QUEUE: u32 = 0;
/// How long a queue may stay busy after its last owner closed it.
const BUSY: Duration = Duration::from_secs(3);
/// The ring holds what arrives meanwhile at 30 million frames a second.
const REST: Duration = Duration::from_micros(500);
const OFFSET_LIFE_NS: u64 = 1_000_000_000;
/// Differences below are measuring error, not a step of the clock.
const OFFSET_NOISE_NS: u128 = 50_000;
const OPTION_ZERO_COPY: u32 = 1;

/// An open ring. The link comes first, so that redirection ends before the socket goes.
#[derive(Debug)]
pub struct XdpRing {
    _link: OwnedFd,
    _redirect: Redirect,
    _promiscuous: OwnedFd,
    rx: RxQueue,
    fill: FillQueue,
    _comp: CompQueue,
    _tx: TxQueue,
    umem: Umem,
    batch: Vec<FrameDesc>,
    mode: CaptureMode,
    refusals: Vec<String>,
    offset: Offset,
}

/// From the program's clock to real time.
#[derive(Debug)]
struct Offset {
    value: i128,
    read_at: u64,
}

impl Offset {
    fn apply(&mut self, monotonic: u64) -> u64 {
        if monotonic.saturating_sub(self.read_at) > OFFSET_LIFE_NS {
            let fresh = clock::monotonic_to_realtime_ns();
            // Small differences would only disturb the order of stamps.
            if fresh.abs_diff(self.value) > OFFSET_NOISE_NS {
                self.value = fresh;
            }
            self.read_at = monotonic;
        }
        u64::try_from(i128::from(monotonic) + self.value).unwrap_or(0)
    }
}

impl XdpRing {
    /// Opens the ring on a mirror interface, in the best mode that it takes.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(interface: &MirrorInterface) -> Result<Self, OpenError> {
        let name = interface.0.as_str();
        let found = device::link(&interface.0).map_err(|e| OpenError::at(name, "look at the link", e))?;
        let link = found.ok_or_else(|| OpenError::NoSuchInterface(name.into()))?;
        if !link.ethernet || link.loopback {
            return Err(OpenError::NotEthernet(name.into()));
        }
        if let Some((queues, how)) = device::receive_queues(&interface.0)
            && queues > 1
        {
            return Err(OpenError::ManyQueues {
                interface: name.into(),
                queues,
                how,
            });
        }
        let mut refusals = Vec::new();
        if let Err(e) = device::keep_vlan_tags(&interface.0) {
            refusals.push(format!(
                "VLAN tags are cut off by the NIC (rx-vlan-offload cannot be turned off: {e})"
            ));
        }
        let rungs = [
            (CaptureMode::ZeroCopy, Hook::Driver, BindFlags::XDP_ZEROCOPY),
            (CaptureMode::Copy, Hook::Driver, BindFlags::XDP_COPY),
            (CaptureMode::Generic, Hook::Generic, BindFlags::XDP_COPY),
        ];
        for (wanted, hook, bind) in rungs {
            match Self::try_open(name, link, hook, bind) {
                Ok(mut ring) => {
                    ring.refusals = refusals;
                    return Ok(ring);
                }
                Err((step, e)) if e.raw_os_error() == Some(libc::EPERM) => {
                    return Err(OpenError::at(name, step, e));
                }
                Err((step, e)) => refusals.push(format!("{}: {}", wanted.as_str(), explain(step, &e, name))),
            }
        }
        Err(OpenError::NoMode {
            interface: name.into(),
            refusals,
        })
    }

    fn try_open(
        name: &str,
        link: Link,
        hook: Hook,
        bind: BindFlags,
    ) -> Result<Self, (&'static str, io::Error)> {
        let redirect = Redirect::load(QUEUE + 1, false).map_err(|e| ("load the XDP program", e))?;
        let attached =
            while_busy(|| redirect.attach(link.index, hook)).map_err(|e| ("attach the XDP program", e))?;
        let (umem, frames) = memory().map_err(|e| ("register frame memory", e))?;
        let (tx, mut rx, mut fill, comp) =
            while_busy(|| bind_socket(name, &umem, bind)).map_err(|e| ("bind the AF_XDP socket", e))?;
        // SAFETY: the descriptors come from this UMEM and have not been given to any ring yet.
        let filled = unsafe { fill.produce(&frames) };
        if filled != frames.len() {
            return Err((
                "fill the fill ring",
                io::Error::other("it is smaller than the frame memory"),
            ));
        }
        let mode = mode(&rx, hook).map_err(|e| ("read the socket's mode", e))?;
        let promiscuous = promiscuous(link).map_err(|e| ("enter promiscuous mode", e))?;
        redirect
            .serve(QUEUE, socket_fd(&rx))
            .map_err(|e| ("enter the socket into the program's map", e))?;
        if fill.needs_wakeup() {
            fill.wakeup(rx.fd_mut(), 0).map_err(|e| ("wake the driver", e))?;
        }
        Ok(Self {
            _link: attached,
            _redirect: redirect,
            _promiscuous: promiscuous,
            rx,
            fill,
            _comp: comp,
            _tx: tx,
            umem,
            batch: vec![FrameDesc::default(); BATCH],
            mode,
            refusals: Vec::new(),
            offset: Offset {
                value: clock::monotonic_to_realtime_ns(),
                read_at: clock::monotonic_ns(),
            },
        })
    }
}

impl Backend for XdpRing {
    fn receive(&mut self, each: &mut impl FnMut(Frame<'_>)) -> io::Result<usize> {
        // SAFETY: the socket was made on this UMEM, so its descriptors belong to it.
        let received = unsafe { self.rx.consume(&mut self.batch) };
        for desc in &mut self.batch[..received] {
            let stamp_ns = {
                // SAFETY: the frame came out of the receive ring and is ours until it goes to the fill ring below.
                let mut headroom = unsafe { self.umem.headroom_mut(desc) };
                let mut cursor = headroom.cursor();
                let room = cursor.buf_len();
                cursor.set_pos(room);
                take_stamp(headroom.contents_mut())
            };
            let stamp_ns = match stamp_ns {
                Some(monotonic) => self.offset.apply(monotonic),
                None => clock::realtime_ns(),
            };
            // SAFETY: as above, and the headroom is borrowed no more.
            let bytes = unsafe { self.umem.data(desc) }.contents();
            each(Frame {
                bytes,
                wire_length: bytes.len() as u32,
                stamp_ns,
            });
        }
        // SAFETY: exactly the frames that were just received; nothing refers to them any more.
        let returned = unsafe { self.fill.produce(&self.batch[..received]) };
        debug_assert_eq!(
            returned, received,
            "the fill ring holds as many frames as there are"
        );
        Ok(received)
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        socket_fd(&self.rx)
    }

    fn losses(&mut self) -> io::Result<Losses> {
        let s = self.rx.fd().xdp_statistics()?;
        // In copy mode a frame without a free buffer counts as dropped; the empty-fill count also holds attempts of
        // a zero-copy driver that cost no frame, so it is not a loss by itself.
        Ok(Losses {
            ring: Some(s.rx_dropped() + s.rx_ring_full()),
            nic: None,
        })
    }

    fn mode(&self) -> CaptureMode {
        self.mode
    }

    fn mode_refusals(&self) -> &[String] {
        &self.refusals
    }

    fn clock_source(&self) -> &'static str {
        "kernel-monotonic-in-xdp"
    }

    fn rest(&self) -> Option<Duration> {
        Some(REST)
    }

    fn lag_ns(&self) -> u64 {
        10_000_000
    }
}

/// Reads the program's stamp and wipes it, so that a frame that gets none next time does not show this one.
fn take_stamp(headroom: &mut [u8]) -> Option<u64> {
    let start = headroom.len().checked_sub(STAMP_BYTES)?;
    let stamp = u64::from_ne_bytes(*headroom[start..].first_chunk()?);
    let magic = headroom[start + 8..].first_chunk_mut::<8>()?;
    let there = u64::from_ne_bytes(*magic) == STAMP_MAGIC;
    *magic = [0; 8];
    there.then_some(stamp)
}

fn memory() -> io::Result<(Umem, Vec<FrameDesc>)> {
    let other = |e: &dyn Error| io::Error::other(e.to_string());
    let size = |n| QueueSize::new(n).map_err(|e| other(&e));
    let config = UmemConfig::builder()
        .frame_size(FrameSize::new(FRAME_BYTES).map_err(|e| other(&e))?)
        .fill_queue_size(size(FRAMES)?)
        .comp_queue_size(size(64)?)
        .build()
        .map_err(|e| other(&e))?;
    let count = NonZeroU32::new(FRAMES).ok_or_else(|| io::Error::other("no frames"))?;
    Umem::new(config, count, false).map_err(|e| system(&e))
}

fn bind_socket(
    name: &str,
    umem: &Umem,
    bind: BindFlags,
) -> io::Result<(TxQueue, RxQueue, FillQueue, CompQueue)> {
    let size = |n| QueueSize::new(n).map_err(|e| io::Error::other(e.to_string()));
    let config = SocketConfig::builder()
        .rx_queue_size(size(FRAMES)?)
        .tx_queue_size(size(64)?)
        .bind_flags(bind | BindFlags::XDP_USE_NEED_WAKEUP)
        .libxdp_flags(LibxdpFlags::XSK_LIBXDP_FLAGS_INHIBIT_PROG_LOAD)
        .build();
    let interface: Interface = name.parse().map_err(|_| io::Error::other("not a C string"))?;
    // SAFETY: no program is loaded by the library, and the UMEM is not shared with another socket on this queue.
    let (tx, rx, rings) = unsafe { Socket::new(config, umem, &interface, QUEUE) }.map_err(|e| system(&e))?;
    let (fill, comp) = rings.ok_or_else(|| io::Error::other("the socket came without a fill ring"))?;
    Ok((tx, rx, fill, comp))
}

fn socket_fd(rx: &RxQueue) -> BorrowedFd<'_> {
    // SAFETY: the descriptor stays open as long as the queue, which the result borrows.
    unsafe { BorrowedFd::borrow_raw(rx.fd().as_raw_fd()) }
}

fn mode(rx: &RxQueue, hook: Hook) -> io::Result<CaptureMode> {
    let options: u32 = device::get_option(socket_fd(rx), libc::SOL_XDP, libc::XDP_OPTIONS)?;
    Ok(match hook {
        _ if options & OPTION_ZERO_COPY != 0 => CaptureMode::ZeroCopy,
        Hook::Driver => CaptureMode::Copy,
        Hook::Generic => CaptureMode::Generic,
    })
}

/// A packet socket that receives nothing and only holds the interface in promiscuous mode.
fn promiscuous(link: Link) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    tpacket::promiscuous(socket.as_fd(), link)?;
    Ok(socket)
}

fn while_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && began.elapsed() < BUSY => {
                std::thread::sleep(Duration::from_millis(50));
            }
            result => return result,
        }
    }
}

/// The library wraps what the system said.
fn system(error: &dyn Error) -> io::Error {
    let code = error
        .source()
        .and_then(|e| e.downcast_ref::<io::Error>())
        .and_then(io::Error::raw_os_error);
    code.map_or_else(
        || io::Error::other(error.to_string()),
        io::Error::from_raw_os_error,
    )
}

fn explain(step: &str, error: &io::Error, name: &str) -> String {
    let advice = match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => "; the driver does not support it",
        Some(libc::EBUSY | libc::EEXIST) => {
            "; another program holds the interface: find it with `ip link` or `bpftool net`"
        }
        Some(libc::ENOBUFS | libc::ENOMEM) => "; give the process CAP_IPC_LOCK or a higher RLIMIT_MEMLOCK",
        Some(libc::ERANGE | libc::E2BIG) => "; the MTU is too large for it",
        _ => "",
    };
    format!("cannot {step} on {name}: {error}{advice}")
}
