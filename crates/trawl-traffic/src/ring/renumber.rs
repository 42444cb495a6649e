//! The program that numbers each live frame, gives it its size and its time, and sends it out of the interface.

use super::bpf::{Insn, insn};
use crate::frame::{FIRST_SOURCE_PORT, NEEDLE_PORT, PORT, Shape, Template};

mod code {
    pub const ADD_IMM: u8 = 0x07;
    pub const AND_IMM: u8 = 0x57;
    pub const CALL: u8 = 0x85;
    pub const EXIT: u8 = 0x95;
    pub const JUMP: u8 = 0x05;
    pub const JUMP_EQUAL_IMM: u8 = 0x15;
    pub const JUMP_NOT_EQUAL_IMM: u8 = 0x55;
    pub const JUMP_GREATER_REG: u8 = 0x2d;
    pub const JUMP_NOT_LESS_REG: u8 = 0x3d;
    pub const LOAD_IMM64: u8 = 0x18;
    pub const LOAD_U32: u8 = 0x61;
    pub const LOAD_U64: u8 = 0x79;
    pub const MOD_IMM: u8 = 0x97;
    pub const MOV_IMM: u8 = 0xb7;
    pub const MOV_REG: u8 = 0xbf;
    pub const SHIFT_LEFT_IMM: u8 = 0x67;
    pub const SHIFT_RIGHT_IMM: u8 = 0x77;
    pub const STORE_U16: u8 = 0x6b;
    pub const STORE_U16_IMM: u8 = 0x6a;
    pub const STORE_U32: u8 = 0x63;
    pub const STORE_U64: u8 = 0x7b;
    pub const SUB_IMM: u8 = 0x17;
    pub const TO_BIG_ENDIAN: u8 = 0xdc;
    pub const XOR_IMM: u8 = 0xa7;
    pub const XOR_REG: u8 = 0xaf;
}

mod helper {
    pub const KTIME_GET_NS: i32 = 5;
    pub const REDIRECT: i32 = 23;
    pub const XDP_ADJUST_TAIL: i32 = 65;
}

const XDP_DROP: i32 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;
/// Registers that outlive a call: context, frame, the number, the state.
const CONTEXT: u8 = 6;
const FRAME: u8 = 7;
const NUMBER: u8 = 8;
const STATE: u8 = 9;
/// Registers to calculate with.
const A: u8 = 4;
const B: u8 = 5;

/// What the program and its user tell each other; the program's offsets are those of the fields.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// Number of the next frame.
    pub next: u64,
    /// When it is due, in kernel time of 1/256 ns.
    pub due: u64,
    /// When the first frame was made, in nanoseconds of kernel time.
    pub first_ns: u64,
    /// When the frame `mark` was made: the last one whose number is a multiple of [`MARK_EVERY`].
    pub mark_ns: u64,
    /// Its number.
    pub mark: u64,
}

/// Reading the clock costs more than all else here, so it is read seldom.
pub(super) const MARK_EVERY: u64 = 1024;
/// How often the clock is read at most while a frame is not due, 0.1 to 0.2 ms.
const SPINS: i32 = 4096;
/// Later than this, in 1/256 ns, is not made up for: it would come as a burst.
const FORGIVEN: i32 = 100_000 << 8;

/// A jump that is resolved when the code behind it is known.
fn skip_unless_equal(register: u8, value: i32, then: Vec<Insn>) -> Vec<Insn> {
    let mut out = vec![insn(
        code::JUMP_NOT_EQUAL_IMM,
        register,
        0,
        then.len() as i16,
        value,
    )];
    out.extend(then);
    out
}

