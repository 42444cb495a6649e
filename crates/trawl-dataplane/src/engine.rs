//! The receive thread of one attachment: frames in, each judged once per distinct filter, captures fed.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use trawl_control::{CaptureMode, Counters, StopReason};
use trawl_filter::Filter;

use crate::backend::{Backend, Frame, Losses};
use crate::clock;
use crate::pcapng::{self, Header, Statistics};
use crate::sink::{Bounds, Sink};
use crate::writer::{self, OnEnd, Shared as WriterShared};

const IDLE: Duration = Duration::from_millis(250);
const ACTIVE: Duration = Duration::from_millis(5);
/// How often waiting batches are written although they are not full.
const FLUSH_NS: u64 = 200_000_000;
/// A window whose frames kept coming without stamps ends this long after its end all the same.
const OVERDUE_NS: u64 = 2_000_000_000;
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// What a capture keeps and when it ends.
#[derive(Clone, Debug)]
pub struct CaptureSpec {
    /// The compiled filter.
    pub filter: Filter,
    /// Its text, for the file.
    pub filter_text: String,
    /// Length of the window in nanoseconds.
    pub duration_ns: u64,
    /// Upper bound of the file in bytes.
    pub max_size: u64,
    /// Bytes kept of each packet; 0 for all.
    pub snaplen: u32,
    /// Comments for the file.
    pub comments: Vec<String>,
    /// Interface name, for the file.
    pub interface: String,
    /// Program and version, for the file.
    pub application: String,
    /// Link speed in bits per second, when known.
    pub speed: Option<u64>,
}

/// Why the engine could not do something.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No thread, no descriptor.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
    /// The receive thread is gone or stuck.
    #[error("the receive thread does not answer")]
    Gone,
    /// The file header alone would break the bound.
    #[error(
        "the comments and the filter alone need {needed} bytes of the file; raise its bound or shorten them"
    )]
    NoRoom {
        /// Bytes of an empty file.
        needed: u64,
    },
}

enum Command {
    Add(
        Box<CaptureSpec>,
        File,
        OnEnd,
        SyncSender<Result<Running, EngineError>>,
    ),
    Cancel(u64, StopReason, Option<String>),
    EndAll(String),
    Stop(String),
}

/// A capture that is under way.
#[derive(Clone, Debug)]
pub struct Running {
    /// Names it towards [`Engine::cancel`].
    pub id: u64,
    /// First nanosecond of its window.
    pub started_at_ns: u64,
    writer: Arc<WriterShared>,
}

impl Running {
    /// Packets and bytes in the file so far.
    #[must_use]
    pub fn written(&self) -> (u64, u64) {
        (
            self.writer.packets.load(Ordering::Relaxed),
            self.writer.bytes.load(Ordering::Relaxed),
        )
    }
}

#[derive(Debug, Default)]
struct Totals {
    packets: AtomicU64,
    bytes: AtomicU64,
    last_packet_ns: AtomicU64,
    ring: AtomicU64,
    nic: AtomicU64,
    measured: [AtomicBool; 2],
    active: AtomicU32,
    problem: Mutex<Option<String>>,
}

