//! The receive thread of one queue: frames in, each judged once per distinct filter, captures and feeds filled.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use trawl_control::StopReason;
use trawl_filter::Filter;

use super::feed::{Feed, FeedSink};
use super::group::{Group, Walker};
use super::stock::{Returned, Stock};
use super::totals::Totals;
use crate::batch::Batch;
use crate::capture::losses::Samples;
use crate::capture::sink::Sink;
use crate::capture::window::Window;
use crate::capture::writer::Message;
use crate::queue::{Arrived, Position, Queue};
use crate::{clock, cpu};

const IDLE: Duration = Duration::from_millis(250);
const ACTIVE: Duration = Duration::from_millis(5);
/// When a writer that is behind is looked after; it has work for longer than that.
const WAITING: Duration = Duration::from_micros(500);
/// How often waiting blocks are written although they are not full, and counters are read.
const TICK_NS: u64 = 200_000_000;
/// A window whose frames kept coming without stamps ends this long after its end all the same.
const OVERDUE_NS: u64 = 2_000_000_000;
/// A clock that is set back by less stands still as long, for stamps; by more, everything begins anew.
const SET_BACK_NS: u64 = 1_000_000_000;
/// What a capture in the past catches up with in one turn, beside twice of what arrived in it.
const SLICE: u64 = 512;

pub(crate) enum Command {
    /// A capture, the first moment that it wants, and where to say from when on the history is complete.
    Capture(Box<Start>, SyncSender<u64>),
    Feed(u64, Arc<Feed>, Sender<Batch>),
    /// Something about captures has changed.
    Look,
    Stop(String),
}

pub(crate) struct Start {
    pub filter: Filter,
    pub window: Arc<Window>,
    pub from_ns: u64,
    pub out: Sender<Message>,
}

pub(crate) struct Core<Q> {
    queue: Q,
    inbox: Receiver<Command>,
    returns: Receiver<Returned>,
    wake: Arc<OwnedFd>,
    totals: Arc<Totals>,
    stock: Stock,
    /// Where all groups and feeds are.
    live: Position,
    groups: Vec<Group>,
    walkers: Vec<Walker>,
    feeds: Vec<FeedSink>,
    samples: Samples,
    ticked_ns: u64,
    /// The latest moment that the clock has shown.
    latest_ns: u64,
    /// Something is wrong until frames arrive again.
    troubled: bool,
}

impl<Q: Queue> Core<Q> {
    pub fn new(
        queue: Q,
        inbox: Receiver<Command>,
        returns: Receiver<Returned>,
        wake: Arc<OwnedFd>,
        totals: Arc<Totals>,
        (number, queues): (usize, usize),
    ) -> Self {
        let losses = totals.report().losses;
        Self {
            stock: Stock::new(number, queues, queue.memory(), queue.may_hold()),
            live: queue.end(),
            samples: Samples::new(0, losses),
            queue,
            inbox,
            returns,
            wake,
            totals,
            groups: Vec::new(),
            walkers: Vec::new(),
            feeds: Vec::new(),
            ticked_ns: 0,
            latest_ns: 0,
            troubled: false,
        }
    }

