//! Why a frame matches or not, for people.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::code::Instruction;
use crate::compile::{COMPILE_DEADLINE, Reading, program};
use crate::expansion::Options;
use crate::program::Program;
use crate::tree::{Polarity, Test, What};
use crate::tunnel::{self, Inner};
use crate::view::{IP4, IP6, Layers, be16};
use crate::{Filter, FilterError, away, compile_with, libpcap, words};

/// One test of a filter on one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedTest {
    /// The test, as in the normalized text.
    pub text: String,
    /// Whether it holds.
    pub holds: bool,
}

/// Why a frame matches or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Whether the filter accepts the frame.
    pub matched: bool,
    /// What the filter saw, for example `vlan 100, IPv4 10.0.0.50 > 192.168.1.100, TCP 443 > 49832`.
    pub seen: String,
    /// Every test, in the order of the text. When only the packet inside a tunnel matches, on that one. Empty for a
    /// text that only libpcap understands.
    pub tests: Vec<TracedTest>,
}

/// Says why a frame matches or not. Slow; for people.
///
/// # Errors
/// See [`FilterError`].
pub fn trace(text: &str, options: &Options, frame: &[u8], wire_length: u32) -> Result<Trace, FilterError> {
    let filter = compile_with(text, options)?.filter;
    let outer = Layers::of(frame);
    let inner = outer.as_ref().filter(|_| options.tunnels && !options.literal);
    let inner = inner.and_then(|layers| tunnel::inner(frame, layers));
    let inside = match (&filter, &outer) {
        (Filter::Program(program), Some(layers)) if !program.judge(frame, layers, wire_length) => {
            inner.filter(|inner| program.judge_inner(frame, inner, wire_length))
        }
        _ => None,
    };
    let programs = match &filter {
        Filter::Everything => Vec::new(),
        Filter::Program(_) => {
            let (text, options) = (text.to_owned(), *options);
            away::within(COMPILE_DEADLINE, move || tests(&text, options))?
        }
    };
    let holds = |program: &Program| match (&inside, &outer) {
        (Some(inner), _) => program.judge_inner(frame, inner, wire_length),
        (None, Some(layers)) => program.judge(frame, layers, wire_length),
        (None, None) => program.matches(frame, wire_length),
    };
    Ok(Trace {
        matched: filter.matches(frame, wire_length),
        seen: seen(frame, outer, inner),
        tests: programs
            .into_iter()
            .map(|(text, program)| TracedTest {
                text,
                holds: holds(&program),
            })
            .collect(),
    })
}

/// Each test as a filter of its own that is shown the same view as the whole filter.
fn tests(text: &str, options: Options) -> Result<Vec<(String, Program)>, FilterError> {
    let words = words::split(text)?;
    let reading = Reading::of(&words, options)?;
    let tests = reading.tree.as_ref().map(|tree| tree.tests()).unwrap_or_default();
    let mut before = String::new();
    let mut programs = Vec::new();
    for (test, polarity) in tests {
        let alone = test.text();
        let main = libpcap::compile_part(&format!("{before}({alone})"))?;
        let apart = test.differs_for_later_fragments() && reading.judges_later_fragments();
        let later = apart.then(|| later(&before, test, polarity)).flatten();
        programs.push((alone, program(main, later, reading.views)?));
        if let What::Shift("vlan" | "mpls" | "pppoes" | "geneve", _) = test.what {
            // Moves the offsets of what follows without asking for the header.
            before = format!("{before}({} or len >= 0) and ", test.text());
        }
    }
    Ok(programs)
}

fn later(before: &str, test: &Test<'_>, polarity: Polarity) -> Option<Vec<Instruction>> {
    let text = test.text_for_later_fragments(polarity);
    libpcap::compile_part(&format!("{before}({text})")).ok()
}

fn seen(frame: &[u8], outer: Option<Layers>, inner: Option<Inner>) -> String {
    let Some(outer) = outer else {
        return "too short for an Ethernet frame".into();
    };
    let mut parts = layers(frame, &outer);
    if let Some(inner) = inner {
        let carried = frame.get(inner.at..).unwrap_or_default();
        let inside = match inner.ethertype {
            Some(ethertype) => layers(frame, &Layers::behind(frame, ethertype, inner.at, 0)),
            None => Layers::of(carried)
                .map(|found| layers(carried, &found))
                .unwrap_or_default(),
        };
        parts.push(format!("{} with {}", inner.tunnel, inside.join(", ")));
    }
    parts.join(", ")
}

fn layers(frame: &[u8], layers: &Layers) -> Vec<String> {
    let tag = |n: usize| be16(frame, layers.payload - 4 * n).map_or(0, |tag| tag & 0xfff);
    let mut parts: Vec<_> = (1..=layers.tags)
        .rev()
        .map(|n| format!("vlan {}", tag(n)))
        .collect();
    let at = layers.payload;
    let carried = match layers.ethertype {
        IP4 => frame.get(at..).and_then(|ip| ip.first_chunk::<20>()).map(|ip| {
            let [.., a, b, c, d, e, f, g, h] = *ip;
            parts.push(format!(
                "IPv4 {} > {}",
                Ipv4Addr::new(a, b, c, d),
                Ipv4Addr::new(e, f, g, h)
            ));
            (ip[9], at + usize::from(ip[0] & 0xf) * 4)
        }),
        IP6 => frame.get(at..).and_then(|ip| ip.first_chunk::<40>()).map(|ip| {
            let address = |from: usize| {
                ip[from..]
                    .first_chunk::<16>()
                    .map_or(Ipv6Addr::UNSPECIFIED, |a| (*a).into())
            };
            parts.push(format!("IPv6 {} > {}", address(8), address(24)));
            match layers.extensions {
                Some(found) => {
                    parts.push("extension headers".into());
                    (found.protocol, found.end)
                }
                None => (ip[6], at + 40),
            }
        }),
        0x0806 => {
            parts.push("ARP".into());
            None
        }
        0x8847 | 0x8848 => {
            parts.push("MPLS".into());
            None
        }
        other => {
            parts.push(format!("EtherType {other:#06x}"));
            None
        }
    };
    if let Some((protocol, at)) = carried {
        parts.push(transport(frame, protocol, at, layers.later_fragment));
    }
    parts
}

fn transport(frame: &[u8], protocol: u8, at: usize, later_fragment: bool) -> String {
    let (name, ported) = match protocol {
        1 => ("ICMP", false),
        6 => ("TCP", true),
        17 => ("UDP", true),
        47 => ("GRE", false),
        58 => ("ICMPv6", false),
        132 => ("SCTP", true),
        _ => return format!("protocol {protocol}"),
    };
    if later_fragment {
        return format!("{name}, later fragment without its header");
    }
    match (be16(frame, at), be16(frame, at + 2)) {
        (Some(source), Some(destination)) if ported => format!("{name} {source} > {destination}"),
        _ => name.into(),
    }
}
