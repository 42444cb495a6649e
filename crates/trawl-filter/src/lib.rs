//! Filter text to a checked BPF program, without name resolution.
//!
//! [`words`] takes the text apart and refuses everything that libpcap would have to look up (host names, service
//! names) or would silently read as something wider. libpcap compiles what is left, for an Ethernet file, on a thread
//! of its own with a deadline. Beside it the text is read as a tree of tests, which tells what each test is, where it
//! stands, and which layers the filter looks at itself. A [`Program`] runs the checked code without `unsafe`, on
//! frames as the filter is to see them: without VLAN tags and IPv6 extension headers, and inside of tunnels when that
//! is asked for. Errors name a position and what to do, and never repeat the text.
#![forbid(unsafe_code)]

mod away;
mod code;
mod compile;
mod error;
mod expansion;
#[cfg(test)]
mod frames;
mod libpcap;
#[cfg(test)]
mod libpcap_tests;
mod listing;
mod program;
mod relation;
mod steps;
mod survey;
mod syntax;
#[cfg(test)]
mod syntax_tests;
mod trace;
#[cfg(test)]
mod trace_tests;
mod tree;
mod tunnel;
#[cfg(test)]
mod tunnel_tests;
mod view;
#[cfg(test)]
mod view_tests;
pub mod words;

pub use compile::{COMPILE_DEADLINE, compile, compile_with};
pub use error::FilterError;
pub use expansion::{Compiled, Expansion, Layer, LeftOut, Options, Warning};
pub use program::Program;
pub use trace::{Trace, TracedTest, trace};

/// Longest filter text, in bytes.
pub const MAX_FILTER_BYTES: usize = 1024;

/// What a capture keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Every frame: the text was absent, empty or only spaces.
    Everything,
    /// The frames that the program accepts.
    Program(Program),
}

impl Filter {
    /// Whether a frame is kept. `wire_length` is its length on the wire, of which `frame` may be the beginning.
    #[must_use]
    #[inline]
    pub fn matches(&self, frame: &[u8], wire_length: u32) -> bool {
        match self {
            Self::Everything => true,
            Self::Program(program) => program.matches(frame, wire_length),
        }
    }
}
