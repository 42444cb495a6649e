//! The fast form of code that only loads, masks and compares, as that of usual filters does: one kind of step, each
//! one load with one comparison, and an entry for each usual EtherType at which those tests are already decided.

use std::collections::HashMap;

use crate::code::{Alu, Code, Op, Operand, Size, Test};

/// Programs that need more steps are left to the interpreter.
const MAX_STEPS: usize = 4096;
const ACCEPT: u16 = u16::MAX;
const REJECT: u16 = u16::MAX - 1;
/// Frames shorter than an Ethernet header are left to the interpreter.
pub(crate) const SHORTEST: usize = 14;
const NO_HEADER: u16 = u16::MAX;
const ETHERTYPE: usize = 12;

/// Loads four bytes at `at` (plus the header length at `header`), shifts and masks them, and compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Step {
    at: u32,
    mask: u32,
    k: u32,
    header: u16,
    yes: u16,
    no: u16,
    shift: u8,
    test: Test,
}

/// Code as steps. A step outside of `steps` is the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Steps {
    steps: Vec<Step>,
    start: u16,
    ip4: u16,
    ip6: u16,
    arp: u16,
}

/// What is in a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Known {
    Nothing,
    /// `size` bytes at `at`, behind the header whose length is in the byte `header` when there is one.
    Field {
        header: Option<u32>,
        at: u32,
        size: Size,
        mask: u32,
    },
}

type State = (usize, Known, Option<u32>);

impl Steps {
    /// `None` when the code does more than load, mask and compare.
    pub(crate) fn of(code: &Code) -> Option<Self> {
        let mut builder = Builder {
            ops: code.ops(),
            steps: Vec::new(),
            known: HashMap::new(),
        };
        let start = builder.build((0, Known::Nothing, None))?;
        let steps = builder.steps;
        let entry = |ethertype| decided(&steps, start, ethertype);
        Some(Self {
            ip4: entry(0x0800),
            ip6: entry(0x86dd),
            arp: entry(0x0806),
            steps,
            start,
        })
    }

    /// Judges a frame of at least [`SHORTEST`] bytes.
    #[inline]
    pub(crate) fn accepts(&self, frame: &[u8], ethertype: u16) -> bool {
        let mut at = match ethertype {
            0x0800 => self.ip4,
            0x86dd => self.ip6,
            0x0806 => self.arp,
            _ => self.start,
        };
        while let Some(step) = self.steps.get(usize::from(at)) {
            let Some(value) = step.value(frame) else {
                return false;
            };
            let holds = match step.test {
                Test::Equal => value == step.k,
                Test::Greater => value > step.k,
                Test::AtLeast => value >= step.k,
                Test::AnySet => value & step.k != 0,
            };
            at = if holds { step.yes } else { step.no };
        }
        at == ACCEPT
    }
}

impl Step {
    #[inline]
    fn value(&self, frame: &[u8]) -> Option<u32> {
        let mut at = self.at as usize;
        if self.header != NO_HEADER {
            at += usize::from(frame.get(usize::from(self.header))? & 0xf) << 2;
        }
        let window = frame.get(at..)?.first_chunk()?;
        Some((u32::from_be_bytes(*window) >> self.shift) & self.mask)
    }

    fn tests_ethertype(&self) -> bool {
        let ends = self.at as usize + 4 - usize::from(self.shift / 8);
        self.header == NO_HEADER && self.mask == 0xffff && ends == ETHERTYPE + 2
    }
}

/// Where the walk from `at` arrives when the EtherType is known.
fn decided(steps: &[Step], mut at: u16, ethertype: u32) -> u16 {
    while let Some(step) = steps.get(usize::from(at)).filter(|s| s.tests_ethertype()) {
        let holds = match step.test {
            Test::Equal => ethertype == step.k,
            Test::Greater => ethertype > step.k,
            Test::AtLeast => ethertype >= step.k,
            Test::AnySet => ethertype & step.k != 0,
        };
        at = if holds { step.yes } else { step.no };
    }
    at
}