    #[cfg(test)]
    pub fn may_wait(&mut self, bytes: usize) {
        self.stock.may_wait = bytes;
    }

    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.groups.is_empty() && self.walkers.is_empty()
    }

    pub fn run(mut self) {
        let seat = cpu::take();
        seat.sit();
        let mut busy = false;
        loop {
            let asked_at = clock::realtime_ns();
            self.mind_clock(asked_at);
            loop {
                match self.inbox.try_recv() {
                    Ok(Command::Stop(message)) => return self.stop(&message),
                    Ok(command) => self.obey(command),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.stop("the interface was closed"),
                }
            }
            let drained = self.turn(asked_at);
            match self.queue.rest() {
                Some(rest) if drained && busy => std::thread::sleep(rest),
                _ if drained => self.wait(),
                _ => {}
            }
            busy = !drained;
        }
    }

    /// When the clock was set back, captures end with what they have: what they still wait for would come in an hour,
    /// or never, by a clock that nobody has asked them to follow.
    pub fn mind_clock(&mut self, now: u64) {
        let back_ns = self.latest_ns.saturating_sub(now);
        if back_ns <= SET_BACK_NS {
            self.latest_ns = self.latest_ns.max(now);
            return;
        }
        let seconds = back_ns / 1_000_000_000;
        self.end_captures(
            &format!("the node's clock was set back by {seconds} s; ask for another capture"),
            self.latest_ns,
        );
        self.queue.begin_anew();
        self.live = self.queue.end();
        self.samples = Samples::new(now, self.samples.now());
        self.totals.last_packet_ns.store(0, Ordering::Relaxed);
        (self.latest_ns, self.ticked_ns) = (now, 0);
    }

    /// Receives once and serves everybody; true when nothing had arrived.
    pub fn turn(&mut self, asked_at: u64) -> bool {
        let arrived = self.receive();
        self.advance();
        self.catch_up((2 * arrived.frames).max(SLICE));
        self.take_back();
        let drained = arrived.frames == 0;
        self.pass_time(asked_at, drained);
        drained && !self.walkers.iter().any(|w| w.is_eager(self.live))
    }

    fn receive(&mut self) -> Arrived {
        match self.queue.receive() {
            Ok(arrived) if arrived.frames > 0 => {
                let totals = &self.totals;
                totals.packets.fetch_add(arrived.frames, Ordering::Relaxed);
                totals.bytes.fetch_add(arrived.bytes, Ordering::Relaxed);
                if self.troubled {
                    self.report(None);
                    self.troubled = false;
                }
                arrived
            }
            Ok(none) => none,
            Err(e) => {
                self.report(Some(e.to_string()));
                self.troubled = true;
                std::thread::sleep(Duration::from_millis(50));
                Arrived::default()
            }
        }
    }

    /// Shows what has arrived to all who are live.
    fn advance(&mut self) {
        if self.groups.is_empty() && self.feeds.is_empty() {
            self.live = self.queue.end();
            return;
        }
        let (groups, feeds, stock) = (&mut self.groups, &mut self.feeds, &mut self.stock);
        let (from, mut index) = (self.live.number, 0);
        let visited = self.queue.visit(&mut self.live, u64::MAX, &mut |frame| {
            let length = frame.len();
            for group in groups.iter_mut() {
                group.offer(frame, (index, length), stock);
            }
            for feed in feeds.iter_mut() {
                feed.offer(frame, length, stock);
            }
            index += 1;
        });
        if visited.overtaken > 0 {
            self.groups
                .iter_mut()
                .for_each(|g| g.overtaken(visited.overtaken));
            self.feeds.iter_mut().for_each(|f| f.overtaken(visited.overtaken));
        }
        self.let_fall_back(from + visited.overtaken);
    }

    /// Captures whose writers are behind go on from where they stopped, as those do that began in the past.
    fn let_fall_back(&mut self, first: u64) {
        let mut left = false;
        for group in &mut self.groups {
            while let Some((sink, index)) = group.take_blocked() {
                let walker = Walker::fallen_back(group.filter.clone(), sink, first + index);
                self.walkers.push(walker);
                left = true;
            }
        }
        if left {
            self.groups.retain(|g| !g.sinks.is_empty());
        }
    }

    /// Brings captures that began in the past nearer to the end; those that have come there become live.
    fn catch_up(&mut self, limit: u64) {
        for walker in &mut self.walkers {
            walker.walk(&mut self.queue, limit, &mut self.stock);
        }
        let end = self.live;
        let arrived = |w: &mut Walker| w.has_entered() && w.is_at(end);
        for mut walker in self.walkers.extract_if(.., arrived) {
            let filter = &walker.alone.filter;
            let known = self.groups.iter().position(|g| g.filter == *filter);
            let place = known.unwrap_or_else(|| {
                self.groups.push(Group::new(filter.clone()));
                self.groups.len() - 1
            });
            let group = &mut self.groups[place];
            walker.alone.part().for_each(|sink| group.join(sink));
        }
    }

    /// Gives what writers and senders are done with back to the ring.
    fn take_back(&mut self) {
        while let Ok(returned) = self.returns.try_recv() {
            match &returned {
                Returned::Blocks(blocks) => {
                    if let Some(sink) = self.sinks().find(|s| s.window.id == blocks.owner) {
                        sink.returned(blocks);
                    }
                }
                Returned::Batch(id, batch) => {
                    if let Some(feed) = self.feeds.iter_mut().find(|f| f.id == *id) {
                        feed.returned(batch);
                    }
                }
            }
            let queue = &mut self.queue;
            self.stock.put(returned, |held| queue.take_back(held));
        }
    }

    fn sinks(&mut self) -> impl Iterator<Item = &mut Sink> {
        let walking = self.walkers.iter_mut().map(|w| &mut w.alone);
        self.groups.iter_mut().chain(walking).flat_map(|g| &mut g.sinks)
    }

    /// Ends what is over and hands on what has waited long enough.
    fn pass_time(&mut self, asked_at: u64, drained: bool) {
        let unseen = if drained { self.queue.lag_ns() } else { OVERDUE_NS };
        let seen_until = asked_at.saturating_sub(unseen);
        for group in &mut self.groups {
            group.close_until(seen_until);
        }
        for walker in &mut self.walkers {
            // One that is still under way has not seen its window to the end, however late it is.
            let seen_until = if walker.is_at(self.live) { seen_until } else { 0 };
            walker.alone.close_until(seen_until);
        }
        let tick = asked_at.abs_diff(self.ticked_ns) >= TICK_NS;
        if drained || tick {
            self.feeds.iter_mut().for_each(|f| f.flush(&mut self.stock));
            self.note_newest();
        }
        if tick {
            self.ticked_ns = asked_at;
            self.tick(asked_at);
        }
        self.finish_closed(asked_at);
    }

    fn tick(&mut self, now: u64) {
        let stock = &mut self.stock;
        let walking = self.walkers.iter_mut().map(|w| &mut w.alone);
        let sinks = self.groups.iter_mut().chain(walking).flat_map(|g| &mut g.sinks);
        sinks.for_each(|sink| sink.flush(stock));
        self.sample(now);
        if self.feeds.iter().any(|f| f.feed.is_over()) {
            self.feeds.retain(|f| !f.feed.is_over());
            self.share();
        }
    }

    fn note_newest(&mut self) {
        if let Some(newest) = self.queue.newest_ns() {
            self.totals.last_packet_ns.store(newest, Ordering::Relaxed);
        }
    }

    /// Reads the counters and publishes them.
    fn sample(&mut self, now: u64) {
        let losses = self.queue.losses();
        let history = self.queue.history();
        let mut report = self.totals.report();
        report.at_ns = now;
        report.history = history;
        match losses {
            Ok(losses) => {
                self.samples.add(now, losses);
                report.losses = losses;
            }
            Err(e) => {
                self.troubled = true;
                report.problem = Some(format!("the loss counters cannot be read: {e}"));
            }
        }
    }

    fn report(&self, problem: Option<String>) {
        self.totals.report().problem = problem;
    }

    fn finish_closed(&mut self, now: u64) {
        if !self.sinks().any(|s| s.is_closed()) {
            return;
        }
        self.sample(now);
        let clock_source = self.queue.clock_source();
        let (samples, stock) = (&self.samples, &mut self.stock);
        let walking = self.walkers.iter_mut().map(|w| &mut w.alone);
        for group in self.groups.iter_mut().chain(walking) {
            for sink in group.sinks.extract_if(.., |s| s.is_closed()) {
                let start_ns = sink.window.start_ns().unwrap_or(u64::MAX);
                let losses = samples.between(start_ns, sink.window.ending().at_ns);
                sink.finish(losses, clock_source, stock);
            }
        }
        self.groups.retain(|g| !g.sinks.is_empty());
        self.walkers.retain(|w| !w.alone.sinks.is_empty());
        self.share();
    }

    fn share(&mut self) {
        let readers = self.sinks().count() + self.feeds.len();
        self.stock.share_among(readers);
    }

    pub fn obey(&mut self, command: Command) {
        match command {
            Command::Capture(start, reply) => {
                let sink = Sink::new(start.window, start.out, &mut self.stock);
                let at = self.queue.seek(start.from_ns);
                self.walkers.push(Walker::new(start.filter, sink, at));
                self.share();
                let _ = reply.send(self.queue.history().complete_from_ns);
            }
            Command::Feed(id, feed, out) => {
                self.feeds.push(FeedSink::new(id, feed, out, &mut self.stock));
                self.share();
            }
            Command::Look | Command::Stop(_) => self.ticked_ns = 0,
        }
    }

    fn stop(mut self, message: &str) {
        self.end_captures(message, clock::realtime_ns());
        self.feeds.iter_mut().for_each(|f| f.flush(&mut self.stock));
    }

    /// What has arrived by now belongs to the captures that are open; then they end.
    fn end_captures(&mut self, message: &str, now: u64) {
        self.receive();
        self.advance();
        self.catch_up(u64::MAX);
        let end = self.live;
        self.walkers.iter_mut().for_each(|w| w.give_up(end));
        for sink in self.sinks() {
            sink.window
                .end_now(StopReason::Error, now, Some(message.to_owned()));
        }
        self.groups.iter_mut().for_each(|g| g.close_until(now));
        let walking = self.walkers.iter_mut();
        walking.for_each(|w| w.alone.close_until(now));
        self.finish_closed(now);
    }

    fn wait(&mut self) {
        let idle = self.groups.is_empty() && self.walkers.is_empty() && self.feeds.is_empty();
        let timeout = match idle {
            true => IDLE,
            false if self.walkers.iter().any(Walker::waits) => WAITING,
            false => ACTIVE,
        };
        let ring = self.queue.poll_fd();
        let mut fds = [
            PollFd::from_borrowed_fd(ring, PollFlags::IN),
            PollFd::new(&self.wake, PollFlags::IN),
        ];
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: timeout.as_nanos() as i64,
        };
        let _ = poll(&mut fds, Some(&timeout));
        if fds[1].revents().contains(PollFlags::IN) {
            let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
        }
        if fds[0].revents().contains(PollFlags::ERR) {
            self.look_at_error();
        }
    }

    fn look_at_error(&mut self) {
        // A link that is down is the link's problem and passes with it.
        if let Ok(Err(e)) = rustix::net::sockopt::socket_error(self.queue.poll_fd())
            && e != rustix::io::Errno::NETDOWN
        {
            self.report(Some(format!("the socket reports: {e}")));
            self.troubled = true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
