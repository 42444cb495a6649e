//! Work that may take long or need much stack, on a thread of its own with a deadline.

use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use crate::FilterError;

/// Compilations at a time; more of them wait. Those that never end keep their place, so that they cannot eat the
/// machine.
const MAX_COMPILING: usize = 4;
const STACK_BYTES: usize = 8 << 20;

static COMPILING: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// Does `work`, and waits for it `deadline` at most.
pub(crate) fn within<T: Send + 'static>(
    deadline: Duration,
    work: impl FnOnce() -> Result<T, FilterError> + Send + 'static,
) -> Result<T, FilterError> {
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
        let _ = sender.send(work());
    });
    started.map_err(|_| FilterError::Internal("no thread could be started"))?;
    match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
        Ok(result) => result,
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
