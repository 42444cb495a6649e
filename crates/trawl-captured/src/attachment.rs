//! One open interface of one tap: its rings, its link, its NIC, and whether it stands still.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use trawl_control::limits::refusal;
use trawl_control::{AttachmentStatus, ErrorCode, ErrorReply, NicVerdict, QueueStatus, Source, TapIdentity};
use trawl_dataplane::nic::{self, Purpose, Repairs};
use trawl_dataplane::ring::RingOptions;
use trawl_dataplane::ring::device;
use trawl_dataplane::{Engine, InterfaceName, clock};

use crate::open;
use crate::stall::{Count, Finding, Stall, interface_packets};

/// One open interface of one tap.
pub(crate) struct Attachment {
    pub tap: TapIdentity,
    pub source: Source,
    pub name: InterfaceName,
    pub engine: Engine,
    /// What it was opened with.
    pub ring: RingOptions,
    /// Survives a reopening: what the holders hold. Becomes true when the attachment is over.
    pub lease: Arc<watch::Sender<bool>>,
    index: u32,
    opened_at_ns: u64,
    /// How often rings stood still and were opened again, before this opening.
    rebinds: u32,
    link: Mutex<LinkState>,
    stalls: Mutex<Vec<Stall>>,
    nic: Mutex<Vec<NicVerdict>>,
    repairs: Mutex<Option<Repairs>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LinkState {
    up: bool,
    problem: Option<String>,
    gone: bool,
    /// Why the rings must be opened again although the interface is there.
    broken: Option<String>,
}

/// What an attachment hands on to the one that replaces it.
#[derive(Default)]
pub(crate) struct Inheritance {
    pub lease: Arc<watch::Sender<bool>>,
    rebinds: u32,
    stalls: Vec<Stall>,
}

/// What a look at an attachment asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    /// Open the interface again; captures under way end with this sentence.
    Reopen(String),
}

impl Attachment {
    /// Opens an interface. Blocks, for seconds when a queue is busy.
    pub fn open(
        tap: TapIdentity,
        source: Source,
        ring: RingOptions,
        inherited: Inheritance,
    ) -> Result<Self, ErrorReply> {
        let name = open::name_of(&source)?;
        let opened = open::interface(&source, &name, &ring)?;
        let link = device::link(&name).ok().flatten();
        let attachment = Self {
            tap,
            source,
            name,
            engine: opened.engine,
            ring,
            lease: inherited.lease,
            index: link.map_or(0, |l| l.index),
            opened_at_ns: clock::realtime_ns(),
            rebinds: inherited.rebinds,
            link: Mutex::new(LinkState {
                up: link.is_some_and(|l| l.up),
                ..LinkState::default()
            }),
            stalls: Mutex::new(inherited.stalls),
            nic: Mutex::new(opened.nic),
            repairs: Mutex::new(opened.repairs),
        };
        attachment.look_at_link();
        tracing::info!(
            tap = %attachment.tap.name, interface = %attachment.name, mode = attachment.engine.mode().as_str(),
            refusals = ?attachment.engine.mode_refusals(), "attached"
        );
        Ok(attachment)
    }

    /// Off the async workers.
    pub async fn open_beside(
        tap: TapIdentity,
        source: Source,
        ring: RingOptions,
        inherited: Inheritance,
    ) -> Result<Self, ErrorReply> {
        let opened = tokio::task::spawn_blocking(move || Self::open(tap, source, ring, inherited)).await;
        opened.unwrap_or_else(|_| {
            Err(refusal(
                ErrorCode::Internal,
                "source",
                "opening the interface failed unexpectedly",
            ))
        })
    }

    /// Ends captures and feeds, lets go of the rings, and sets the NIC back. Blocks.
    pub fn shut(&self, why: &str) {
        self.engine.stop(why);
        let repairs = lock(&self.repairs).take();
        if let Some(repairs) = repairs {
            for problem in repairs.undo() {
                tracing::warn!(interface = %self.name, problem, "the NIC could not be set back");
            }
        }
        tracing::info!(tap = %self.tap.name, interface = %self.name, why, "closed");
    }

    /// For the attachment that replaces this one.
    pub fn inheritance(&self) -> Inheritance {
        let link = lock(&self.link);
        let rebound = link.broken.is_some();
        let stalls = lock(&self.stalls).iter().map(Stall::after_rebind).collect();
        Inheritance {
            lease: Arc::clone(&self.lease),
            rebinds: self.rebinds + u32::from(rebound),
            stalls: if rebound { stalls } else { Vec::new() },
        }
    }

