//! Our XDP program: counts and stamps each frame and hands it to the AF_XDP socket of its queue (Linux 5.9 and later, for links).
//!
//! Built from instructions, so that no compiler is needed where it runs, and attached by a link, so that it leaves
//! with the last descriptor: a killed daemon leaves nothing behind. A frame that has no socket passes on.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libxdp_sys as sys;
use xsk_rs::config::XdpFlags;

/// Bytes before the frame that the program fills: the stamp, then [`STAMP_MAGIC`].
pub(super) const STAMP_BYTES: usize = 16;
/// Says that a stamp is there: a driver without room for metadata leaves old bytes instead.
pub(super) const STAMP_MAGIC: u64 = 0x7472_6177_6c73_7470;

/// Where a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    /// In the driver, before the kernel makes a packet of its own.
    Driver,
    /// After it, for drivers without XDP.
    Generic,
}

/// One instruction as the kernel reads it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Insn {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

const _: () = assert!(size_of::<Insn>() == size_of::<sys::bpf_insn>());

mod code {
    pub const MOV_IMM: u8 = 0xb7;
    pub const MOV_REG: u8 = 0xbf;
    pub const ADD_IMM: u8 = 0x07;
    pub const LOAD_U32: u8 = 0x61;
    pub const LOAD_U64: u8 = 0x79;
    pub const STORE_U32: u8 = 0x63;
    pub const STORE_U64: u8 = 0x7b;
    pub const LOAD_IMM64: u8 = 0x18;
    pub const JUMP_EQUAL_IMM: u8 = 0x15;
    pub const JUMP_NOT_EQUAL_IMM: u8 = 0x55;
    pub const JUMP_GREATER_REG: u8 = 0x2d;
    pub const CALL: u8 = 0x85;
    pub const EXIT: u8 = 0x95;
}

mod helper {
    pub const MAP_LOOKUP: i32 = 1;
    pub const KTIME_GET_NS: i32 = 5;
    pub const REDIRECT_MAP: i32 = 51;
    pub const XDP_ADJUST_META: i32 = 54;
}

/// Offsets in `struct xdp_md`.
mod context {
    pub const DATA: i16 = 0;
    pub const DATA_META: i16 = 8;
    pub const RX_QUEUE_INDEX: i16 = 16;
}

const XDP_PASS: i32 = 2;
const PSEUDO_MAP_FD: u8 = 1;
/// As the kernel can be built for at most.
const MOST_CPUS: usize = 8192;
const HAS_FRAGMENTS: u32 = 1 << 5;

