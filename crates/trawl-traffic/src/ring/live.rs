//! Live-frame XDP test runs: the kernel makes the frames, our program numbers and redirects them. Needs Linux 5.18,
//! CAP_NET_ADMIN and CAP_BPF.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use super::alarm::Alarm;
use super::bpf::{self, Cell};
use super::renumber::{self, State};
use crate::frame::{Shape, Template};
use crate::pace::Sent;

/// Frames that the kernel makes at a time: what its driver half takes at once.
const BATCH: u64 = 64;
/// Most frames of one run, so that a count of them fits what the kernel takes.
const MANY: u64 = 1 << 31;
/// Largest frame: what fits a page beside headroom and the kernel's own data (Linux 6.18 on x86-64).
pub const MAX_LIVE_FRAME: usize = 3400;
/// Slowest rate: below it the kernel would have to wait for longer than is good for the processor it does that on.
pub const MIN_LIVE_RATE: u64 = 20_000;

/// Sends numbered frames out of one interface.
#[derive(Debug)]
pub struct Live {
    program: OwnedFd,
    largest: Vec<u8>,
    state: Cell,
    rate: Option<u64>,
}

impl Live {
    /// Frames of these sizes in turn, from the number `first` on, at `rate` frames a second or as fast as possible, out of the
    /// interface of this name in the network namespace of the calling thread.
    ///
    /// # Errors
    /// No such interface, a size or rate that cannot be sent, or what the kernel says.
    pub fn open(
        interface: &str,
        shape: Shape,
        sizes: &[usize],
        first: u64,
        rate: Option<u64>,
    ) -> io::Result<Self> {
        check(sizes, rate)?;
        let index = super::packet::index_of(interface)?;
        let templates = sizes
            .iter()
            .map(|size| Template::new(shape, *size).map_err(io::Error::other));
        let templates = templates.collect::<io::Result<Vec<_>>>()?;
        let largest = templates.iter().max_by_key(|t| t.size()).map(|t| t.bytes.clone());
        let state = Cell::new()?;
        let interval = rate.map_or(0, |rate| (256_000_000_000 / rate) as u32);
        let code = renumber::program(&templates, &shape, index, state.0.as_raw_fd(), interval);
        let program = bpf::load(&code)?;
        state.set(State {
            next: first,
            ..State::default()
        })?;
        Ok(Self {
            program,
            largest: largest.unwrap_or_default(),
            state,
            rate,
        })
    }

    /// Sends until the plan is carried out; its rate is that of [`Live::open`]. The kernel does not tell how many frames
    /// the far side had no room for: their numbers are missing there, and the interface's counters say how many arrived.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn send(&self, count: Option<u64>, duration: Option<Duration>) -> io::Result<Sent> {
        let before = self.state.get()?;
        self.state.set(State {
            next: before.next,
            ..State::default()
        })?;
        let began = Instant::now();
        let _alarm = duration.map(Alarm::set).transpose()?;
        let mut left = count.unwrap_or(u64::MAX);
        while left > 0 && duration.is_none_or(|d| began.elapsed() < d) {
            let result = bpf::run(
                &self.program,
                &self.largest,
                left.min(MANY) as u32,
                self.batch(left),
            );
            let sent = self.state.get()?.next.wrapping_sub(before.next);
            left = count.map_or(u64::MAX, |count| count.saturating_sub(sent));
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => other?,
            }
        }
        Ok(sent(before.next, self.state.get()?, began.elapsed()))
    }

    fn batch(&self, left: u64) -> u32 {
        let paced = self.rate.map_or(BATCH, |rate| (rate / 20_000).clamp(1, BATCH));
        paced.min(left) as u32
    }

    /// The number that the next frame will have.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn next(&self) -> io::Result<u64> {
        Ok(self.state.get()?.next)
    }
}

fn check(sizes: &[usize], rate: Option<u64>) -> io::Result<()> {
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if let Some(size) = sizes.iter().find(|size| **size > MAX_LIVE_FRAME) {
        return refuse(format!(
            "a live frame has at most {MAX_LIVE_FRAME} bytes, not {size}; send larger ones with --sender packet"
        ));
    }
    if let Some(rate) = rate.filter(|rate| *rate < MIN_LIVE_RATE) {
        return refuse(format!(
            "live frames are sent at {MIN_LIVE_RATE} a second or more, not {rate}; send slower with --sender packet"
        ));
    }
    if sizes.is_empty() {
        return refuse("no size to send was named".into());
    }
    Ok(())
}

/// The kernel takes some 20 ms to tidy up after a run, so the program's own clock readings say how long sending took.
fn sent(first: u64, state: State, elapsed: Duration) -> Sent {
    let frames = state.next.wrapping_sub(first);
    let marked = state
        .mark
        .checked_sub(first)
        .filter(|n| *n >= renumber::MARK_EVERY);
    let took = marked.and_then(|marked| {
        let ns = u128::from(state.mark_ns.checked_sub(state.first_ns)?);
        Some(Duration::from_nanos(
            (ns * u128::from(frames) / u128::from(marked)) as u64,
        ))
    });
    Sent {
        frames,
        took: took.unwrap_or(elapsed),
    }
}
