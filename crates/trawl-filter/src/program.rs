//! A compiled filter: libpcap's code, and which parts of a frame it is shown.

use crate::code::Code;
use crate::listing;
use crate::steps::{SHORTEST, Steps};
use crate::tunnel::{self, Inner};
use crate::view::{IP4, IP6, Layers, Start, View, be16};

/// What is cut out of a frame before code sees it, and where else it looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Views {
    pub(crate) tags: bool,
    pub(crate) extensions: bool,
    pub(crate) tunnels: bool,
}

/// Judges frames.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    main: Unit,
    /// For later fragments, when they are judged otherwise.
    later: Option<Unit>,
    views: Views,
    /// Whether IPv6 extension headers make a difference.
    watches_ip6: bool,
}

/// Code in both forms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Unit {
    code: Code,
    steps: Option<Steps>,
}

impl Unit {
    fn new(code: Code, whole_ip4: bool) -> Self {
        Self {
            steps: Steps::of(&code, whole_ip4),
            code,
        }
    }
}

impl Program {
    pub(crate) fn new(main: Code, later: Option<Code>, views: Views) -> Self {
        Self {
            watches_ip6: views.extensions || later.is_some(),
            main: Unit::new(main, later.is_some()),
            later: later.map(|code| Unit::new(code, false)),
            views,
        }
    }

    /// Whether a frame is kept. `wire_length` is its length on the wire, of which `frame` may be the beginning.
    #[must_use]
    pub fn matches(&self, frame: &[u8], wire_length: u32) -> bool {
        if let Some(steps) = &self.main.steps
            && let Some(start) = Start::of(frame)
            && !self.needs_layers(&start)
        {
            let (cut, ethertype) = if self.views.tags {
                (start.tags, start.payload)
            } else {
                (0, start.outermost)
            };
            return steps.accepts(frame, cut, ethertype, wire_length)
                || (self.views.tunnels && start.may_be_tunnel() && self.matches_inside(frame, wire_length));
        }
        self.looks_through(frame, wire_length)
    }

    /// Whether more than tags may be in the way.
    #[inline]
    fn needs_layers(&self, start: &Start<'_>) -> bool {
        match start.payload {
            IP4 => self.later.is_some() && start.is_later_fragment(),
            IP6 => self.watches_ip6 && start.is_extended(),
            _ => false,
        }
    }

    #[inline(never)]
    fn looks_through(&self, frame: &[u8], wire_length: u32) -> bool {
        let Some(layers) = Layers::of(frame) else {
            return self.main.code.accepts(frame, wire_length);
        };
        self.judge(frame, &layers, wire_length)
            || (self.views.tunnels && self.matches_inside(frame, wire_length))
    }

    #[inline(never)]
    fn matches_inside(&self, frame: &[u8], wire_length: u32) -> bool {
        Layers::of(frame)
            .and_then(|layers| tunnel::inner(frame, &layers))
            .is_some_and(|inner| self.judge_inner(frame, &inner, wire_length))
    }

    /// Judges the packet inside a tunnel of a frame.
    pub(crate) fn judge_inner(&self, frame: &[u8], inner: &Inner, wire_length: u32) -> bool {
        if let Some(ethertype) = inner.ethertype {
            let layers = Layers::behind(frame, ethertype, inner.at, 0);
            let view = View::inner(frame, &layers, self.views.extensions);
            return self.unit(&layers).code.accepts(&view, wire_length);
        }
        let Some(carried) = frame.get(inner.at..) else {
            return false;
        };
        Layers::of(carried).is_some_and(|layers| self.judge(carried, &layers, wire_length))
    }

    /// Judges a frame by its own headers alone.
    pub(crate) fn judge(&self, frame: &[u8], layers: &Layers, wire_length: u32) -> bool {
        let unit = self.unit(layers);
        let cut = if self.views.tags { 4 * layers.tags } else { 0 };
        let extended = self.views.extensions && layers.extensions.is_some();
        if let Some(steps) = unit.steps.as_ref().filter(|_| !extended)
            && frame.len() >= SHORTEST + cut
            && let Some(ethertype) = be16(frame, 12 + cut)
        {
            return steps.accepts(frame, cut, ethertype, wire_length);
        }
        if cut == 0 && !extended {
            return unit.code.accepts(frame, wire_length);
        }
        let view = View::of(frame, layers, self.views.tags, self.views.extensions);
        unit.code.accepts(&view, wire_length)
    }

    fn unit(&self, layers: &Layers) -> &Unit {
        match &self.later {
            Some(later) if layers.later_fragment => later,
            _ => &self.main,
        }
    }

    /// The code as `tcpdump -d` would show it, one line for each instruction.
    #[must_use]
    pub fn listing(&self) -> Vec<String> {
        listing::lines(&self.main.code)
    }

    /// The code that judges later fragments, when they are judged otherwise than other frames.
    #[must_use]
    pub fn later_fragments_listing(&self) -> Option<Vec<String>> {
        self.later.as_ref().map(|unit| listing::lines(&unit.code))
    }
}