struct Builder<'a> {
    ops: &'a [Op],
    steps: Vec<Step>,
    known: HashMap<State, u16>,
}

impl Builder<'_> {
    /// The step for a place in the code and what is then in the registers. Places are visited once for each
    /// different content, without recursion.
    fn build(&mut self, start: State) -> Option<u16> {
        let mut waiting: Vec<(State, Option<(usize, bool)>)> = vec![(start, None)];
        let mut first = None;
        while let Some((state, from)) = waiting.pop() {
            let (index, then) = match self.known.get(&state) {
                Some(index) => (*index, None),
                None => self.walk(state)?,
            };
            self.known.insert(state, index);
            match from {
                None => first = Some(index),
                Some((step, true)) => self.steps.get_mut(step)?.yes = index,
                Some((step, false)) => self.steps.get_mut(step)?.no = index,
            }
            if let Some((yes, no)) = then {
                let step = usize::from(index);
                waiting.extend([(yes, Some((step, true))), (no, Some((step, false)))]);
            }
        }
        first
    }

    /// Runs through the code up to the next comparison or the end. What was loaded has to be compared at once: a
    /// load outside of the frame refuses it, and a step loads when it compares.
    fn walk(&mut self, (mut at, mut a, mut x): State) -> Option<(u16, Option<(State, State)>)> {
        let (mut open_a, mut open_x) = (false, false);
        loop {
            let op = *self.ops.get(at)?;
            at += 1;
            match op {
                Op::LoadAt(..) | Op::LoadFromX(..) if open_a => return None,
                Op::LoadAt(size, k) => {
                    a = field(None, k, size)?;
                    open_a = true;
                }
                Op::LoadFromX(size, k) => {
                    a = field(Some(x?), k, size)?;
                    (open_a, open_x) = (true, false);
                }
                Op::LoadXHeader(_) if open_x => return None,
                Op::LoadXHeader(k) => {
                    x = Some(k);
                    open_x = true;
                }
                Op::Compute(Alu::And, Operand::K(more)) => match &mut a {
                    Known::Field { mask, .. } => *mask &= more,
                    Known::Nothing => return None,
                },
                Op::Jump(skip) => at += skip,
                Op::Branch(test, Operand::K(k), jt, jf) if !open_x => {
                    let step = self.add(a, test, k)?;
                    let (yes, no) = (at + usize::from(jt), at + usize::from(jf));
                    return Some((step, Some(((yes, a, x), (no, a, x)))));
                }
                Op::Return(k) if !open_a && !open_x => {
                    return Some((if k == 0 { REJECT } else { ACCEPT }, None));
                }
                _ => return None,
            }
        }
    }

    fn add(&mut self, a: Known, test: Test, k: u32) -> Option<u16> {
        let Known::Field {
            header,
            at,
            size,
            mask,
        } = a
        else {
            return None;
        };
        // The window ends where the field ends, unless that would begin before the frame.
        let lead = 4 - width(size);
        let shift = lead.saturating_sub(at);
        if self.steps.len() >= MAX_STEPS || (header.is_some() && shift > 0) {
            return None;
        }
        self.steps.push(Step {
            at: at.saturating_sub(lead),
            mask,
            k,
            header: header.map_or(Some(NO_HEADER), |h| {
                u16::try_from(h).ok().filter(|h| *h < NO_HEADER)
            })?,
            yes: REJECT,
            no: REJECT,
            shift: u8::try_from(shift * 8).ok()?,
            test,
        });
        u16::try_from(self.steps.len() - 1).ok()
    }
}

fn width(size: Size) -> u32 {
    match size {
        Size::Word => 4,
        Size::Half => 2,
        Size::Byte => 1,
    }
}

fn field(header: Option<u32>, at: u32, size: Size) -> Option<Known> {
    let mask = u32::MAX >> (32 - 8 * width(size));
    (at < u32::from(u16::MAX)).then_some(Known::Field {
        header,
        at,
        size,
        mask,
    })
}
