//! Which taps hold which interfaces open, and for how long.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trawl_control::limits::{self, refusal};
use trawl_control::{ATTACH_LINGER_SECS, Attach, DaemonStatus, ErrorCode, ErrorReply, Source, TapIdentity};
use trawl_dataplane::clock;
use trawl_dataplane::ring::RingOptions;

use crate::attachment::{Attachment, Inheritance, Need};
use crate::open;

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
    /// What an attachment gets that asks for nothing else.
    ring: RingOptions,
}

impl Registry {
    pub fn new(ring: RingOptions) -> Self {
        Self {
            ring,
            entries: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            started_at_ns: clock::realtime_ns(),
        }
    }

    /// Opens an interface for a tap, or joins what is open for it already.
    pub async fn attach(&self, request: Attach) -> Result<Arc<Attachment>, ErrorReply> {
        limits::check_attach(&request)?;
        open::name_of(&request.source)?;
        let _opening = self.opening.lock().await;
        if let Some(attachment) = self.join(&request) {
            return Ok(attachment);
        }
        let stale = self.make_way(&request)?;
        close(stale).await;
        let mut ring = self.ring;
        ring.history_bytes = request.history_bytes.unwrap_or(ring.history_bytes);
        let opened =
            Attachment::open_beside(request.tap, request.source, ring, Inheritance::default()).await?;
        let attachment = Arc::new(opened);
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

    /// The attachment of a tap, when frames can come from it.
    ///
    /// # Errors
    /// The refusal that says what to do.
    pub fn usable(&self, tap: &TapIdentity) -> Result<Arc<Attachment>, ErrorReply> {
        let none = "no interface is attached for this tap; attach it first";
        let unavailable = |message: &str| refusal(ErrorCode::InterfaceUnavailable, "tap", message);
        let attachment = self.find(tap).ok_or_else(|| unavailable(none))?;
        match attachment.unusable() {
            Some(problem) => Err(unavailable(&problem)),
            None => Ok(attachment),
        }
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
        for attachment in self.all() {
            if let Need::Reopen(why) = attachment.look() {
                self.reopen(&attachment, why).await;
            }
        }
    }

    /// Looks at every NIC. Holds nothing meanwhile: a driver may take its time.
    pub async fn look_at_nics(&self) {
        let all = self.all();
        let _ = tokio::task::spawn_blocking(move || all.iter().for_each(|a| a.look_at_nic())).await;
    }

    fn all(&self) -> Vec<Arc<Attachment>> {
        self.lock().values().map(|e| Arc::clone(&e.attachment)).collect()
    }

    /// Ends every capture; the interfaces stay open.
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
    async fn reopen(&self, old: &Arc<Attachment>, why: String) {
        // An interface that came back as itself still carries the old program, which would keep the new one out.
        let inherited = old.inheritance();
        shut(vec![Arc::clone(old)], why).await;
        let opened = Attachment::open_beside(old.tap.clone(), old.source.clone(), old.ring, inherited).await;
        match opened {
            Ok(fresh) => {
                if let Some(entry) = self.lock().get_mut(&old.tap) {
                    entry.attachment = Arc::new(fresh);
                }
            }
            Err(refusal) => {
                tracing::warn!(interface = %old.name, error = %refusal.message, "the interface cannot be opened again");
            }
        }
    }
}

/// Lets go of the rings and says goodbye to the holders.
async fn close(attachments: Vec<Arc<Attachment>>) {
    let leases: Vec<_> = attachments.iter().map(|a| Arc::clone(&a.lease)).collect();
    shut(attachments, "the interface was detached".into()).await;
    for lease in leases {
        lease.send_replace(true);
    }
}

/// Off the async workers, since threads are waited for.
async fn shut(attachments: Vec<Arc<Attachment>>, why: String) {
    if attachments.is_empty() {
        return;
    }
    let _ = tokio::task::spawn_blocking(move || {
        for attachment in attachments {
            attachment.shut(&why);
        }
    })
    .await;
}
