//! The few commands of bpf(2) that sending needs, without a library: one array map, one program, and running it.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::renumber::State;

/// One instruction as the kernel reads it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Insn {
    pub code: u8,
    pub registers: u8,
    pub offset: i16,
    pub immediate: i32,
}

pub(super) const fn insn(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Insn {
    Insn {
        code,
        registers: to | (from << 4),
        offset,
        immediate,
    }
}

const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP: libc::c_long = 1;
const MAP_UPDATE: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const TEST_RUN: libc::c_long = 10;
const TYPE_ARRAY: u32 = 2;
const TYPE_XDP: u32 = 6;
const LIVE_FRAMES: u32 = 2;
const LOG_BYTES: usize = 1 << 16;

#[repr(C)]
#[derive(Default)]
struct CreateMap {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct Element {
    map: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    result: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    _pad: u32,
}

/// # Safety
/// `A` is the attribute of `command`, all bytes of it are initialized, and its addresses are valid for it.
unsafe fn bpf<A>(command: libc::c_long, attribute: &mut A) -> io::Result<libc::c_long> {
    let pointer = std::ptr::from_mut(attribute);
    // SAFETY: the pointer and the size describe `attribute`; the rest is the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, pointer, size_of::<A>()) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn owned(descriptor: libc::c_long) -> OwnedFd {
    // SAFETY: a fresh descriptor that nobody else owns.
    unsafe { OwnedFd::from_raw_fd(descriptor as i32) }
}

/// An array map of one value.
#[derive(Debug)]
pub(super) struct Cell(pub OwnedFd);

impl Cell {
    pub fn new() -> io::Result<Self> {
        let mut attribute = CreateMap {
            kind: TYPE_ARRAY,
            key_size: 4,
            value_size: size_of::<State>() as u32,
            entries: 1,
            flags: 0,
        };
        // SAFETY: the attribute of this command, and it has no addresses.
        unsafe { bpf(MAP_CREATE, &mut attribute) }.map(|fd| Self(owned(fd)))
    }

    fn element(&self, key: &u32, value: *const State) -> Element {
        Element {
            map: self.0.as_raw_fd().cast_unsigned(),
            key: std::ptr::from_ref(key).addr() as u64,
            value: value.addr() as u64,
            ..Element::default()
        }
    }

    pub fn get(&self) -> io::Result<State> {
        let (key, mut state) = (0, State::default());
        let mut attribute = self.element(&key, &raw mut state);
        // SAFETY: key and value have the sizes of the map and live through the call; any bytes are a valid State.
        unsafe { bpf(MAP_LOOKUP, &mut attribute) }?;
        Ok(state)
    }

    pub fn set(&self, state: State) -> io::Result<()> {
        let key = 0;
        let mut attribute = self.element(&key, &raw const state);
        // SAFETY: key and value have the sizes of the map and live through the call.
        unsafe { bpf(MAP_UPDATE, &mut attribute) }.map(drop)
    }
}

/// Loads an XDP program; a refusal carries what the verifier said last.
pub(super) fn load(code: &[Insn]) -> io::Result<OwnedFd> {
    load_with(code, &mut []).map_err(|error| {
        let mut log = vec![0; LOG_BYTES];
        match load_with(code, &mut log) {
            Err(_) => explain(error, &log),
            Ok(_) => error,
        }
    })
}

/// A log makes loading slow, and fail when it is too short: only for a program that was refused.
fn load_with(code: &[Insn], log: &mut [u8]) -> io::Result<OwnedFd> {
    let mut attribute = Load {
        kind: TYPE_XDP,
        instructions: code.len() as u32,
        code: code.as_ptr().addr() as u64,
        license: c"Apache-2.0".as_ptr().addr() as u64,
        name: *b"trawl_traffic\0\0\0",
        ..Load::default()
    };
    if !log.is_empty() {
        attribute.log_level = 1;
        attribute.log_size = log.len() as u32;
        attribute.log = log.as_mut_ptr().addr() as u64;
    }
    // SAFETY: code, license and log live through the call and have the lengths that the attribute says.
    unsafe { bpf(PROG_LOAD, &mut attribute) }.map(owned)
}

fn explain(error: io::Error, log: &[u8]) -> io::Error {
    let text = String::from_utf8_lossy(log);
    let lines: Vec<_> = text.trim_end_matches('\0').lines().collect();
    if lines.is_empty() {
        return error;
    }
    let said = lines[lines.len().saturating_sub(3)..].join(" / ");
    io::Error::new(error.kind(), format!("{error}; the verifier said: {said}"))
}

/// Runs the program on `count` live copies of the frame, and sends what it redirects (Linux 5.18 and later).
pub(super) fn run(program: &OwnedFd, frame: &[u8], count: u32, batch: u32) -> io::Result<()> {
    let mut attribute = TestRun {
        program: program.as_raw_fd().cast_unsigned(),
        data_size_in: frame.len() as u32,
        data_in: frame.as_ptr().addr() as u64,
        repeat: count,
        flags: LIVE_FRAMES,
        batch_size: batch,
        ..TestRun::default()
    };
    // SAFETY: the frame lives through the call and has the length that the attribute says; nothing is written back
    // but to the attribute.
    unsafe { bpf(TEST_RUN, &mut attribute) }.map(drop)
}
