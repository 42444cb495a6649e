//! Interrupts a system call of this thread when its time is over.

use std::io;
use std::marker::PhantomData;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Again and again, since the thread may be between two calls when the first signal comes.
const AGAIN: Duration = Duration::from_millis(5);

/// Goes off after its time, until it is dropped.
#[derive(Debug)]
pub(super) struct Alarm {
    off: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Keeps the alarm on the thread that it interrupts.
    _here: PhantomData<*const ()>,
}

extern "C" fn nothing(_: libc::c_int) {}

impl Alarm {
    /// Interrupts the calling thread from `after` on, with SIGURG, which nothing else here uses and which is ignored by default.
    pub fn set(after: Duration) -> io::Result<Self> {
        handle()?;
        // SAFETY: has no preconditions.
        let thread = unsafe { libc::pthread_self() };
        let (off, told) = channel::<()>();
        let mut wait = after;
        let clock = move || {
            while told.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = AGAIN;
                // SAFETY: dropping the alarm joins this thread, and it is dropped on the thread that it interrupts,
                // which therefore still lives.
                unsafe { libc::pthread_kill(thread, libc::SIGURG) };
            }
        };
        Ok(Self {
            off: Some(off),
            thread: Some(std::thread::Builder::new().name("alarm".into()).spawn(clock)?),
            _here: PhantomData,
        })
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.off = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A handler that does nothing, without SA_RESTART, makes a signal end the call that it interrupts.
fn handle() -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid action, which is plain data.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the action lives through the call; its handler does nothing, which is allowed at any time.
    let result = unsafe { libc::sigaction(libc::SIGURG, &raw const action, std::ptr::null_mut()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
