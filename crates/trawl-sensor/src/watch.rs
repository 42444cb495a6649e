//! The loop: hold the attachment, look every second, report when something changed or 30 s have passed.

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout};
use trawl_config::pods::SensorSpec;
use trawl_control::client::{Attachment, Client, ClientError};
use trawl_control::{AttachmentStatus, DaemonStatus};
use trawl_kube::health::Readiness;

use crate::health::{Health, attach_request, identity};
use crate::report::Reporter;
use crate::tally::{Segment, Tally};

/// Readiness part of the sensor.
pub const READY: &str = "interface";
/// Pause between two looks at captured.
const LOOK: Duration = Duration::from_secs(1);
/// Longest time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// How long one request to the API server may take.
const API_TIMEOUT: Duration = Duration::from_secs(10);
/// Looks in a row that may show a problem before the interface is closed and opened again.
const PATIENCE: u32 = 3;

/// What the sensor holds and knows.
pub struct Watch {
    spec: SensorSpec,
    captured: Client,
    reporter: Reporter,
    readiness: Readiness,
    tally: Tally,
    health: Health,
    attachment: Option<Attachment>,
    last_packet: Option<Timestamp>,
    /// Whether a capture was under way at the last look.
    capturing: bool,
    sick_looks: u32,
    /// What was last written, so that nothing is written twice.
    noted: Option<Health>,
    reported: Option<(Instant, Health, bool)>,
}

impl Watch {
    /// Ready to start; the tally goes on from what the status shows.
    pub fn new(
        spec: SensorSpec,
        captured: Client,
        reporter: Reporter,
        readiness: Readiness,
        tally: Tally,
    ) -> Self {
        Self {
            spec,
            captured,
            reporter,
            readiness,
            tally,
            health: Health::Starting,
            attachment: None,
            last_packet: None,
            capturing: false,
            sick_looks: 0,
            noted: None,
            reported: None,
        }
    }

    /// Watches until `stop` resolves; then reports once more and detaches, unless a capture is under way.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        loop {
            self.look().await;
            self.readiness.set(READY, self.health.readiness());
            self.write().await;
            tokio::select! {
                () = &mut stop => break,
                () = self.pause() => {}
            }
        }
        self.reported = None;
        if self.attachment.is_some() {
            self.look().await;
            self.write().await;
        }
        drop(self.attachment.take());
        if self.capturing {
            // Detaching would end it. captured keeps the interface for a while, and the tap's next sensor takes it over.
            return;
        }
        if let Err(error) = self.captured.detach(identity(&self.spec)).await {
            tracing::warn!(%error, "could not detach; captured lets go by itself");
        }
    }

    /// Until the next look, or until captured hangs up.
    async fn pause(&mut self) {
        let Some(attachment) = &mut self.attachment else {
            return sleep(LOOK).await;
        };
        if let Ok(error) = timeout(LOOK, attachment.closed()).await {
            tracing::warn!(%error, "captured ended the attachment; attaching again");
            self.attachment = None;
            // A daemon that was stopped needs a moment to come back.
            sleep(Duration::from_millis(200)).await;
        }
    }

    async fn look(&mut self) {
        let seen = match self.attachment.is_some() {
            true => self.poll().await,
            false => self.attach().await,
        };
        let health = match seen {
            Ok(health) => health,
            Err(error) => {
                self.attachment = None;
                Health::of_error(&error)
            }
        };
        if health != self.health {
            tracing::info!(?health, "the interface stands differently now");
            self.health = health;
        }
    }

    async fn attach(&mut self) -> Result<Health, ClientError> {
        let attachment = self.captured.attach(attach_request(&self.spec)).await?;
        let daemon = self.captured.status().await?;
        self.attachment = Some(attachment);
        Ok(self.take(&daemon))
    }

    async fn poll(&mut self) -> Result<Health, ClientError> {
        let daemon = self.captured.status().await?;
        let health = self.take(&daemon);
        self.sick_looks = if matches!(health, Health::Failed(_)) {
            self.sick_looks + 1
        } else {
            0
        };
        if self.sick_looks >= PATIENCE && !self.capturing {
            self.sick_looks = 0;
            self.attachment = None;
            self.captured.detach(identity(&self.spec)).await?;
        }
        Ok(health)
    }

    fn mine<'d>(&self, daemon: &'d DaemonStatus) -> Option<&'d AttachmentStatus> {
        daemon.attachments.iter().find(|a| a.tap.uid == self.spec.tap.uid)
    }

    fn take(&mut self, daemon: &DaemonStatus) -> Health {
        let Some(mine) = self.mine(daemon) else {
            self.capturing = false;
            return Health::lost();
        };
        let segment = Segment {
            daemon_started_ns: daemon.started_at_ns,
            attached_ns: mine.attached_at_ns,
        };
        self.capturing = mine.active_captures > 0;
        self.tally.observe(segment, &mine.counters);
        let seen = mine
            .last_packet_ns
            .and_then(|ns| Timestamp::from_nanosecond(i128::from(ns)).ok());
        self.last_packet = seen.max(self.last_packet);
        Health::of(mine)
    }

    /// Writes what is new. What fails is written at the next look.
    async fn write(&mut self) {
        if self.noted.as_ref() != Some(&self.health) && self.health != Health::Starting {
            let note = self.reporter.note(&self.health);
            match timeout(API_TIMEOUT, self.reporter.leave(&note)).await {
                Ok(Ok(())) => self.noted = Some(self.health.clone()),
                failed => tracing::warn!(?failed, "the note could not be written"),
            }
        }
        // A heartbeat says that frames can arrive; without an interface there is none, and silence shows.
        if !matches!(self.health, Health::Attached { .. }) {
            // When it is back, that is news.
            self.reported = None;
            return;
        }
        let totals = self.tally.totals();
        let seen_any = totals.packets > 0;
        let due = self.reported.as_ref().is_none_or(|(at, health, any)| {
            at.elapsed() >= HEARTBEAT || *health != self.health || *any != seen_any
        });
        if !due {
            return;
        }
        let target = self.reporter.target(totals, self.last_packet, Timestamp::now());
        match timeout(API_TIMEOUT, self.reporter.heartbeat(&target)).await {
            Ok(Ok(())) => self.reported = Some((Instant::now(), self.health.clone(), seen_any)),
            failed => tracing::warn!(?failed, "the heartbeat could not be written"),
        }
    }
}