    pub fn status(&self) -> AttachmentStatus {
        let link = lock(&self.link).clone();
        let counters = self.engine.counters();
        let rebound = |queue: QueueStatus| QueueStatus {
            rebinds: queue.rebinds + self.rebinds,
            ..queue
        };
        AttachmentStatus {
            tap: self.tap.clone(),
            source: self.source.clone(),
            ifindex: self.index,
            mode: self.engine.mode(),
            mode_proved: counters.packets > 0,
            mode_refusals: self.engine.mode_refusals().to_vec(),
            link_up: link.up,
            attached_at_ns: self.opened_at_ns,
            last_packet_ns: self.engine.last_packet_ns(),
            counters,
            active_captures: self.engine.active_captures(),
            problem: link.problem.or_else(|| self.engine.problem()),
            queues: self.engine.queues().into_iter().map(rebound).collect(),
            history: self.engine.history(),
            nic: lock(&self.nic).clone(),
            feeds: self.engine.feeds(),
        }
    }

    /// Why no capture can run here now.
    pub fn unusable(&self) -> Option<String> {
        let link = lock(&self.link);
        if link.gone { link.problem.clone() } else { None }
    }

    pub fn is_dead(&self) -> bool {
        self.unusable().is_some() || self.engine.has_ended()
    }

    /// Looks at the NIC again. Blocks.
    pub fn look_at_nic(&self) {
        let repairs = lock(&self.repairs);
        let found = match (&self.source, repairs.as_ref()) {
            (Source::MirrorInterface(_), Some(repairs)) => repairs.check(),
            (Source::MirrorInterface(_), None) => nic::check(&self.name, Purpose::Mirror),
            (Source::NodeInterface(_), _) => nic::check(&self.name, Purpose::Node),
        };
        *lock(&self.nic) = found;
    }

    /// Looks whether the interface is there, and whether what arrives at it arrives here. Once a second.
    pub fn look(&self) -> Need {
        let replaced = self.look_at_link();
        if let Some(problem) = self.unusable() {
            return if replaced {
                Need::Reopen(problem)
            } else {
                Need::Nothing
            };
        }
        self.look_at_rings();
        let broken = lock(&self.link).broken.clone();
        broken.map_or(Need::Nothing, Need::Reopen)
    }

    /// Each count that was made before a ring, beside what came out of it.
    fn counts(&self) -> Vec<Option<Count>> {
        let moved = |c: &trawl_control::Counters| c.packets + c.dropped_ring.unwrap_or_default();
        let all = interface_packets(&self.name).map(|before| Count {
            before,
            ring: moved(&self.engine.counters()),
        });
        let each = self.engine.queues().into_iter().map(|queue| {
            queue.offered.map(|before| Count {
                before,
                ring: moved(&queue.counters),
            })
        });
        std::iter::once(all).chain(each).collect()
    }

    fn look_at_rings(&self) {
        let name = &self.name;
        if self.engine.has_ended() {
            lock(&self.link).broken = Some(format!(
                "receiving on {name} ended unexpectedly; it is opened again"
            ));
            return;
        }
        let counts = self.counts();
        let mut stalls = lock(&self.stalls);
        stalls.resize_with(counts.len(), Stall::default);
        let looks = counts.iter().zip(stalls.iter_mut());
        let findings: Vec<_> = looks
            .filter_map(|(count, stall)| count.map(|count| stall.look(count)))
            .collect();
        drop(stalls);
        let sentence =
            format!("frames arrive at {name} and none of them reaches captured; its rings are opened again");
        let mut link = lock(&self.link);
        if findings.contains(&Finding::Stalled) {
            tracing::warn!(interface = %name, "a ring stands still while frames arrive");
            link.problem = Some(sentence.clone());
            link.broken = Some(sentence);
        } else if findings.contains(&Finding::Suspect) && link.problem.is_none() {
            link.problem = Some(sentence);
        }
    }

    /// Notes the state of the link. True when another interface has the name now.
    fn look_at_link(&self) -> bool {
        let name = &self.name;
        // What comes back from another network namespace may keep its number, but the ring on it is dead.
        let (was_gone, broken) = {
            let link = lock(&self.link);
            (link.gone, link.broken.clone())
        };
        let seen = match device::link(name) {
            Ok(seen) => seen,
            Err(e) => {
                tracing::warn!(interface = %name, error = %e, "cannot look at the link");
                return false;
            }
        };
        let replaced = seen.is_some_and(|link| was_gone || link.index != self.index);
        let (gone, problem) = match seen {
            _ if replaced => (
                true,
                Some(format!(
                    "interface {name} was re-created or came back; it is opened again shortly"
                )),
            ),
            None => (
                true,
                Some(format!(
                    "interface {name} is gone; it was deleted, renamed or moved away"
                )),
            ),
            Some(link) if link.up => (false, broken.clone()),
            Some(_) => (
                false,
                Some(format!(
                    "link of {name} is down; set it up with `ip link set {name} up` and check the cable"
                )),
            ),
        };
        let state = LinkState {
            up: seen.is_some_and(|link| link.up),
            problem,
            gone,
            broken,
        };
        let mut link = lock(&self.link);
        if (link.up, link.gone) != (state.up, state.gone) {
            tracing::info!(interface = %name, up = state.up, problem = state.problem, "link changed");
        }
        if state.gone && !link.gone {
            self.engine
                .end_captures(state.problem.as_deref().unwrap_or_default());
        }
        *link = state;
        replaced
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
