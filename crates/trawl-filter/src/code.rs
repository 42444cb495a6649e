//! Checked classic BPF code and its interpreter. Jumps only go forward, so every run ends.

/// One instruction of classic BPF, as in `struct bpf_insn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Class, size, mode and operation.
    pub code: u16,
    /// Instructions to skip when a test holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// Offset, constant or jump length.
    pub k: u32,
}

impl Instruction {
    /// Reads `code jt jf k` in decimal, the form in which listings print an instruction.
    #[must_use]
    pub fn from_listing(line: &str) -> Option<Self> {
        let mut numbers = line.split_whitespace().map(str::parse::<i64>);
        let mut next = || numbers.next()?.ok();
        let (code, jt, jf, k) = (next()?, next()?, next()?, next()?);
        let k = u32::try_from(k)
            .ok()
            .or_else(|| i32::try_from(k).ok().map(i32::cast_unsigned))?;
        Some(Self {
            code: code.try_into().ok()?,
            jt: jt.try_into().ok()?,
            jf: jf.try_into().ok()?,
            k,
        })
    }
}

const SCRATCH: usize = 16;

/// Code that was checked once: known operations, jumps inside, scratch inside, a return at the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Code {
    ops: Vec<Op>,
}

/// Bytes that code can load from: a frame, or a frame as a filter sees it.
pub(crate) trait Load {
    /// Big-endian; `None` outside of the frame.
    fn load(&self, size: Size, at: usize) -> Option<u32>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Size {
    Word,
    Half,
    Byte,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operand {
    K(u32),
    X,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Alu {
    Add,
    Sub,
    Mul,
    Div,
    Or,
    And,
    Lsh,
    Rsh,
    Mod,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Test {
    Equal,
    Greater,
    AtLeast,
    AnySet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    LoadAt(Size, u32),
    LoadFromX(Size, u32),
    LoadConstant(u32),
    LoadScratch(u8),
    LoadLength,
    LoadXConstant(u32),
    LoadXScratch(u8),
    LoadXLength,
    LoadXHeader(u32),
    Store(u8),
    StoreX(u8),
    Compute(Alu, Operand),
    Negate,
    Jump(u32),
    Branch(Test, Operand, u8, u8),
    ReturnA,
    Return(u32),
    AToX,
    XToA,
}

impl Code {
    /// Checks code.
    ///
    /// # Errors
    /// What is unsound about it.
    pub(crate) fn new(code: Vec<Instruction>) -> Result<Self, &'static str> {
        let length = code.len();
        let mut checked = Vec::with_capacity(length);
        for (at, instruction) in code.into_iter().enumerate() {
            let op = decode(instruction).ok_or("an instruction is unknown")?;
            let furthest = match op {
                Op::Jump(skip) => at.saturating_add(1).saturating_add(skip as usize),
                Op::Branch(_, _, jt, jf) => at + 1 + usize::from(jt.max(jf)),
                Op::Return(_) | Op::ReturnA => at,
                _ => at + 1,
            };
            if furthest >= length {
                return Err("the code runs over its end");
            }
            checked.push(op);
        }
        if checked.is_empty() {
            Err("the code is empty")
        } else {
            Ok(Self { ops: checked })
        }
    }

    /// Whether the code accepts a frame. A load outside of it refuses it, as in the kernel and libpcap.
    #[must_use]
    pub(crate) fn accepts(&self, frame: &(impl Load + ?Sized), wire_length: u32) -> bool {
        self.run(frame, wire_length).unwrap_or(0) != 0
    }

    /// The operations, in order.
    pub(crate) fn ops(&self) -> &[Op] {
        &self.ops
    }

    fn run(&self, frame: &(impl Load + ?Sized), wire_length: u32) -> Option<u32> {
        let (mut a, mut x, mut scratch, mut at) = (0u32, 0u32, [0u32; SCRATCH], 0usize);
        loop {
            let op = *self.ops.get(at)?;
            at += 1;
            match op {
                Op::LoadAt(size, k) => a = frame.load(size, k as usize)?,
                Op::LoadFromX(size, k) => a = frame.load(size, (x as usize).checked_add(k as usize)?)?,
                Op::LoadConstant(k) => a = k,
                Op::LoadScratch(i) => a = scratch[usize::from(i) % SCRATCH],
                Op::LoadLength => a = wire_length,
                Op::LoadXConstant(k) => x = k,
                Op::LoadXScratch(i) => x = scratch[usize::from(i) % SCRATCH],
                Op::LoadXLength => x = wire_length,
                Op::LoadXHeader(k) => x = (frame.load(Size::Byte, k as usize)? & 0xf) << 2,
                Op::Store(i) => scratch[usize::from(i) % SCRATCH] = a,
                Op::StoreX(i) => scratch[usize::from(i) % SCRATCH] = x,
                Op::Compute(alu, operand) => a = compute(alu, a, value(operand, x))?,
                Op::Negate => a = a.wrapping_neg(),
                Op::Jump(skip) => at += skip as usize,
                Op::Branch(test, operand, jt, jf) => {
                    at += usize::from(if holds(test, a, value(operand, x)) { jt } else { jf });
                }
                Op::ReturnA => return Some(a),
                Op::Return(k) => return Some(k),
                Op::AToX => x = a,
                Op::XToA => a = x,
            }
        }
    }
}

#[inline]
fn value(operand: Operand, x: u32) -> u32 {
    match operand {
        Operand::K(k) => k,
        Operand::X => x,
    }
}

#[inline]
fn holds(test: Test, a: u32, b: u32) -> bool {
    match test {
        Test::Equal => a == b,
        Test::Greater => a > b,
        Test::AtLeast => a >= b,
        Test::AnySet => a & b != 0,
    }
}

#[inline]
fn compute(alu: Alu, a: u32, b: u32) -> Option<u32> {
    Some(match alu {
        Alu::Add => a.wrapping_add(b),
        Alu::Sub => a.wrapping_sub(b),
        Alu::Mul => a.wrapping_mul(b),
        Alu::Div => a.checked_div(b)?,
        Alu::Mod => a.checked_rem(b)?,
        Alu::Or => a | b,
        Alu::And => a & b,
        Alu::Xor => a ^ b,
        Alu::Lsh => a.checked_shl(b).unwrap_or(0),
        Alu::Rsh => a.checked_shr(b).unwrap_or(0),
    })
}

impl Load for [u8] {
    #[inline]
    fn load(&self, size: Size, at: usize) -> Option<u32> {
        let rest = self.get(at..)?;
        Some(match size {
            Size::Word => u32::from_be_bytes(*rest.first_chunk()?),
            Size::Half => u32::from(u16::from_be_bytes(*rest.first_chunk()?)),
            Size::Byte => u32::from(*rest.first()?),
        })
    }
}

fn decode(i: Instruction) -> Option<Op> {
    let size = match i.code & 0x18 {
        0x00 => Some(Size::Word),
        0x08 => Some(Size::Half),
        0x10 => Some(Size::Byte),
        _ => None,
    };
    let cell = u8::try_from(i.k).ok().filter(|k| usize::from(*k) < SCRATCH);
    let operand = if i.code & 0x08 == 0 {
        Operand::K(i.k)
    } else {
        Operand::X
    };
    match (i.code & 0x07, i.code & 0xe0) {
        (0, 0x20) => Some(Op::LoadAt(size?, i.k)),
        (0, 0x40) => Some(Op::LoadFromX(size?, i.k)),
        (0, 0x00) if i.code == 0x00 => Some(Op::LoadConstant(i.k)),
        (0, 0x60) if i.code == 0x60 => Some(Op::LoadScratch(cell?)),
        (0, 0x80) if i.code == 0x80 => Some(Op::LoadLength),
        (1, 0x00) if i.code == 0x01 => Some(Op::LoadXConstant(i.k)),
        (1, 0x60) if i.code == 0x61 => Some(Op::LoadXScratch(cell?)),
        (1, 0x80) if i.code == 0x81 => Some(Op::LoadXLength),
        (1, 0xa0) if i.code == 0xb1 => Some(Op::LoadXHeader(i.k)),
        (2, _) if i.code == 0x02 => Some(Op::Store(cell?)),
        (3, _) if i.code == 0x03 => Some(Op::StoreX(cell?)),
        (4, _) => decode_alu(i, operand),
        (5, _) => decode_jump(i, operand),
        (6, _) if i.code == 0x06 => Some(Op::Return(i.k)),
        (6, _) if i.code == 0x16 => Some(Op::ReturnA),
        (7, _) if i.code == 0x07 => Some(Op::AToX),
        (7, _) if i.code == 0x87 => Some(Op::XToA),
        _ => None,
    }
}

fn decode_alu(i: Instruction, operand: Operand) -> Option<Op> {
    let alu = match i.code & 0xf0 {
        0x00 => Alu::Add,
        0x10 => Alu::Sub,
        0x20 => Alu::Mul,
        0x30 => Alu::Div,
        0x40 => Alu::Or,
        0x50 => Alu::And,
        0x60 => Alu::Lsh,
        0x70 => Alu::Rsh,
        0x80 => return Some(Op::Negate),
        0x90 => Alu::Mod,
        0xa0 => Alu::Xor,
        _ => return None,
    };
    match (alu, operand) {
        (Alu::Div | Alu::Mod, Operand::K(0)) => None,
        _ => Some(Op::Compute(alu, operand)),
    }
}

fn decode_jump(i: Instruction, operand: Operand) -> Option<Op> {
    let test = match i.code & 0xf0 {
        0x00 => {
            return i32::try_from(i.k).ok().map(|k| Op::Jump(k.cast_unsigned()));
        }
        0x10 => Test::Equal,
        0x20 => Test::Greater,
        0x30 => Test::AtLeast,
        0x40 => Test::AnySet,
        _ => return None,
    };
    Some(Op::Branch(test, operand, i.jt, i.jf))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(listing: &str) -> Result<Code, &'static str> {
        Code::new(
            listing
                .lines()
                .map(|l| Instruction::from_listing(l).unwrap())
                .collect(),
        )
    }

    #[test]
    fn unsound_code_is_refused() {
        assert!(code("40 0 0 12").is_err(), "falls off the end");
        assert!(code("21 1 0 2048\n6 0 0 1").is_err(), "jumps over the end");
        assert!(code("5 0 0 4294967295\n6 0 0 1").is_err(), "jumps back");
        assert!(code("2 0 0 16\n6 0 0 1").is_err(), "scratch out of range");
        assert!(code("52 0 0 0\n6 0 0 1").is_err(), "divides by zero");
        assert!(code("255 0 0 0\n6 0 0 1").is_err(), "unknown");
        assert!(Code::new(vec![]).is_err());
    }

    #[test]
    fn a_load_outside_of_the_frame_refuses_it() {
        let program = code("40 0 0 12\n6 0 0 1").unwrap();
        assert!(!program.accepts(&[0; 13][..], 13));
        assert!(program.accepts(&[0; 14][..], 14));
    }
}
