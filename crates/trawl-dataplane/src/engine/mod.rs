//! The engine of one attachment: a receive thread per queue, and the captures and feeds that they serve.

mod core;
pub(crate) mod feed;
mod group;
pub(crate) mod stock;
#[cfg(test)]
mod tests;
mod totals;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use trawl_control::{CaptureMode, Counters, FeedStatus, HistoryStatus, QueueStatus, StopReason};

use self::core::{Command, Core, Start};
use self::feed::Feed;
use self::stock::Returned;
use self::totals::Totals;
use crate::capture::statistics::{self, Measured};
use crate::capture::window::Window;
use crate::capture::writer::{self, Job};
use crate::capture::{CaptureSpec, OnEnd, Running};
use crate::clock;
use crate::outlet::Outlet;
use crate::queue::Queue;
use crate::ring::{Guard, Opened};

const START_TIMEOUT: Duration = Duration::from_secs(5);
/// How far in the future a trigger may lie: clocks of one machine do not differ by more.
const FUTURE_NS: u64 = 1_000_000_000;

/// Why the engine could not do something.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No thread, no descriptor.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
    /// A receive thread is gone or stuck.
    #[error("the receive thread does not answer; detach and attach again")]
    Gone,
    /// The file header alone would break the bound.
    #[error(
        "the comments and the filter alone need {needed} bytes of the file; raise its bound or shorten them"
    )]
    NoRoom {
        /// Bytes of an empty file.
        needed: u64,
    },
    /// The trigger has not happened yet.
    #[error("the trigger lies {ahead_ms} ms in the future; name a moment that has passed, or none for now")]
    Future {
        /// How far, in milliseconds.
        ahead_ms: u64,
    },
}

/// How one receive thread is reached.
struct Line {
    commands: Sender<Command>,
    returns: Sender<Returned>,
    wake: Arc<OwnedFd>,
    totals: Arc<Totals>,
}

impl Line {
    fn send(&self, command: Command) -> Result<(), EngineError> {
        self.commands.send(command).map_err(|_| EngineError::Gone)?;
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        Ok(())
    }
}

/// Captures that are under way, by their numbers.
type Captures = Arc<Mutex<HashMap<u64, Arc<Window>>>>;

/// Handle of the receive threads. Dropping it stops them and ends their captures.
pub struct Engine {
    lines: Arc<Vec<Line>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    guard: Mutex<Option<Guard>>,
    mode: CaptureMode,
    refusals: Vec<String>,
    measured: Measured,
    next_id: AtomicU64,
    captures: Captures,
    feeds: Mutex<Vec<Arc<Feed>>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("mode", &self.mode)
            .field("queues", &self.lines.len())
            .finish_non_exhaustive()
    }
}

/// Keeps a feed going; dropping it ends the feed.
pub struct FeedHandle {
    feed: Arc<Feed>,
    lines: Arc<Vec<Line>>,
}

impl FeedHandle {
    /// What has gone out, and what has not.
    #[must_use]
    pub fn status(&self) -> FeedStatus {
        self.feed.status()
    }

    /// Whether its sender is over, because the interface was closed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.feed.is_over()
    }
}

impl std::fmt::Debug for FeedHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FeedHandle").field(&self.feed).finish()
    }
}

