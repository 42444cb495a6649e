//! The fast form of code that only loads, masks and compares, as that of usual filters does: one kind of step, each
//! one load with one comparison, and an entry for each usual EtherType at which those tests are already decided.

use std::collections::HashMap;

use crate::code::{Alu, Code, Op, Operand, Size, Test};

/// Code that needs more steps is left to the interpreter.
const MAX_STEPS: usize = 4096;
const ACCEPT: u16 = u16::MAX;
const REJECT: u16 = u16::MAX - 1;
const ETHERTYPE: u32 = 12;
/// Where the fragment offset of IPv4 ends.
const FRAGMENT_END: u32 = 22;
/// Shorter frames are left to the interpreter: a step loads four bytes also where fewer are compared, and the
/// fragment offset may be taken as read.
pub(crate) const SHORTEST: usize = FRAGMENT_END as usize + 2;

/// Loads four bytes, masks them, and asks whether they are in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Step {
    at: u32,
    mask: u32,
    low: u32,
    /// The highest value that holds, counted from `low`.
    span: u32,
    yes: u16,
    no: u16,
    /// The step before has loaded the same four bytes.
    kept: bool,
    /// `at` is counted from the beginning, tags or not.
    whole: bool,
    /// `at` is counted on behind the header whose length is in this byte, unless this is [`NO_HEADER`].
    header: u8,
}

const NO_HEADER: u8 = u8::MAX;
/// Nothing is loaded; the length on the wire is compared.
const LENGTH: u8 = u8::MAX - 1;

/// What the place of a value is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// The beginning, tags or not: Ethernet addresses.
    Addresses,
    /// The beginning, as if there were no tags.
    Payload,
    /// As before, and behind the header whose length is in this byte.
    Behind(u8),
    /// Nothing is loaded; the length on the wire is compared.
    Length,
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
    Value {
        place: Place,
        at: u32,
        size: Size,
        mask: u32,
        /// Added after the mask.
        plus: u32,
    },
}

type State = (usize, Known, Option<u8>);

impl Steps {
    /// `None` when the code does more than load, mask and compare. `whole_ip4` promises that no later fragment of
    /// IPv4 will be judged, so that tests for them are decided.
    pub(crate) fn of(code: &Code, whole_ip4: bool) -> Option<Self> {
        let mut builder = Builder {
            ops: code.ops(),
            steps: Vec::new(),
            known: HashMap::new(),
        };
        let start = builder.build((0, Known::Nothing, None))?;
        let (mut steps, start) = in_chains(&builder.steps, start)?;
        let entry = |ethertype| {
            let at = decided(&steps, start, ethertype);
            // What was loaded before is not, when one begins here.
            let kept = steps.get(usize::from(at)).is_some_and(|step| step.kept);
            if kept { start } else { at }
        };
        let (mut ip4, ip6, arp) = (entry(0x0800), entry(0x86dd), entry(0x0806));
        if whole_ip4 {
            ip4 = without_fragment_tests(&mut steps, ip4)?;
        }
        Some(Self {
            ip4,
            ip6,
            arp,
            steps,
            start,
        })
    }

    /// Judges a frame of at least [`SHORTEST`] bytes as if `cut` bytes were missing before its EtherType, which
    /// then is `ethertype`.
    ///
    /// The two ways out of a step are written apart so that they stay branches: a processor guesses them well, where
    /// it would have to wait for a choice between two numbers.
    #[inline]
    pub(crate) fn accepts(&self, frame: &[u8], cut: usize, ethertype: u16, wire_length: u32) -> bool {
        let mut at = match ethertype {
            0x0800 => self.ip4,
            0x86dd => self.ip6,
            0x0806 => self.arp,
            _ => self.start,
        };
        if at >= REJECT {
            return at == ACCEPT;
        }
        let mut loaded = 0;
        while let Some(step) = self.steps.get(usize::from(at)) {
            if !step.kept {
                match step.load(frame, cut, wire_length) {
                    Some(value) => loaded = value,
                    None => return false,
                }
            }
            if step.holds(loaded) {
                if step.yes >= REJECT {
                    return step.yes == ACCEPT;
                }
                at = step.yes;
            } else {
                if step.no >= REJECT {
                    return step.no == ACCEPT;
                }
                at = step.no;
            }
        }
        false
    }
}

