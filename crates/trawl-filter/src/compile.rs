//! libpcap as the front end: called with checked words only, on its own thread, with a deadline.

use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use crate::program::{Instruction, Program};
use crate::{Filter, FilterError, words};

/// How long one compilation may take unless told otherwise. Usual filters need microseconds.
pub const COMPILE_DEADLINE: Duration = Duration::from_secs(2);
/// Compilations at a time; more of them wait. Those that never end keep their place, so that they cannot eat the
/// machine.
const MAX_COMPILING: usize = 4;
const STACK_BYTES: usize = 8 << 20;

static COMPILING: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// Compiles a filter within [`COMPILE_DEADLINE`]. Blocks that long at most; call it away from async workers.
///
/// # Errors
/// See [`FilterError`].
pub fn compile(text: &str) -> Result<Filter, FilterError> {
    compile_within(text, COMPILE_DEADLINE)
}

/// Compiles a filter; blocks for `deadline` at most.
///
/// # Errors
/// See [`FilterError`].
pub fn compile_within(text: &str, deadline: Duration) -> Result<Filter, FilterError> {
    let found = words::split(text)?;
    if found.is_empty() {
        return Ok(Filter::Everything);
    }
    let clean = words::join(&found);
    let end = Instant::now() + deadline;
    let place = Place::take(deadline).ok_or(FilterError::Internal(
        "too many filters are being compiled; try again",
    ))?;
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("filter-compile".into())
        .stack_size(STACK_BYTES);
    let started = thread.spawn(move || {
        let _place = place;
        let _ = sender.send(compile_here(&clean));
    });
    started.map_err(|_| FilterError::Internal("no thread could be started"))?;
    match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
        Ok(result) => result.map(Filter::Program),
        Err(mpsc::RecvTimeoutError::Timeout) => Err(FilterError::TooSlow),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(FilterError::Internal("the compiler failed")),
    }
}

struct Place;

impl Place {
    /// Waits up to `patience` until one is free.
    fn take(patience: Duration) -> Option<Self> {
        let taken = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut taken, _) = FREED
            .wait_timeout_while(taken, patience, |n| *n >= MAX_COMPILING)
            .unwrap_or_else(PoisonError::into_inner);
        if *taken >= MAX_COMPILING {
            return None;
        }
        *taken += 1;
        Some(Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *COMPILING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}

fn compile_here(clean: &str) -> Result<Program, FilterError> {
    let dead = pcap::Capture::dead(pcap::Linktype::ETHERNET);
    let dead = dead.map_err(|_| FilterError::Internal("libpcap gave no handle"))?;
    let compiled = dead.compile(clean, true).map_err(|e| explain(&e))?;
    let code = compiled
        .get_instructions()
        .iter()
        .map(|raw| Instruction::from_listing(&raw.to_string()));
    let code = code
        .collect::<Option<Vec<_>>>()
        .ok_or(FilterError::Internal("unknown code from libpcap"))?;
    Program::new(code).map_err(FilterError::Internal)
}

/// libpcap's messages repeat parts of the text, so only what they stand for is passed on.
fn explain(error: &pcap::Error) -> FilterError {
    let said = match error {
        pcap::Error::PcapError(text) => text.as_str(),
        _ => "",
    };
    if said.contains("rejects all packets") {
        return FilterError::RejectsAll;
    }
    let known = [
        (
            "non-network bits",
            "the network has bits set outside of its mask; clear them",
        ),
        (
            "mask length",
            "the mask is longer than the address; IPv4 ends at 32, IPv6 at 128",
        ),
        (
            "prefix length",
            "the mask is longer than the address; IPv4 ends at 32, IPv6 at 128",
        ),
        (
            "too large",
            "a number is larger than its field; ports end at 65535, VLANs at 4095",
        ),
        (
            "greater than",
            "a number is larger than its field; ports end at 65535, VLANs at 4095",
        ),
        ("illegal port", "a port is out of range; ports end at 65535"),
        (
            "modifier",
            "a word such as tcp or ether stands before something that it cannot qualify",
        ),
        (
            "qualifier",
            "a word such as tcp or ether stands before something that it cannot qualify",
        ),
        ("non-network", "an offset or value does not fit its protocol"),
        (
            "syntax",
            "the words are known but form no expression; each test needs its value, each operator two sides",
        ),
        (
            "parse",
            "the words are known but form no expression; each test needs its value, each operator two sides",
        ),
    ];
    let advice = known.iter().find(|(needle, _)| said.contains(needle)).map_or(
        "the expression does not fit Ethernet frames; check what each word applies to",
        |(_, advice)| *advice,
    );
    FilterError::Syntax { advice }
}
