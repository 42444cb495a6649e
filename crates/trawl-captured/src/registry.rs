//! Which taps hold which interfaces open, and for how long.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use trawl_control::limits::refusal;
use trawl_control::{
    ATTACH_LINGER_SECS, Attach, AttachmentStatus, DaemonStatus, ErrorCode, ErrorReply, Source, TapIdentity,
};
use trawl_dataplane::ring::device;
use trawl_dataplane::{Engine, InterfaceName, clock};

use crate::open;

/// One open interface of one tap.
pub(crate) struct Attachment {
    pub tap: TapIdentity,
    pub source: Source,
    pub name: InterfaceName,
    pub engine: Engine,
    index: u32,
    opened_at_ns: u64,
    link: Mutex<LinkState>,
    /// Survives a reopening: what the holders hold. Becomes true when the attachment is over.
    pub lease: Arc<watch::Sender<bool>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LinkState {
    up: bool,
    problem: Option<String>,
    gone: bool,
}

struct Entry {
    attachment: Arc<Attachment>,
    holders: usize,
    /// When an attachment without holders ends.
    expires: Option<Instant>,
}

/// All attachments of the daemon.
pub(crate) struct Registry {
    entries: Mutex<HashMap<TapIdentity, Entry>>,
    /// Held while interfaces are opened or closed, so that two requests never race for one.
    opening: tokio::sync::Mutex<()>,
    started_at_ns: u64,
}

impl Registry {
    pub fn new() -> Self {
        Self {
            entries: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            started_at_ns: clock::realtime_ns(),
        }
    }

    /// Opens an interface for a tap, or joins what is open for it already.
    pub async fn attach(&self, request: Attach) -> Result<Arc<Attachment>, ErrorReply> {
        let name = open::name_of(&request.source)?;
        let _opening = self.opening.lock().await;
        if let Some(attachment) = self.join(&request) {
            return Ok(attachment);
        }
        let stale = self.make_way(&request)?;
        close(stale).await;
        let attachment = open_attachment(request.tap, request.source, name, Arc::default()).await?;
        self.insert(Arc::clone(&attachment), 1);
        Ok(attachment)
    }

    /// Ends a tap's attachment at once. Says whether there was one.
    pub async fn detach(&self, tap: &TapIdentity) -> bool {
        let _opening = self.opening.lock().await;
        let removed = self.lock().remove(tap);
        let found = removed.is_some();
        close(removed.into_iter().map(|e| e.attachment).collect()).await;
        found
    }

    /// One holder's connection ended.
    pub fn release(&self, attachment: &Arc<Attachment>) {
        if let Some(entry) = self.lock().get_mut(&attachment.tap)
            && Arc::ptr_eq(&entry.attachment.lease, &attachment.lease)
        {
            entry.holders = entry.holders.saturating_sub(1);
            if entry.holders == 0 {
                entry.expires = Some(Instant::now() + Duration::from_secs(ATTACH_LINGER_SECS));
            }
        }
    }

    pub fn find(&self, tap: &TapIdentity) -> Option<Arc<Attachment>> {
        self.lock().get(tap).map(|e| Arc::clone(&e.attachment))
    }

    pub fn status(&self) -> DaemonStatus {
        let mut attachments: Vec<_> = self.lock().values().map(|e| e.attachment.status()).collect();
        attachments.sort_by(|a, b| (&a.tap.namespace, &a.tap.name).cmp(&(&b.tap.namespace, &b.tap.name)));
        DaemonStatus {
            daemon_version: env!("CARGO_PKG_VERSION").into(),
            started_at_ns: self.started_at_ns,
            attachments,
        }
    }

    /// Looks at every link, ends what lingered long enough, and reopens interfaces that came back as new ones.
    pub async fn supervise(&self) {
        let _opening = self.opening.lock().await;
        let now = Instant::now();
        let expired: Vec<_> = self
            .lock()
            .extract_if(|_, e| e.expires.is_some_and(|t| t <= now))
            .collect();
        for (tap, _) in &expired {
            tracing::info!(tap = %tap.name, "nobody came back for the attachment, closing it");
        }
        close(expired.into_iter().map(|(_, e)| e.attachment).collect()).await;
        let all: Vec<_> = self.lock().values().map(|e| Arc::clone(&e.attachment)).collect();
        for attachment in all {
            if attachment.look_at_link() {
                self.reopen(&attachment).await;
            }
        }
    }

    /// Ends every capture and every attachment.
    pub async fn end_captures(&self, message: &str) {
        let _opening = self.opening.lock().await;
        for entry in self.lock().values() {
            entry.attachment.engine.end_captures(message);
        }
    }

    pub async fn close_all(&self) {
        let _opening = self.opening.lock().await;
        let all: Vec<_> = self.lock().drain().map(|(_, e)| e.attachment).collect();
        close(all).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TapIdentity, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, attachment: Arc<Attachment>, holders: usize) {
        let expires = (holders == 0).then(|| Instant::now() + Duration::from_secs(ATTACH_LINGER_SECS));
        self.lock().insert(
            attachment.tap.clone(),
            Entry {
                attachment,
                holders,
                expires,
            },
        );
    }

    fn join(&self, request: &Attach) -> Option<Arc<Attachment>> {
        let mut entries = self.lock();
        let entry = entries.get_mut(&request.tap)?;
        if entry.attachment.source != request.source || entry.attachment.is_dead() {
            return None;
        }
        entry.holders += 1;
        entry.expires = None;
        Some(Arc::clone(&entry.attachment))
    }

