//! Frame memory and the socket on it: what xsk-rs gives, set up.

use std::error::Error;
use std::ffi::CString;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::NonNull;

use rustix::event::{EventfdFlags, eventfd};
use rustix::net::RecvFlags;
use trawl_control::CaptureMode;
use xsk_rs::config::{BindFlags, FrameSize, Interface, LibxdpFlags, QueueSize, SocketConfig, UmemConfig};
use xsk_rs::{CompQueue, FillQueue, FrameDesc, RxQueue, Socket, TxQueue, Umem};

use super::super::RingOptions;
use super::super::bpf::Hook;
use super::super::device::{self, set_option};
use super::super::memory::{Memory, Owner};
use super::plan::{HEADROOM, KERNEL_HEADROOM, Plan};
use super::region::Region;

const OPTION_ZERO_COPY: u32 = 1;
const SO_PREFER_BUSY_POLL: i32 = 69;
const SO_BUSY_POLL_BUDGET: i32 = 70;
/// Frames that a busy poll takes from the driver at most.
const BUSY_BUDGET: u32 = 64;
const HUGE_PAGE: usize = 2 << 20;

/// Registered memory without a socket.
pub(super) struct FrameMemory {
    umem: Umem,
    buffers: Vec<FrameDesc>,
    region: Region,
}

/// The rings of a bound socket.
pub(super) struct Rings {
    pub rx: RxQueue,
    pub fill: FillQueue,
    _comp: CompQueue,
    _tx: TxQueue,
}

/// A bound socket whose kernel has its reserve of buffers.
pub(super) struct Bound {
    pub rings: Rings,
    /// After the rings, which are unmapped through the descriptor.
    pub closer: Closer,
    pub memory: Memory,
    pub region: Region,
    /// Every buffer, by number.
    pub buffers: Box<[FrameDesc]>,
    pub busy_poll: bool,
}

/// Closes the kernel's socket although its memory, which has the same descriptor, lives on for those who read
/// held frames: nobody can bind to the queue as long as the socket is there.
#[derive(Debug)]
pub(super) struct Closer {
    socket: RawFd,
    /// Comes in its place. Made in time: when it is needed there may be no descriptor left.
    nothing: OwnedFd,
}

impl Drop for Closer {
    fn drop(&mut self) {
        // SAFETY: the memory still owns the socket's descriptor and closes it in its turn; nobody asks the socket any
        // more.
        unsafe { libc::dup3(self.nothing.as_raw_fd(), self.socket, libc::O_CLOEXEC) };
    }
}

#[derive(Debug)]
struct Registered {
    _umem: Umem,
}

impl Owner for Registered {}

impl FrameMemory {
    /// Maps memory and registers it, on huge pages when enough of them are free.
    pub fn register(plan: &Plan) -> io::Result<Self> {
        let huge = free_huge_pages() * HUGE_PAGE >= plan.buffers() * plan.bytes
            && (plan.buffers() * plan.bytes).is_multiple_of(HUGE_PAGE);
        if huge && let Ok(memory) = Self::map(plan, true) {
            return Ok(memory);
        }
        Self::map(plan, false)
    }

    fn map(plan: &Plan, huge: bool) -> io::Result<Self> {
        let config = UmemConfig::builder()
            .frame_size(FrameSize::new(plan.bytes as u32).map_err(|e| other(&e))?)
            .frame_headroom(HEADROOM as u32)
            .fill_queue_size(size(plan.fill_entries())?)
            .comp_queue_size(size(64)?)
            .build()
            .map_err(|e| other(&e))?;
        let count = NonZeroU32::new(plan.buffers() as u32).ok_or_else(|| io::Error::other("no frames"))?;
        let (umem, mut buffers) = Umem::new(config, count, huge).map_err(|e| system(&e))?;
        // SAFETY: the buffer has been given to nobody yet.
        let mut first = unsafe { umem.data_mut(&mut buffers[0]) };
        let data = NonNull::from(first.contents_mut()).cast::<u8>();
        // SAFETY: the data of the first buffer begins so many bytes behind the mapping.
        let base = unsafe { data.sub(KERNEL_HEADROOM + HEADROOM) };
        // SAFETY: the mapping has as many bytes, and every user of the region also keeps `umem`.
        let region = unsafe { Region::new(base, plan.buffers() * plan.bytes) };
        Ok(Self {
            umem,
            buffers,
            region,
        })
    }

