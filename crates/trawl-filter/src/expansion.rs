//! SEAM (to be replaced): what the compiler adds to a filter so that it means what its author meant.

use crate::{Filter, FilterError};

/// How a filter is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// Exactly as libpcap reads it: nothing is added.
    pub literal: bool,
    /// Also match the inner packet of VXLAN, GRE and Geneve.
    pub tunnels: bool,
}

/// What was added to a filter, and what was left out and why; goes into the manifest of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expansion {
    /// Sees through up to this many VLAN tags.
    pub vlan_tags: u8,
    /// A test of ports also accepts later fragments, which carry none.
    pub later_fragments: bool,
    /// Sees through IPv6 extension headers.
    pub ip6_extension_headers: bool,
    /// Sees the inner packets of VXLAN, GRE and Geneve.
    pub tunnels: bool,
}

impl Expansion {
    /// One sentence for each thing that was added or left out, for people.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Something legal but surprising about a filter; `Display` says it in one sentence without repeating the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// `(vlan and F) or F` and the like.
    #[error(
        "the filter tests vlan before other tests, which libpcap then reads behind the tag: it cannot see untagged traffic"
    )]
    MissesUntagged,
}

/// A filter that is ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// What captures run.
    pub filter: Filter,
    /// The text with every test written out in full; empty for everything.
    pub normalized: String,
    /// What was added.
    pub expansion: Expansion,
    /// What its author should know.
    pub warnings: Vec<Warning>,
}

/// Compiles a filter within [`crate::COMPILE_DEADLINE`].
///
/// # Errors
/// See [`FilterError`].
pub fn compile_with(text: &str, _options: &Options) -> Result<Compiled, FilterError> {
    Ok(Compiled {
        filter: crate::compile(text)?,
        normalized: text.into(),
        expansion: Expansion::default(),
        warnings: Vec::new(),
    })
}

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
    /// Every test, in the order of the text.
    pub tests: Vec<TracedTest>,
}

/// Says why a frame matches or not. Slow; for people.
///
/// # Errors
/// See [`FilterError`].
pub fn trace(text: &str, options: &Options, frame: &[u8], wire_length: u32) -> Result<Trace, FilterError> {
    let compiled = compile_with(text, options)?;
    Ok(Trace {
        matched: compiled.filter.matches(frame, wire_length),
        seen: String::new(),
        tests: Vec::new(),
    })
}