const fn insn(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Insn {
    Insn {
        code,
        registers: to | (from << 4),
        offset,
        immediate,
    }
}

/// The address of a map in a register: two instructions.
const fn load_map(to: u8, map: i32) -> [Insn; 2] {
    [
        insn(code::LOAD_IMM64, to, PSEUDO_MAP_FD, 0, map),
        insn(0, 0, 0, 0, 0),
    ]
}

fn program(sockets: i32, counts: i32) -> Vec<Insn> {
    let stamp = STAMP_BYTES as i32;
    let (magic_low, magic_high) = (STAMP_MAGIC as u32, (STAMP_MAGIC >> 32) as u32);
    let [sockets, sockets_rest] = load_map(1, sockets);
    let [counts, counts_rest] = load_map(1, counts);
    vec![
        insn(code::MOV_REG, 6, 1, 0, 0),
        // Count the frame.
        insn(code::LOAD_U32, 9, 6, context::RX_QUEUE_INDEX, 0),
        insn(code::STORE_U32, 10, 9, -4, 0),
        insn(code::MOV_REG, 2, 10, 0, 0),
        insn(code::ADD_IMM, 2, 0, 0, -4),
        counts,
        counts_rest,
        insn(code::CALL, 0, 0, 0, helper::MAP_LOOKUP),
        insn(code::JUMP_EQUAL_IMM, 0, 0, 3, 0),
        insn(code::LOAD_U64, 1, 0, 0, 0),
        insn(code::ADD_IMM, 1, 0, 0, 1),
        insn(code::STORE_U64, 0, 1, 0, 0),
        // Stamp it.
        insn(code::MOV_REG, 1, 6, 0, 0),
        insn(code::MOV_IMM, 2, 0, 0, -stamp),
        insn(code::CALL, 0, 0, 0, helper::XDP_ADJUST_META),
        insn(code::JUMP_NOT_EQUAL_IMM, 0, 0, 10, 0),
        insn(code::LOAD_U32, 7, 6, context::DATA_META, 0),
        insn(code::LOAD_U32, 8, 6, context::DATA, 0),
        insn(code::MOV_REG, 1, 7, 0, 0),
        insn(code::ADD_IMM, 1, 0, 0, stamp),
        insn(code::JUMP_GREATER_REG, 1, 8, 5, 0),
        insn(code::CALL, 0, 0, 0, helper::KTIME_GET_NS),
        insn(code::STORE_U64, 7, 0, 0, 0),
        insn(code::LOAD_IMM64, 1, 0, 0, magic_low.cast_signed()),
        insn(0, 0, 0, 0, magic_high.cast_signed()),
        insn(code::STORE_U64, 7, 1, 8, 0),
        // Hand it over.
        insn(code::MOV_REG, 2, 9, 0, 0),
        sockets,
        sockets_rest,
        insn(code::MOV_IMM, 3, 0, 0, XDP_PASS),
        insn(code::CALL, 0, 0, 0, helper::REDIRECT_MAP),
        insn(code::EXIT, 0, 0, 0, 0),
    ]
}

/// How often the program of an interface was called, per receive queue.
#[derive(Debug)]
pub(super) struct Counts {
    map: OwnedFd,
    cpus: usize,
}

impl Counts {
    /// Frames of this queue since the program was loaded.
    pub fn of(&self, queue: u32) -> io::Result<u64> {
        let mut values = vec![0u64; self.cpus];
        // SAFETY: the key has 4 bytes and the map gives 8 bytes per possible CPU, for which there is room.
        let result = unsafe {
            sys::bpf_map_lookup_elem(
                self.map.as_raw_fd(),
                std::ptr::from_ref(&queue).cast(),
                values.as_mut_ptr().cast(),
            )
        };
        if result < 0 {
            return Err(io::Error::from_raw_os_error(-result));
        }
        Ok(values.iter().sum())
    }
}

/// A loaded program with its map of sockets.
#[derive(Debug)]
pub(super) struct Redirect {
    program: OwnedFd,
    sockets: OwnedFd,
    counts: Counts,
}

impl Redirect {
    /// Loads the program, for `queues` receive queues; `fragments` for frames of several buffers (Linux 6.6).
    pub fn load(queues: u32, fragments: bool) -> io::Result<Self> {
        let sockets = map(sys::bpf_map_type_BPF_MAP_TYPE_XSKMAP, c"trawl_sockets", 4, queues)?;
        let counts = map(
            sys::bpf_map_type_BPF_MAP_TYPE_PERCPU_ARRAY,
            c"trawl_counts",
            8,
            queues,
        )?;
        let code = program(sockets.as_raw_fd(), counts.as_raw_fd());
        // SAFETY: all-zero bytes are valid options, which are plain data.
        let mut options: sys::bpf_prog_load_opts = unsafe { std::mem::zeroed() };
        options.sz = size_of::<sys::bpf_prog_load_opts>();
        options.prog_flags = if fragments { HAS_FRAGMENTS } else { 0 };
        // SAFETY: strings are C strings, `code` has the layout of bpf_insn, and it and the options, which say their
        // own size, live through the call.
        let program = unsafe {
            sys::bpf_prog_load(
                sys::bpf_prog_type_BPF_PROG_TYPE_XDP,
                c"trawl_redirect".as_ptr(),
                c"Apache-2.0".as_ptr(),
                code.as_ptr().cast(),
                code.len(),
                &raw mut options,
            )
        };
        Ok(Self {
            program: owned(program)?,
            sockets,
            counts: Counts {
                map: counts,
                cpus: possible_cpus(),
            },
        })
    }

    /// What is left of it once it is attached and knows its sockets.
    pub fn into_counts(self) -> Counts {
        self.counts
    }

    /// Attaches the program; it stays as long as the returned link is open.
    pub fn attach(&self, index: u32, hook: Hook) -> io::Result<OwnedFd> {
        // SAFETY: all-zero bytes are valid options, which are plain data.
        let mut options: sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
        options.sz = size_of::<sys::bpf_link_create_opts>();
        options.flags = match hook {
            Hook::Driver => XdpFlags::XDP_FLAGS_DRV_MODE.bits(),
            Hook::Generic => XdpFlags::XDP_FLAGS_SKB_MODE.bits(),
        };
        // SAFETY: `options` says its own size and lives through the call.
        let link = unsafe {
            sys::bpf_link_create(
                self.program.as_raw_fd(),
                index.cast_signed(),
                sys::bpf_attach_type_BPF_XDP,
                &raw const options,
            )
        };
        owned(link)
    }

    /// Frames of `queue` go to this socket from now on.
    pub fn serve(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let socket = socket.as_raw_fd();
        // SAFETY: key and value are 4 bytes each, as the map was made, and live through the call.
        let result = unsafe {
            sys::bpf_map_update_elem(
                self.sockets.as_raw_fd(),
                std::ptr::from_ref(&queue).cast(),
                std::ptr::from_ref(&socket).cast(),
                0,
            )
        };
        if result < 0 {
            Err(io::Error::from_raw_os_error(-result))
        } else {
            Ok(())
        }
    }
}

/// CPUs that may ever be there: for so many the kernel gives a value each.
fn possible_cpus() -> usize {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = list
        .trim()
        .rsplit(['-', ','])
        .next()
        .and_then(|n| n.parse::<usize>().ok());
    last.map_or(MOST_CPUS, |last| last + 1)
}

fn map(kind: sys::bpf_map_type, name: &CStr, value_bytes: u32, entries: u32) -> io::Result<OwnedFd> {
    // SAFETY: the name is a C string; no options are a valid setting.
    owned(unsafe { sys::bpf_map_create(kind, name.as_ptr(), 4, value_bytes, entries, std::ptr::null()) })
}

/// libbpf gives a descriptor or a negative errno.
fn owned(result: i32) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}