impl Drop for FeedHandle {
    fn drop(&mut self) {
        self.feed.end();
        self.lines.iter().for_each(|line| drop(line.send(Command::Look)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// Starts a receive thread for each queue.
    ///
    /// # Errors
    /// No thread or no descriptor could be had, or the counters cannot be read.
    pub fn start<Q: Queue>(opened: Opened<Q>) -> Result<Self, EngineError> {
        let Opened {
            queues,
            mode,
            refusals,
            guard,
        } = opened;
        let mut engine = Self {
            lines: Arc::default(),
            threads: Mutex::default(),
            guard: Mutex::new(Some(guard)),
            mode,
            refusals,
            measured: Measured {
                ring: true,
                nic: false,
            },
            next_id: AtomicU64::new(1),
            captures: Captures::default(),
            feeds: Mutex::default(),
        };
        let (count, mut lines) = (queues.len(), Vec::new());
        for (number, queue) in queues.into_iter().enumerate() {
            let (line, thread) = engine.serve(queue, (number, count))?;
            lines.push(line);
            lock(&engine.threads).push(thread);
        }
        engine.lines = Arc::new(lines);
        Ok(engine)
    }

    fn serve<Q: Queue>(
        &mut self,
        mut queue: Q,
        place: (usize, usize),
    ) -> Result<(Line, JoinHandle<()>), EngineError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = Arc::new(eventfd(0, flags).map_err(io::Error::from)?);
        let totals = Arc::new(Totals::default());
        let losses = queue.losses()?;
        self.measured.ring &= losses.ring.is_some();
        self.measured.nic |= losses.nic.is_some();
        totals.report().losses = losses;
        let (commands, inbox) = channel();
        let (returns, returned) = channel();
        let core = Core::new(
            queue,
            inbox,
            returned,
            Arc::clone(&wake),
            Arc::clone(&totals),
            place,
        );
        let name = format!("trawl-rx-{}", place.0);
        let thread = std::thread::Builder::new().name(name).spawn(move || core.run())?;
        let line = Line {
            commands,
            returns,
            wake,
            totals,
        };
        Ok((line, thread))
    }

    /// Starts a capture into `file`; `on_end` is called once, from another thread, when the file is finished.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn capture(&self, spec: CaptureSpec, file: File, on_end: OnEnd) -> Result<Running, EngineError> {
        let now = clock::realtime_ns();
        let trigger_ns = spec.trigger_ns.unwrap_or(now);
        if trigger_ns > now + FUTURE_NS {
            return Err(EngineError::Future {
                ahead_ms: (trigger_ns - now) / 1_000_000,
            });
        }
        let requested_from_ns = trigger_ns.saturating_sub(spec.pre_trigger_ns);
        let window = self.window(&spec, (now, trigger_ns))?;
        let reached = self.begin(&spec, &window, requested_from_ns, (file, on_end));
        let Ok(complete_from_ns) = reached else {
            window.end_now(StopReason::Error, now, Some(EngineError::Gone.to_string()));
            self.look();
            return Err(EngineError::Gone);
        };
        let covered_from_ns = requested_from_ns.max(complete_from_ns).min(window.end_ns());
        window.begin(covered_from_ns);
        self.look();
        Ok(Running {
            id: window.id,
            started_at_ns: now,
            requested_from_ns,
            covered_from_ns,
            window,
        })
    }

    fn window(&self, spec: &CaptureSpec, (now, trigger_ns): (u64, u64)) -> Result<Arc<Window>, EngineError> {
        let needed = spec.file_header().len() as u64 + statistics::length(self.measured);
        let room = spec
            .max_size
            .checked_sub(needed)
            .ok_or(EngineError::NoRoom { needed })?;
        Ok(Arc::new(Window::new(
            self.next_id.fetch_add(1, Ordering::Relaxed),
            (now, trigger_ns.saturating_add(spec.duration_ns)),
            room,
            spec.snaplen,
            self.lines.len(),
        )))
    }

    /// Starts the writer and tells all receive threads; returns from when on all of them hold everything.
    fn begin(
        &self,
        spec: &CaptureSpec,
        window: &Arc<Window>,
        from_ns: u64,
        (file, on_end): (File, OnEnd),
    ) -> Result<u64, EngineError> {
        let (id, captures) = (window.id, Arc::clone(&self.captures));
        lock(&captures).insert(id, Arc::clone(window));
        let forget = Arc::clone(&captures);
        let started = writer::start(Job {
            file,
            header: spec.file_header(),
            measured: self.measured,
            window: Arc::clone(window),
            returns: self.lines.iter().map(|line| line.returns.clone()).collect(),
            on_end: Box::new(move |ended| {
                lock(&forget).remove(&id);
                on_end(ended);
            }),
        });
        let out = started.inspect_err(|_| drop(lock(&captures).remove(&id)))?;
        let (reply, answers) = sync_channel(self.lines.len());
        for line in self.lines.iter() {
            let start = Start {
                filter: spec.filter.clone(),
                window: Arc::clone(window),
                from_ns,
                out: out.clone(),
            };
            line.send(Command::Capture(Box::new(start), reply.clone()))?;
        }
        let each = self.lines.iter().map(|_| answers.recv_timeout(START_TIMEOUT));
        each.max_by_key(|reached| reached.as_ref().map_or(u64::MAX, |ns| *ns))
            .unwrap_or(Ok(from_ns))
            .map_err(|_| EngineError::Gone)
    }

    /// Has all receive threads look at what has changed.
    fn look(&self) {
        self.lines.iter().for_each(|line| drop(line.send(Command::Look)));
    }

    /// Sends a copy of everything that arrives from now on to an outlet, until the handle is dropped.
    ///
    /// # Errors
    /// No thread could be had, or a receive thread is gone.
    pub fn feed(&self, name: String, outlet: Box<dyn Outlet>) -> Result<FeedHandle, EngineError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let returns = self.lines.iter().map(|line| (id, line.returns.clone())).collect();
        let (feed, out) = feed::start(name, outlet, returns)?;
        let handle = FeedHandle {
            feed: Arc::clone(&feed),
            lines: Arc::clone(&self.lines),
        };
        for line in self.lines.iter() {
            line.send(Command::Feed(id, Arc::clone(&feed), out.clone()))?;
        }
        let mut feeds = lock(&self.feeds);
        feeds.retain(|f| !f.is_over());
        feeds.push(feed);
        Ok(handle)
    }