/// Instructions for frames like these, the largest of which is the one that is run; `interface` is the kernel's index,
/// `map` the descriptor of the state, `interval` the time between two frames in 1/256 ns or 0.
pub(super) fn program(
    templates: &[Template],
    shape: &Shape,
    interface: u32,
    map: i32,
    interval: u32,
) -> Vec<Insn> {
    let payload = templates[0].payload_at as i16;
    let largest = templates.iter().map(Template::size).max().unwrap_or(0);
    let mut out = start(map);
    if interval > 0 {
        out.extend(wait(interval));
    }
    out.extend(frame(payload));
    out.extend(ports(payload, shape));
    out.extend(link_header(&templates[0]));
    out.extend(check());
    if let [only] = templates {
        out.push(insn(code::XOR_IMM, A, 0, 0, only.crc.cast_signed()));
        out.extend(store_check(payload));
    } else {
        for (turn, template) in templates.iter().enumerate() {
            out.push(insn(code::MOV_REG, B, NUMBER, 0, 0));
            out.push(insn(code::MOD_IMM, B, 0, 0, templates.len() as i32));
            out.extend(skip_unless_equal(
                B,
                turn as i32,
                resize(template, largest, interface),
            ));
        }
    }
    out.extend(redirect(interface));
    out
}

/// Takes the next number; looks at the clock for the first frame and for marks.
fn start(map: i32) -> Vec<Insn> {
    let mut out = vec![
        insn(code::MOV_REG, CONTEXT, 1, 0, 0),
        insn(code::LOAD_IMM64, STATE, PSEUDO_MAP_VALUE, 0, map),
        insn(0, 0, 0, 0, 0),
        insn(code::LOAD_U64, NUMBER, STATE, 0, 0),
        insn(code::MOV_REG, A, NUMBER, 0, 0),
        insn(code::ADD_IMM, A, 0, 0, 1),
        insn(code::STORE_U64, STATE, A, 0, 0),
        insn(code::LOAD_U64, A, STATE, 16, 0),
    ];
    let now = insn(code::CALL, 0, 0, 0, helper::KTIME_GET_NS);
    out.extend(skip_unless_equal(
        A,
        0,
        vec![now, insn(code::STORE_U64, STATE, 0, 16, 0)],
    ));
    out.push(insn(code::MOV_REG, A, NUMBER, 0, 0));
    out.push(insn(code::AND_IMM, A, 0, 0, MARK_EVERY as i32 - 1));
    let mark = vec![
        now,
        insn(code::STORE_U64, STATE, 0, 24, 0),
        insn(code::STORE_U64, STATE, NUMBER, 32, 0),
    ];
    out.extend(skip_unless_equal(A, 0, mark));
    out
}

/// Reads the clock until the frame is due, and says when the next one is.
fn wait(interval: u32) -> Vec<Insn> {
    vec![
        // The counter of readings lies in the frame register, which is not used yet.
        insn(code::MOV_IMM, FRAME, 0, 0, SPINS),
        insn(code::CALL, 0, 0, 0, helper::KTIME_GET_NS),
        insn(code::SHIFT_LEFT_IMM, 0, 0, 0, 8),
        insn(code::LOAD_U64, A, STATE, 8, 0),
        insn(code::JUMP_NOT_LESS_REG, 0, A, 2, 0),
        insn(code::SUB_IMM, FRAME, 0, 0, 1),
        insn(code::JUMP_NOT_EQUAL_IMM, FRAME, 0, -6, 0),
        // Due, or at the end of patience: the next is due an interval after this one, unless that is long ago.
        insn(code::MOV_REG, B, A, 0, 0),
        insn(code::ADD_IMM, B, 0, 0, FORGIVEN),
        insn(code::JUMP_NOT_LESS_REG, B, 0, 1, 0),
        insn(code::MOV_REG, A, 0, 0, 0),
        insn(code::ADD_IMM, A, 0, 0, interval.cast_signed()),
        insn(code::STORE_U64, STATE, A, 8, 0),
    ]
}

/// Makes sure that there is room for a number, and writes it.
fn frame(payload: i16) -> [Insn; 11] {
    [
        insn(code::LOAD_U32, FRAME, CONTEXT, 0, 0),
        insn(code::LOAD_U32, B, CONTEXT, 4, 0),
        insn(code::MOV_REG, A, FRAME, 0, 0),
        insn(code::ADD_IMM, A, 0, 0, i32::from(payload) + 18),
        insn(code::JUMP_GREATER_REG, A, B, 1, 0),
        insn(code::JUMP, 0, 0, 2, 0),
        insn(code::MOV_IMM, 0, 0, 0, XDP_DROP),
        insn(code::EXIT, 0, 0, 0, 0),
        insn(code::MOV_REG, A, NUMBER, 0, 0),
        insn(code::TO_BIG_ENDIAN, A, 0, 0, 64),
        insn(code::STORE_U64, FRAME, A, payload + 6, 0),
    ]
}