impl Step {
    #[inline]
    fn load(&self, frame: &[u8], cut: usize, wire_length: u32) -> Option<u32> {
        let mut at = self.at as usize;
        if !self.whole {
            at += cut;
        }
        if self.header != NO_HEADER {
            if self.header == LENGTH {
                return Some(wire_length);
            }
            at += usize::from(frame.get(usize::from(self.header) + cut)? & 0xf) << 2;
        }
        let window = frame.get(at..)?.first_chunk()?;
        Some(u32::from_be_bytes(*window))
    }

    #[inline]
    fn holds(&self, loaded: u32) -> bool {
        (loaded & self.mask).wrapping_sub(self.low) <= self.span
    }

    /// `ip[6:2] & 0x1fff`; whole packets go on at `yes`.
    fn tests_fragment(&self) -> bool {
        (self.header, self.whole) == (NO_HEADER, false)
            && self.at + 4 == FRAGMENT_END
            && (self.mask, self.low, self.span) == (0x1fff, 0, 0)
    }

    fn tests_ethertype(&self) -> bool {
        self.header == NO_HEADER && self.at == ETHERTYPE && self.mask == 0xffff_0000
    }
}

/// Puts steps in an order in which the next one is the one for `no` wherever that is possible.
fn in_chains(steps: &[Step], start: u16) -> Option<(Vec<Step>, u16)> {
    let mut places = vec![None; steps.len()];
    let mut ordered = Vec::with_capacity(steps.len());
    let mut waiting = vec![start];
    while let Some(mut next) = waiting.pop() {
        while let Some(step) = steps.get(usize::from(next)) {
            let place = places.get_mut(usize::from(next))?;
            if place.is_some() {
                break;
            }
            *place = u16::try_from(ordered.len()).ok();
            ordered.push(*step);
            waiting.push(step.yes);
            next = step.no;
        }
    }
    let place = |step: u16| places.get(usize::from(step)).map_or(Some(step), |place| *place);
    for step in &mut ordered {
        (step.yes, step.no) = (place(step.yes)?, place(step.no)?);
    }
    Some((ordered, place(start)?))
}

/// Adds a copy of what follows from `entry` in which later fragments are never asked for, and returns its beginning.
fn without_fragment_tests(steps: &mut Vec<Step>, entry: u16) -> Option<u16> {
    let get = |at: u16| steps.get(usize::from(at));
    let past = |mut at: u16| {
        while let Some(step) = get(at).filter(|step| step.tests_fragment())
            && !get(step.yes).is_some_and(|next| next.kept)
        {
            at = step.yes;
        }
        at
    };
    let graph = steps.iter().map(|step| Step {
        yes: past(step.yes),
        no: past(step.no),
        ..*step
    });
    let (copy, start) = in_chains(&graph.collect::<Vec<_>>(), past(entry))?;
    let base = u16::try_from(steps.len()).ok()?;
    let moved = |at: u16| if at >= REJECT { at } else { at + base };
    if steps.len() + copy.len() > MAX_STEPS {
        return Some(entry);
    }
    steps.extend(copy.into_iter().map(|step| Step {
        yes: moved(step.yes),
        no: moved(step.no),
        ..step
    }));
    Some(moved(start))
}