    /// Takes out what this tap itself or a tap without holders has open there; refuses when another holds it.
    fn make_way(&self, request: &Attach) -> Result<Vec<Arc<Attachment>>, ErrorReply> {
        let wanted = open::spec_of(&request.source);
        let mut entries = self.lock();
        let rivals = |e: &Entry| {
            let theirs = &e.attachment.source;
            let exclusive = [theirs, &request.source]
                .iter()
                .any(|s| matches!(s, Source::MirrorInterface(_)));
            e.attachment.tap != request.tap
                && exclusive
                && open::spec_of(theirs).interface == wanted.interface
        };
        if let Some(rival) = entries.values().find(|e| rivals(e) && e.holders > 0) {
            let message = format!(
                "interface {} is held by tap {}/{}; a mirror interface serves one tap: delete one of the two",
                wanted.interface, rival.attachment.tap.namespace, rival.attachment.tap.name
            );
            return Err(refusal(ErrorCode::InterfaceConflict, "source.interface", message));
        }
        let out = entries.extract_if(|tap, e| *tap == request.tap || rivals(e));
        Ok(out.map(|(_, e)| e.attachment).collect())
    }

    /// Opens the interface that has the name now. Holders keep what they hold; counters begin anew.
    async fn reopen(&self, old: &Arc<Attachment>) {
        // An interface that came back as itself still carries the old program, which would keep the new one out.
        stop_engines(vec![Arc::clone(old)]).await;
        let (tap, lease) = (old.tap.clone(), Arc::clone(&old.lease));
        match open_attachment(tap, old.source.clone(), old.name.clone(), lease).await {
            Ok(fresh) => {
                if let Some(entry) = self.lock().get_mut(&old.tap) {
                    entry.attachment = fresh;
                }
            }
            Err(refusal) => {
                tracing::warn!(interface = %old.name, error = %refusal.message, "the interface came back and cannot be opened");
            }
        }
    }
}

async fn open_attachment(
    tap: TapIdentity,
    source: Source,
    name: InterfaceName,
    lease: Arc<watch::Sender<bool>>,
) -> Result<Arc<Attachment>, ErrorReply> {
    let opened = tokio::task::spawn_blocking(move || {
        let engine = open::engine(&source, &name)?;
        let link = device::link(&name).ok().flatten();
        let state = LinkState {
            up: link.is_some_and(|l| l.up),
            problem: None,
            gone: false,
        };
        Ok(Arc::new(Attachment {
            tap,
            source,
            name,
            engine,
            index: link.map_or(0, |l| l.index),
            opened_at_ns: clock::realtime_ns(),
            link: Mutex::new(state),
            lease,
        }))
    });
    let attachment = opened.await.unwrap_or_else(|_| {
        Err(refusal(
            ErrorCode::Internal,
            "source",
            "opening the interface failed unexpectedly",
        ))
    })?;
    attachment.look_at_link();
    tracing::info!(
        tap = %attachment.tap.name, interface = %attachment.name, mode = attachment.engine.mode().as_str(),
        refusals = ?attachment.engine.mode_refusals(), "attached"
    );
    Ok(attachment)
}

/// Lets go of the rings and says goodbye to the holders.
async fn close(attachments: Vec<Arc<Attachment>>) {
    let leases: Vec<_> = attachments.iter().map(|a| Arc::clone(&a.lease)).collect();
    stop_engines(attachments).await;
    for lease in leases {
        lease.send_replace(true);
    }
}

/// Off the async workers, since threads are waited for.
async fn stop_engines(attachments: Vec<Arc<Attachment>>) {
    if attachments.is_empty() {
        return;
    }
    let _ = tokio::task::spawn_blocking(move || {
        for attachment in attachments {
            attachment.engine.stop("the interface was detached");
            tracing::info!(tap = %attachment.tap.name, interface = %attachment.name, "detached");
        }
    })
    .await;
}

impl Attachment {
    pub fn status(&self) -> AttachmentStatus {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let counters = self.engine.counters();
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
            queues: self.engine.queues(),
            history: self.engine.history(),
            nic: Vec::new(),
            feeds: self.engine.feeds(),
        }
    }

    /// Why no capture can run here now.
    pub fn unusable(&self) -> Option<String> {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if link.gone { link.problem.clone() } else { None }
    }

    fn is_dead(&self) -> bool {
        self.unusable().is_some() || self.engine.has_ended()
    }

    /// Notes the state of the link. True when the interface must be opened again.
    fn look_at_link(&self) -> bool {
        let name = &self.name;
        // What comes back from another network namespace may keep its number, but the ring on it is dead.
        let was_gone = self.link.lock().unwrap_or_else(PoisonError::into_inner).gone;
        let (state, replaced) = match device::link(name) {
            Ok(Some(link)) if was_gone || link.index != self.index => {
                let problem =
                    format!("interface {name} was re-created or came back; it is opened again shortly");
                (
                    LinkState {
                        up: link.up,
                        problem: Some(problem),
                        gone: true,
                    },
                    true,
                )
            }
            Ok(Some(link)) if link.up => (
                LinkState {
                    up: true,
                    problem: None,
                    gone: false,
                },
                false,
            ),
            Ok(Some(_)) => {
                let problem = format!(
                    "link of {name} is down; set it up with `ip link set {name} up` and check the cable"
                );
                (
                    LinkState {
                        up: false,
                        problem: Some(problem),
                        gone: false,
                    },
                    false,
                )
            }
            Ok(None) => {
                let problem = format!("interface {name} is gone; it was deleted, renamed or moved away");
                (
                    LinkState {
                        up: false,
                        problem: Some(problem),
                        gone: true,
                    },
                    false,
                )
            }
            Err(e) => {
                tracing::warn!(interface = %name, error = %e, "cannot look at the link");
                return false;
            }
        };
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if *link != state {
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
