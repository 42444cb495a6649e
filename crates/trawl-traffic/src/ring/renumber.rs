//! The program that numbers each live frame and sends it out of the interface.

use super::bpf::{Insn, insn};
use crate::frame::{FIRST_SOURCE_PORT, NEEDLE_PORT, PORT, Shape, Template};

mod code {
    pub const ADD_IMM: u8 = 0x07;
    pub const EXIT: u8 = 0x95;
    pub const CALL: u8 = 0x85;
    pub const JUMP_EQUAL_IMM: u8 = 0x15;
    pub const JUMP_GREATER_REG: u8 = 0x2d;
    pub const LOAD_IMM64: u8 = 0x18;
    pub const LOAD_U32: u8 = 0x61;
    pub const LOAD_U64: u8 = 0x79;
    pub const MOD_IMM: u8 = 0x97;
    pub const MOV_IMM: u8 = 0xb7;
    pub const MOV_REG: u8 = 0xbf;
    pub const SHIFT_RIGHT_IMM: u8 = 0x77;
    pub const STORE_U16: u8 = 0x6b;
    pub const STORE_U16_IMM: u8 = 0x6a;
    pub const STORE_U32: u8 = 0x63;
    pub const STORE_U64: u8 = 0x7b;
    pub const TO_BIG_ENDIAN: u8 = 0xdc;
    pub const XOR_REG: u8 = 0xaf;
}

const REDIRECT: i32 = 23;
const XDP_DROP: i32 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;
/// Registers: the frame, its end, the number, the state, and two to calculate with.
const FRAME: u8 = 7;
const END: u8 = 8;
const NUMBER: u8 = 3;
const STATE: u8 = 2;
const A: u8 = 4;
const B: u8 = 5;

/// Instructions for frames like this one; `interface` is its index, `map` the descriptor of the state.
pub(super) fn program(template: &Template, shape: &Shape, interface: u32, map: i32) -> Vec<Insn> {
    let payload = template.payload_at as i16;
    let mut out = vec![
        insn(code::LOAD_U32, FRAME, 1, 0, 0),
        insn(code::LOAD_U32, END, 1, 4, 0),
        insn(code::MOV_REG, A, FRAME, 0, 0),
        insn(code::ADD_IMM, A, 0, 0, i32::from(payload) + 18),
        insn(code::JUMP_GREATER_REG, A, END, 1, 0),
        insn(0x05, 0, 0, 2, 0),
        insn(code::MOV_IMM, 0, 0, 0, XDP_DROP),
        insn(code::EXIT, 0, 0, 0, 0),
    ];
    out.extend(number(payload, map));
    out.extend(ports(payload, shape));
    out.extend(link_header(template));
    out.extend([
        insn(code::MOV_IMM, 1, 0, 0, interface.cast_signed()),
        insn(code::MOV_IMM, 2, 0, 0, 0),
        insn(code::CALL, 0, 0, 0, REDIRECT),
        insn(code::EXIT, 0, 0, 0, 0),
    ]);
    out
}

/// Takes the next number and writes it and its check.
fn number(payload: i16, map: i32) -> [Insn; 14] {
    [
        insn(code::LOAD_IMM64, STATE, PSEUDO_MAP_VALUE, 0, map),
        insn(0, 0, 0, 0, 0),
        insn(code::LOAD_U64, NUMBER, STATE, 0, 0),
        insn(code::MOV_REG, A, NUMBER, 0, 0),
        insn(code::ADD_IMM, A, 0, 0, 1),
        insn(code::STORE_U64, STATE, A, 0, 0),
        insn(code::MOV_REG, A, NUMBER, 0, 0),
        insn(code::SHIFT_RIGHT_IMM, A, 0, 0, 32),
        insn(code::XOR_REG, A, NUMBER, 0, 0),
        insn(code::LOAD_U32, B, STATE, 8, 0),
        insn(code::XOR_REG, A, B, 0, 0),
        insn(code::TO_BIG_ENDIAN, A, 0, 0, 32),
        insn(code::STORE_U32, FRAME, A, payload + 14, 0),
        insn(code::MOV_REG, A, NUMBER, 0, 0),
    ]
}

/// Writes the number, then the ports that follow from it.
fn ports(payload: i16, shape: &Shape) -> Vec<Insn> {
    let mut out = vec![
        insn(code::TO_BIG_ENDIAN, A, 0, 0, 64),
        // The number is not aligned to 8 bytes in the frame, which x86 and arm64 take as it is.
        insn(code::STORE_U64, FRAME, A, payload + 6, 0),
    ];
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
            store_port(payload - 6, NEEDLE_PORT),
            insn(code::JUMP_EQUAL_IMM, A, 0, 1, 0),
            store_port(payload - 6, PORT),
        ]);
    }
    out
}

fn store_port(at: i16, port: u16) -> Insn {
    let value = u16::from_ne_bytes(port.to_be_bytes());
    insn(code::STORE_U16_IMM, FRAME, 0, at, i32::from(value.cast_signed()))
}

/// Writes the link header anew when it holds tags: the pages are used again, and a receiver that took a tag out has moved
/// the addresses over it.
fn link_header(template: &Template) -> Vec<Insn> {
    let tags = template.payload_at - 42;
    if tags == 0 || tags > 8 {
        return vec![];
    }
    template.bytes[..12 + tags]
        .chunks_exact(2)
        .enumerate()
        .map(|(i, bytes)| {
            let value = i16::from_ne_bytes([bytes[0], bytes[1]]);
            insn(code::STORE_U16_IMM, FRAME, 0, 2 * i as i16, i32::from(value))
        })
        .collect()
}