/// Writes the ports that follow from the number.
fn ports(payload: i16, shape: &Shape) -> Vec<Insn> {
    let mut out = vec![];
    if shape.flows > 1 {
        out.extend([
            insn(code::MOV_REG, A, NUMBER, 0, 0),
            insn(code::MOD_IMM, A, 0, 0, i32::from(shape.flows)),
            insn(code::ADD_IMM, A, 0, 0, i32::from(FIRST_SOURCE_PORT)),
            insn(code::TO_BIG_ENDIAN, A, 0, 0, 16),
            insn(code::STORE_U16, FRAME, A, payload - 8, 0),
        ]);
    }
    if shape.needle_every > 0 {
        out.extend([
            insn(code::MOV_REG, A, NUMBER, 0, 0),
            insn(code::MOD_IMM, A, 0, 0, shape.needle_every.cast_signed()),
            store_bytes(payload - 6, NEEDLE_PORT.to_be_bytes()),
            insn(code::JUMP_EQUAL_IMM, A, 0, 1, 0),
            store_bytes(payload - 6, PORT.to_be_bytes()),
        ]);
    }
    out
}

fn store_bytes(at: i16, bytes: [u8; 2]) -> Insn {
    insn(
        code::STORE_U16_IMM,
        FRAME,
        0,
        at,
        i32::from(i16::from_ne_bytes(bytes)),
    )
}

/// Writes the link header anew when it holds tags: the pages are used again, and a receiver that took a tag out has
/// moved the addresses over it.
fn link_header(template: &Template) -> Vec<Insn> {
    let tags = template.payload_at - 42;
    if tags == 0 || tags > 8 {
        return vec![];
    }
    let words = template.bytes[..12 + tags].chunks_exact(2).enumerate();
    words
        .map(|(i, bytes)| store_bytes(2 * i as i16, [bytes[0], bytes[1]]))
        .collect()
}

/// Both halves of the number in one.
fn check() -> [Insn; 3] {
    [
        insn(code::MOV_REG, A, NUMBER, 0, 0),
        insn(code::SHIFT_RIGHT_IMM, A, 0, 0, 32),
        insn(code::XOR_REG, A, NUMBER, 0, 0),
    ]
}

fn store_check(payload: i16) -> [Insn; 2] {
    [
        insn(code::TO_BIG_ENDIAN, A, 0, 0, 32),
        insn(code::STORE_U32, FRAME, A, payload + 14, 0),
    ]
}

/// Gives the frame the lengths, sums and check of this size, cuts it, and sends it.
fn resize(template: &Template, largest: usize, interface: u32) -> Vec<Insn> {
    let payload = template.payload_at as i16;
    let mut out = vec![insn(code::XOR_IMM, A, 0, 0, template.crc.cast_signed())];
    out.extend(store_check(payload));
    for at in template.size_fields() {
        out.push(store_bytes(
            at as i16,
            [template.bytes[at], template.bytes[at + 1]],
        ));
    }
    let shorter = largest - template.size();
    if shorter > 0 {
        out.extend([
            insn(code::MOV_REG, 1, CONTEXT, 0, 0),
            insn(code::MOV_IMM, 2, 0, 0, -(shorter as i32)),
            insn(code::CALL, 0, 0, 0, helper::XDP_ADJUST_TAIL),
        ]);
    }
    out.extend(redirect(interface));
    out
}

fn redirect(interface: u32) -> [Insn; 4] {
    [
        insn(code::MOV_IMM, 1, 0, 0, interface.cast_signed()),
        insn(code::MOV_IMM, 2, 0, 0, 0),
        insn(code::CALL, 0, 0, 0, helper::REDIRECT),
        insn(code::EXIT, 0, 0, 0, 0),
    ]
}