/// Where the walk from `at` arrives when the EtherType is known.
fn decided(steps: &[Step], mut at: u16, ethertype: u32) -> u16 {
    while let Some(step) = steps.get(usize::from(at)).filter(|s| s.tests_ethertype()) {
        at = if step.holds(ethertype << 16) {
            step.yes
        } else {
            step.no
        };
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
        let (mut open_a, mut open_x, mut kept) = (false, false, true);
        loop {
            let op = *self.ops.get(at)?;
            at += 1;
            match op {
                Op::LoadAt(..) | Op::LoadFromX(..) if open_a => return None,
                Op::LoadAt(size, k) => {
                    a = field(None, k, size)?;
                    (open_a, kept) = (true, false);
                }
                Op::LoadFromX(size, k) => {
                    a = field(Some(x?), k, size)?;
                    (open_a, open_x, kept) = (true, false, false);
                }
                Op::LoadLength if !open_a => {
                    kept = false;
                    a = Known::Value {
                        place: Place::Length,
                        at: 0,
                        size: Size::Word,
                        mask: u32::MAX,
                        plus: 0,
                    };
                }
                Op::LoadXHeader(_) if open_x => return None,
                Op::LoadXHeader(k) => {
                    x = Some(
                        u8::try_from(k)
                            .ok()
                            .filter(|k| u32::from(*k) >= ETHERTYPE && *k < LENGTH)?,
                    );
                    open_x = true;
                }
                Op::Compute(alu, Operand::K(k)) => a = a.computed(alu, k)?,
                Op::Jump(skip) => at += skip as usize,
                Op::Branch(test, Operand::K(k), jt, jf) if !open_x => {
                    let (yes, no) = (at + usize::from(jt), at + usize::from(jf));
                    let (step, swapped) = self.add(a, test, k, kept)?;
                    let (yes, no) = if swapped { (no, yes) } else { (yes, no) };
                    return Some((step, Some(((yes, a, x), (no, a, x)))));
                }
                Op::Return(k) if !open_a && !open_x => {
                    return Some((if k == 0 { REJECT } else { ACCEPT }, None));
                }
                _ => return None,
            }
        }
    }

    /// Adds a step, and says whether its ways out are swapped.
    fn add(&mut self, a: Known, test: Test, k: u32, kept: bool) -> Option<(u16, bool)> {
        let Known::Value {
            place,
            at,
            size,
            mut mask,
            plus,
        } = a
        else {
            return None;
        };
        let (low, span, swapped) = match test {
            Test::Equal => (k, 0, false),
            Test::AtLeast => (k, u32::MAX - k, false),
            Test::Greater if k == u32::MAX => {
                mask = 0;
                (1, 0, false)
            }
            Test::Greater => (k + 1, u32::MAX - k - 1, false),
            Test::AnySet if plus == 0 => {
                mask &= k;
                (0, 0, true)
            }
            Test::AnySet => return None,
        };
        // The window ends where the value ends, unless it would begin too early. What follows the value in the
        // window is masked away, and so the comparison moves to the left with it.
        let begin = at.saturating_sub(4 - width(size));
        let begin = if at >= ETHERTYPE {
            begin.max(ETHERTYPE)
        } else {
            begin
        };
        let left = 8 * (begin + 4 - at - width(size));
        let highest = u32::MAX >> (32 - 8 * width(size));
        let (low, span) = if left == 0 {
            (low.wrapping_sub(plus), span)
        } else if low <= highest && plus == 0 {
            (low << left, span.min(highest - low) << left)
        } else {
            return None;
        };
        if self.steps.len() >= MAX_STEPS || (left > 0 && !matches!(place, Place::Payload | Place::Addresses))
        {
            return None;
        }
        self.steps.push(Step {
            at: begin,
            mask: mask << left,
            low,
            span,
            yes: REJECT,
            no: REJECT,
            kept,
            whole: place == Place::Addresses,
            header: match place {
                Place::Addresses | Place::Payload => NO_HEADER,
                Place::Behind(header) => header,
                Place::Length => LENGTH,
            },
        });
        Some((u16::try_from(self.steps.len() - 1).ok()?, swapped))
    }
}

impl Known {
    fn computed(mut self, alu: Alu, k: u32) -> Option<Self> {
        let Self::Value { mask, plus, .. } = &mut self else {
            return None;
        };
        match alu {
            Alu::And if *plus == 0 => *mask &= k,
            Alu::Add => *plus = plus.wrapping_add(k),
            Alu::Sub => *plus = plus.wrapping_sub(k),
            _ => return None,
        }
        Some(self)
    }
}

fn width(size: Size) -> u32 {
    match size {
        Size::Word => 4,
        Size::Half => 2,
        Size::Byte => 1,
    }
}

fn field(header: Option<u8>, at: u32, size: Size) -> Option<Known> {
    let place = match header {
        Some(header) => Place::Behind(header),
        None if at.saturating_add(width(size)) <= ETHERTYPE => Place::Addresses,
        None => Place::Payload,
    };
    let mask = u32::MAX >> (32 - 8 * width(size));
    (at < u32::from(u16::MAX)).then_some(Known::Value {
        place,
        at,
        size,
        mask,
        plus: 0,
    })
}
