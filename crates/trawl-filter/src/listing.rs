//! Code as people know it from `tcpdump -d`.

use crate::code::{Alu, Code, Op, Operand, Size, Test};

/// One line for each instruction.
pub(crate) fn lines(code: &Code) -> Vec<String> {
    let ops = code.ops().iter().enumerate();
    ops.map(|(at, op)| format!("({at:03}) {}", line(at, *op)))
        .collect()
}

fn line(at: usize, op: Op) -> String {
    let two = |name: &str, rest: String| format!("{name:<8} {rest}").trim_end().to_owned();
    match op {
        Op::LoadAt(size, k) => two(load(size), format!("[{k}]")),
        Op::LoadFromX(size, k) => two(load(size), format!("[x + {k}]")),
        Op::LoadConstant(k) => two("ld", format!("#{k:#x}")),
        Op::LoadScratch(i) => two("ld", format!("M[{i}]")),
        Op::LoadLength => two("ld", "#pktlen".into()),
        Op::LoadXConstant(k) => two("ldx", format!("#{k:#x}")),
        Op::LoadXScratch(i) => two("ldx", format!("M[{i}]")),
        Op::LoadXLength => two("ldx", "#pktlen".into()),
        Op::LoadXHeader(k) => two("ldxb", format!("4*([{k}]&0xf)")),
        Op::Store(i) => two("st", format!("M[{i}]")),
        Op::StoreX(i) => two("stx", format!("M[{i}]")),
        Op::Compute(alu, value) => two(compute(alu), operand(value)),
        Op::Negate => "neg".into(),
        Op::Jump(skip) => two("ja", (at + 1 + skip as usize).to_string()),
        Op::Branch(test, value, jt, jf) => {
            let (jt, jf) = (at + 1 + usize::from(jt), at + 1 + usize::from(jf));
            two(branch(test), format!("{:<15} jt {jt}  jf {jf}", operand(value)))
        }
        Op::ReturnA => "ret      a".into(),
        Op::Return(k) => two("ret", format!("#{k}")),
        Op::AToX => "tax".into(),
        Op::XToA => "txa".into(),
    }
}

fn operand(value: Operand) -> String {
    match value {
        Operand::K(k) => format!("#{k:#x}"),
        Operand::X => "x".into(),
    }
}

fn load(size: Size) -> &'static str {
    match size {
        Size::Word => "ld",
        Size::Half => "ldh",
        Size::Byte => "ldb",
    }
}

fn branch(test: Test) -> &'static str {
    match test {
        Test::Equal => "jeq",
        Test::Greater => "jgt",
        Test::AtLeast => "jge",
        Test::AnySet => "jset",
    }
}

fn compute(alu: Alu) -> &'static str {
    match alu {
        Alu::Add => "add",
        Alu::Sub => "sub",
        Alu::Mul => "mul",
        Alu::Div => "div",
        Alu::Or => "or",
        Alu::And => "and",
        Alu::Lsh => "lsh",
        Alu::Rsh => "rsh",
        Alu::Mod => "mod",
        Alu::Xor => "xor",
    }
}