    /// Ends a capture early: its window now ends at this moment, and its file is finished.
    pub fn cancel(&self, id: u64, reason: StopReason, message: Option<String>) {
        if let Some(window) = lock(&self.captures).get(&id) {
            window.cut(reason, clock::realtime_ns(), message);
        }
        self.look();
    }

    /// Ends every capture with [`StopReason::Error`] and this message; the ring stays open.
    pub fn end_captures(&self, message: &str) {
        let now = clock::realtime_ns();
        for window in lock(&self.captures).values() {
            window.cut(StopReason::Error, now, Some(message.to_owned()));
        }
        self.look();
    }

    /// How frames arrive.
    #[must_use]
    pub fn mode(&self) -> CaptureMode {
        self.mode
    }

    /// Why each better mode was refused.
    #[must_use]
    pub fn mode_refusals(&self) -> &[String] {
        &self.refusals
    }

    fn totals(&self) -> Vec<Arc<Totals>> {
        self.lines.iter().map(|line| Arc::clone(&line.totals)).collect()
    }

    /// Totals since the ring was opened.
    #[must_use]
    pub fn counters(&self) -> Counters {
        totals::counters(&self.totals())
    }

    /// Each receive queue.
    #[must_use]
    pub fn queues(&self) -> Vec<QueueStatus> {
        let all = self.lines.iter().enumerate();
        all.map(|(i, line)| line.totals.status(i, self.mode)).collect()
    }

    /// What is held in memory; nothing while a receive thread does not answer.
    #[must_use]
    pub fn history(&self) -> Option<HistoryStatus> {
        totals::history(&self.totals())
    }

    /// The feeds that are under way.
    #[must_use]
    pub fn feeds(&self) -> Vec<FeedStatus> {
        let feeds = lock(&self.feeds);
        feeds
            .iter()
            .filter(|f| !f.is_over())
            .map(|f| f.status())
            .collect()
    }

    /// Stamp of the last frame, a fraction of a second late at most.
    #[must_use]
    pub fn last_packet_ns(&self) -> Option<u64> {
        let stamps = self.lines.iter().map(|line| &line.totals.last_packet_ns);
        stamps
            .map(|ns| ns.load(Ordering::Relaxed))
            .max()
            .filter(|ns| *ns > 0)
    }

    /// Captures under way, those included whose files are not finished yet.
    #[must_use]
    pub fn active_captures(&self) -> u32 {
        lock(&self.captures).len() as u32
    }

    /// What is wrong with the rings now.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if self.has_ended() {
            return Some("the receive thread has ended; detach and attach again".into());
        }
        self.lines
            .iter()
            .find_map(|line| line.totals.report().problem.clone())
    }

    /// Whether a receive thread is over.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let threads = lock(&self.threads);
        threads.is_empty() || threads.iter().any(JoinHandle::is_finished)
    }

    /// Stops the threads and closes the rings; captures end with [`StopReason::Error`] and this message. Waits for
    /// the receive threads, but not for the writers.
    pub fn stop(&self, message: &str) {
        drop(lock(&self.guard).take());
        for line in self.lines.iter() {
            let _ = line.send(Command::Stop(message.into()));
        }
        for thread in lock(&self.threads).drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop("the interface was closed");
    }
}
