//! Live-frame XDP test runs: the kernel makes the frames, our program numbers and redirects them. Needs Linux 5.18 and
//! CAP_NET_ADMIN with CAP_BPF. One number is lost with each frame that the far side has no room for.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::bpf::{self, Cell, State};
use super::renumber;
use crate::frame::{Shape, Template};

/// Frames that the kernel makes at a time.
const BATCH: u32 = 64;
/// Largest frame: what fits a page beside headroom and the kernel's own data (Linux 6.18 on x86-64).
pub const MAX_LIVE_FRAME: usize = 3400;

/// Sends numbered frames out of one interface.
#[derive(Debug)]
pub struct Live {
    programs: Vec<(OwnedFd, Template)>,
    turn: usize,
    state: Cell,
}

impl Live {
    /// Frames of these sizes in turn, one size per call of [`Live::send`], from the number `first` on, out of the interface
    /// of this name in the network namespace of the calling thread.
    ///
    /// # Errors
    /// No such interface, a size that cannot be sent, or what the kernel says.
    pub fn open(interface: &str, shape: Shape, sizes: &[usize], first: u64) -> io::Result<Self> {
        let index = super::packet::index_of(interface)?;
        let state = Cell::new()?;
        let programs = sizes.iter().map(|size| {
            if *size > MAX_LIVE_FRAME {
                let why = format!(
                    "a live frame has at most {MAX_LIVE_FRAME} bytes, not {size}; send larger ones with --sender packet"
                );
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            let template = Template::new(shape, *size).map_err(io::Error::other)?;
            let code = renumber::program(&template, &shape, index, state.0.as_raw_fd());
            Ok((bpf::load(&code)?, template))
        });
        let programs = programs.collect::<io::Result<Vec<_>>>()?;
        let crc = programs.first().map_or(0, |(_, template)| template.crc);
        state.set(State {
            next: first,
            crc,
            pad: 0,
        })?;
        Ok(Self {
            programs,
            turn: 0,
            state,
        })
    }

    /// Sends `count` frames of the next size. The kernel does not tell how many of them the far side had no room for:
    /// read its counters.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn send(&mut self, count: u32) -> io::Result<()> {
        let (program, template) = &self.programs[self.turn];
        if self.programs.len() > 1 {
            let next = self.state.get()?.next;
            let crc = template.crc;
            self.state.set(State { next, crc, pad: 0 })?;
            self.turn = (self.turn + 1) % self.programs.len();
        }
        bpf::run(program, &template.bytes, count, BATCH.min(count))
    }

    /// The number that the next frame will have.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn next(&self) -> io::Result<u64> {
        Ok(self.state.get()?.next)
    }
}