/// Handle of a receive thread. Dropping it stops the thread and ends its captures.
#[derive(Debug)]
pub struct Engine {
    commands: Sender<Command>,
    wake: Arc<OwnedFd>,
    totals: Arc<Totals>,
    mode: CaptureMode,
    refusals: Vec<String>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// Starts the receive thread of a ring.
    ///
    /// # Errors
    /// No thread or no descriptor could be had.
    pub fn start<B: Backend>(backend: B) -> Result<Self, EngineError> {
        let (commands, inbox) = channel();
        let wake =
            Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?);
        let totals = Arc::new(Totals::default());
        let (mode, refusals) = (backend.mode(), backend.mode_refusals().to_vec());
        let core = Core {
            backend,
            inbox,
            wake: Arc::clone(&wake),
            totals: Arc::clone(&totals),
            groups: Vec::new(),
            next_id: 1,
            flushed_ns: 0,
        };
        let thread = std::thread::Builder::new()
            .name("trawl-receive".into())
            .spawn(move || core.run())?;
        Ok(Self {
            commands,
            wake,
            totals,
            mode,
            refusals,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Starts a capture into `file`; `on_end` is called once, from another thread, when the file is finished.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn capture(&self, spec: CaptureSpec, file: File, on_end: OnEnd) -> Result<Running, EngineError> {
        let (reply, answer) = sync_channel(1);
        self.send(Command::Add(Box::new(spec), file, on_end, reply))?;
        answer
            .recv_timeout(START_TIMEOUT)
            .map_err(|_| EngineError::Gone)?
    }

    /// Ends a capture early; its file is finished all the same.
    pub fn cancel(&self, id: u64, reason: StopReason, message: Option<String>) {
        let _ = self.send(Command::Cancel(id, reason, message));
    }

    /// Ends every capture with [`StopReason::Error`] and this message; the ring stays open.
    pub fn end_captures(&self, message: &str) {
        let _ = self.send(Command::EndAll(message.into()));
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

    /// Totals since the ring was opened.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let t = &self.totals;
        let measured = |i: usize, v: &AtomicU64| {
            t.measured[i]
                .load(Ordering::Relaxed)
                .then(|| v.load(Ordering::Relaxed))
        };
        Counters {
            packets: t.packets.load(Ordering::Relaxed),
            bytes: t.bytes.load(Ordering::Relaxed),
            dropped_ring: measured(0, &t.ring),
            dropped_nic: measured(1, &t.nic),
        }
    }

    /// Stamp of the last frame.
    #[must_use]
    pub fn last_packet_ns(&self) -> Option<u64> {
        Some(self.totals.last_packet_ns.load(Ordering::Relaxed)).filter(|ns| *ns > 0)
    }

    /// Captures under way.
    #[must_use]
    pub fn active_captures(&self) -> u32 {
        self.totals.active.load(Ordering::Relaxed)
    }

    /// What is wrong with the ring now.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if self.has_ended() {
            return Some("the receive thread has ended; detach and attach again".into());
        }
        self.totals
            .problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether the receive thread is over.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .is_none_or(JoinHandle::is_finished)
    }

    /// Stops the thread and closes the ring; its captures end with [`StopReason::Error`] and this message. Waits for
    /// the thread, but not for the writers.
    pub fn stop(&self, message: &str) {
        let _ = self.send(Command::Stop(message.into()));
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }

    fn send(&self, command: Command) -> Result<(), EngineError> {
        self.commands.send(command).map_err(|_| EngineError::Gone)?;
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop("the interface was closed");
    }
}

struct Group {
    filter: Filter,
    sinks: Vec<Sink>,
}

struct Core<B> {
    backend: B,
    inbox: Receiver<Command>,
    wake: Arc<OwnedFd>,
    totals: Arc<Totals>,
    groups: Vec<Group>,
    next_id: u64,
    flushed_ns: u64,
}

impl<B: Backend> Core<B> {
    fn run(mut self) {
        loop {
            let asked_at = clock::realtime_ns();
            while let Ok(command) = self.inbox.try_recv() {
                if let Command::Stop(message) = command {
                    self.end_all(&message);
                    return;
                }
                self.obey(command);
            }
            let received = self.receive();
            let drained = matches!(received, Ok(0));
            if let Err(e) = received {
                self.report(Some(e.to_string()));
                std::thread::sleep(Duration::from_millis(50));
            }
            self.pass_time(asked_at, drained);
            if drained {
                self.wait();
            }
        }
    }