    /// Binds a socket of this memory to a queue.
    pub fn bind(&self, name: &str, queue: u32, bind: BindFlags, plan: &Plan) -> io::Result<Rings> {
        let several = if plan.several_buffers {
            BindFlags::XDP_USE_SG
        } else {
            BindFlags::empty()
        };
        let config = SocketConfig::builder()
            .rx_queue_size(size(plan.reserve)?)
            .tx_queue_size(size(64)?)
            .bind_flags(bind | several | BindFlags::XDP_USE_NEED_WAKEUP)
            .libxdp_flags(LibxdpFlags::XSK_LIBXDP_FLAGS_INHIBIT_PROG_LOAD)
            .build();
        let interface = padded(name);
        // SAFETY: no program is loaded by the library, and the memory is not shared with another socket.
        let made = unsafe { Socket::new(config, &self.umem, &interface, queue) };
        let (tx, rx, rings) = made.map_err(|e| system(&e))?;
        let (fill, comp) = rings.ok_or_else(|| io::Error::other("the socket came without a fill ring"))?;
        Ok(Rings {
            rx,
            fill,
            _comp: comp,
            _tx: tx,
        })
    }
}

impl Bound {
    /// Gives the kernel its reserve, the last of the buffers.
    pub fn new(
        memory: FrameMemory,
        mut rings: Rings,
        plan: &Plan,
        options: &RingOptions,
    ) -> io::Result<Self> {
        let FrameMemory {
            umem,
            buffers,
            region,
        } = memory;
        // SAFETY: the descriptors come from this memory and have not been given to any ring yet.
        let filled = unsafe { rings.fill.produce(&buffers[plan.history..]) };
        if filled != plan.reserve {
            return Err(io::Error::other("the fill ring is smaller than the reserve"));
        }
        let fd = socket_fd(&rings.rx);
        if let Some(microseconds) = options.busy_poll_us {
            set_option(fd, libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, &1u32)?;
            set_option(fd, libc::SOL_SOCKET, libc::SO_BUSY_POLL, &microseconds)?;
            set_option(fd, libc::SOL_SOCKET, SO_BUSY_POLL_BUDGET, &BUSY_BUDGET)?;
        }
        let closer = Closer {
            socket: fd.as_raw_fd(),
            nothing: eventfd(0, EventfdFlags::CLOEXEC)?,
        };
        // SAFETY: the mapping lives as long as `umem`; a `Held` of this memory is only made of received buffers,
        // which go back to the kernel when it was given up.
        let memory = unsafe {
            Memory::new(
                region.base(),
                region.length(),
                Box::new(Registered { _umem: umem }),
            )
        };
        Ok(Self {
            rings,
            closer,
            memory,
            region,
            buffers: buffers.into_boxed_slice(),
            busy_poll: options.busy_poll_us.is_some(),
        })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        socket_fd(&self.rings.rx)
    }

    /// What the socket says it has.
    pub fn mode(&self, hook: Hook) -> io::Result<CaptureMode> {
        let options: u32 = device::get_option(self.fd(), libc::SOL_XDP, libc::XDP_OPTIONS)?;
        Ok(match hook {
            _ if options & OPTION_ZERO_COPY != 0 => CaptureMode::ZeroCopy,
            Hook::Driver => CaptureMode::Copy,
            Hook::Generic => CaptureMode::Generic,
        })
    }

    pub fn wake_driver(&self) {
        if self.rings.fill.needs_wakeup() {
            poke(self.fd());
        }
    }
}

/// Has the driver look at the fill ring, and take frames when busy polling is on. What goes wrong here shows when
/// the socket is polled.
pub(super) fn poke(fd: BorrowedFd<'_>) {
    let _ = rustix::net::recv(fd, &mut [0u8; 0], RecvFlags::DONTWAIT);
}

/// The library copies as many bytes of a name as the longest one has, whatever its length.
fn padded(name: &str) -> Interface {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(libc::IFNAMSIZ, 0);
    // SAFETY: it is only read by C, through its pointer, for which it ends at its first zero.
    Interface::new(unsafe { CString::from_vec_unchecked(bytes) })
}

pub(super) fn socket_fd(rx: &RxQueue) -> BorrowedFd<'_> {
    // SAFETY: the descriptor stays open as long as the queue, which the result borrows.
    unsafe { BorrowedFd::borrow_raw(rx.fd().as_raw_fd()) }
}

fn size(entries: usize) -> io::Result<QueueSize> {
    QueueSize::new(entries as u32).map_err(|e| other(&e))
}

fn free_huge_pages() -> usize {
    let table = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = table
        .lines()
        .find_map(|line| line.strip_prefix("HugePages_Free:"));
    free.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

fn other(error: &dyn Error) -> io::Error {
    io::Error::other(error.to_string())
}

/// The library wraps what the system said.
fn system(error: &dyn Error) -> io::Error {
    let code = error
        .source()
        .and_then(|e| e.downcast_ref::<io::Error>())
        .and_then(io::Error::raw_os_error);
    code.map_or_else(|| other(error), io::Error::from_raw_os_error)
}