    fn receive(&mut self) -> io::Result<usize> {
        let (mut packets, mut bytes, mut last) = (0u64, 0u64, 0u64);
        let groups = &mut self.groups;
        let result = self.backend.receive(&mut |frame: Frame<'_>| {
            packets += 1;
            bytes += u64::from(frame.wire_length);
            last = frame.stamp_ns;
            for group in groups.iter_mut() {
                let matched = group.filter.matches(frame.bytes, frame.wire_length);
                for sink in &mut group.sinks {
                    sink.offer(&frame, matched);
                }
            }
        });
        if packets > 0 {
            self.totals.packets.fetch_add(packets, Ordering::Relaxed);
            self.totals.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.totals.last_packet_ns.store(last, Ordering::Relaxed);
            self.report(None);
        }
        result
    }

    /// Ends what is over and hands on what has waited long enough.
    fn pass_time(&mut self, asked_at: u64, drained: bool) {
        let seen_until = asked_at.saturating_sub(if drained {
            self.backend.lag_ns()
        } else {
            OVERDUE_NS
        });
        let flush = asked_at.abs_diff(self.flushed_ns) >= FLUSH_NS;
        for sink in self.groups.iter_mut().flat_map(|g| &mut g.sinks) {
            sink.pass_time(seen_until);
            if flush {
                sink.flush();
                sink.check_writer(asked_at);
            }
        }
        if flush {
            self.flushed_ns = asked_at;
            let _ = self.losses();
        }
        self.finish_ended();
    }

    fn finish_ended(&mut self) {
        if !self.groups.iter().flat_map(|g| &g.sinks).any(Sink::has_ended) {
            return;
        }
        let losses = self.losses().unwrap_or_default();
        let clock_source = self.backend.clock_source();
        for group in &mut self.groups {
            for sink in group.sinks.extract_if(.., |s| s.has_ended()) {
                self.totals.active.fetch_sub(1, Ordering::Relaxed);
                sink.finish(losses, clock_source);
            }
        }
        self.groups.retain(|g| !g.sinks.is_empty());
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Add(spec, file, on_end, reply) => {
                let _ = reply.send(self.add(*spec, file, on_end));
            }
            Command::Cancel(id, reason, message) => {
                let now = clock::realtime_ns();
                for sink in self
                    .groups
                    .iter_mut()
                    .flat_map(|g| &mut g.sinks)
                    .filter(|s| s.id == id)
                {
                    sink.end(reason, now, message.clone());
                }
                self.finish_ended();
            }
            Command::EndAll(message) => self.end_all(&message),
            Command::Stop(_) => {}
        }
    }

    fn add(&mut self, spec: CaptureSpec, file: File, on_end: OnEnd) -> Result<Running, EngineError> {
        let losses = self.losses()?;
        let header = file_header(&spec);
        let trailer = trailer_length(losses);
        let needed = header.len() as u64 + trailer;
        if needed > spec.max_size {
            return Err(EngineError::NoRoom { needed });
        }
        let writer = writer::start(file, on_end)?;
        let start_ns = clock::realtime_ns();
        let end_ns = start_ns.saturating_add(spec.duration_ns);
        let bounds = Bounds {
            start_ns,
            end_ns,
            max_size: spec.max_size,
            snaplen: spec.snaplen,
            trailer,
        };
        let (id, shared) = (self.next_id, Arc::clone(&writer.2));
        self.next_id += 1;
        let sink = Sink::new(id, bounds, header, losses, writer);
        match self.groups.iter_mut().find(|g| g.filter == spec.filter) {
            Some(group) => group.sinks.push(sink),
            None => self.groups.push(Group {
                filter: spec.filter,
                sinks: vec![sink],
            }),
        }
        self.totals.active.fetch_add(1, Ordering::Relaxed);
        Ok(Running {
            id,
            started_at_ns: start_ns,
            writer: shared,
        })
    }

    fn end_all(&mut self, message: &str) {
        // What is in the ring already belongs to the captures that are open.
        let _ = self.receive();
        let now = clock::realtime_ns();
        for sink in self.groups.iter_mut().flat_map(|g| &mut g.sinks) {
            sink.end(StopReason::Error, now, Some(message.to_owned()));
        }
        self.finish_ended();
    }

    fn losses(&mut self) -> io::Result<Losses> {
        let losses = self.backend.losses()?;
        let t = &self.totals;
        for (i, (value, total)) in [(losses.ring, &t.ring), (losses.nic, &t.nic)]
            .into_iter()
            .enumerate()
        {
            t.measured[i].store(value.is_some(), Ordering::Relaxed);
            total.store(value.unwrap_or(0), Ordering::Relaxed);
        }
        Ok(losses)
    }

    fn report(&self, problem: Option<String>) {
        *self.totals.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    fn wait(&self) {
        let timeout = if self.groups.is_empty() { IDLE } else { ACTIVE };
        let ring = self.backend.poll_fd();
        let mut fds = [
            PollFd::from_borrowed_fd(ring, PollFlags::IN),
            PollFd::new(&self.wake, PollFlags::IN),
        ];
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: timeout.as_nanos() as i64,
        };
        let _ = poll(&mut fds, Some(&timeout));
        if fds[0].revents().contains(PollFlags::ERR) {
            if let Ok(Err(e)) = rustix::net::sockopt::socket_error(ring) {
                self.report(Some(format!("the socket reports: {e}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }
}

fn file_header(spec: &CaptureSpec) -> Vec<u8> {
    let uname = rustix::system::uname();
    let os = format!(
        "{} {}",
        uname.sysname().to_string_lossy(),
        uname.release().to_string_lossy()
    );
    pcapng::header(&Header {
        application: &spec.application,
        os: &os,
        comments: &spec.comments,
        interface: &spec.interface,
        speed: spec.speed,
        filter: &spec.filter_text,
        snaplen: spec.snaplen,
    })
}

fn trailer_length(losses: Losses) -> u64 {
    let like = Statistics {
        interface_dropped: losses.nic,
        os_dropped: losses.ring,
        ..Statistics::default()
    };
    pcapng::statistics(&like).len() as u64
}
