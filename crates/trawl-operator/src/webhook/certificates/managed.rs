//! The certificate that the operator makes and rotates itself.

use std::time::Duration;

use axum_server::tls_rustls::RustlsConfig;
use jiff::Timestamp;
use kube::Client;
use trawl_kube::health::Readiness;

use super::READY_CERTIFICATE;
use super::cluster::{Cluster, bundles};
use super::pair::{Pair, PairError};
use super::plan::{self, Limits, Step};
use crate::error::Error;

/// Where the certificate is kept, whom it is for, and how long things take.
pub struct Settings {
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// Name of both webhook configurations.
    pub configuration: String,
    /// DNS names and addresses of the server.
    pub names: Vec<String>,
    pub limits: Limits,
    /// How often the facts are gathered when nothing is to be done.
    pub look_every: Duration,
    pub now: fn() -> Timestamp,
}

/// Looks after the certificate.
pub struct Managed {
    cluster: Cluster,
    settings: Settings,
    readiness: Readiness,
    served: Option<Pair>,
}

/// Why a look came to nothing; the next one tries again.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Cluster(#[from] Error),
    #[error(transparent)]
    Pair(#[from] PairError),
}

/// What readiness says after a look that came to nothing for `error`, or came to something.
fn state(error: Option<&LookError>, served: Option<&Pair>, now: Timestamp) -> Result<(), String> {
    match (error, served) {
        (Some(error), None) => Err(error.to_string()),
        // Without its configuration nobody asks the webhooks; without the Secret the next start finds no certificate.
        (Some(error @ LookError::Cluster(Error::NotInstalled { .. })), _) => Err(error.to_string()),
        (None, None) => Err("not trusted by the API server yet".into()),
        // What is served goes on being trusted; a failed look is told by the log.
        (_, Some(pair)) if pair.not_after <= now => Err("has ended".into()),
        (_, Some(_)) => Ok(()),
    }
}

impl Managed {
    pub fn new(client: &Client, settings: Settings, readiness: Readiness) -> Self {
        let (namespace, secret) = (&settings.namespace, &settings.secret);
        Self {
            cluster: Cluster::new(client, namespace, secret, &settings.configuration),
            settings,
            readiness,
            served: None,
        }
    }

    /// Waits until there is a certificate that every webhook trusts.
    pub async fn first(&mut self) -> RustlsConfig {
        loop {
            let wait = self.look().await;
            if let Some(Ok(config)) = self.served.as_ref().map(Pair::rustls) {
                return config;
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Rotates for as long as the future is polled.
    pub async fn keep(mut self, serving: RustlsConfig) {
        loop {
            let before = self.served.clone();
            let wait = self.look().await;
            if self.served != before
                && let Some(Ok(config)) = self.served.as_ref().map(Pair::serving)
            {
                serving.reload_from_config(config);
                tracing::info!(certificate = ?self.served, "the webhooks serve a new certificate");
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes one step, and says when to look again.
    async fn look(&mut self) -> Duration {
        let outcome = self.step().await;
        let wait = match &outcome {
            Ok(Step::Wait) => self.settings.look_every,
            Ok(step) => {
                tracing::info!(?step, "the webhooks' certificate");
                Duration::ZERO
            }
            Err(LookError::Cluster(Error::Api { source, .. })) if trawl_kube::apply::is_conflict(source) => {
                Duration::from_millis(200)
            }
            Err(error) => {
                tracing::warn!(%error, "the webhooks' certificate cannot be looked after now");
                self.settings.look_every
            }
        };
        let state = state(
            outcome.as_ref().err(),
            self.served.as_ref(),
            (self.settings.now)(),
        );
        self.readiness.set(READY_CERTIFICATE, state);
        wait
    }

    async fn step(&mut self) -> Result<Step, LookError> {
        let now = (self.settings.now)();
        // In this order, so that a bundle made of a Secret that is old by now meets a configuration that has changed since.
        let configured = self.cluster.configured().await?;
        let mut read = self.cluster.read().await?;
        read.kept = read.kept.only_for(&self.settings.names);
        let trusted = bundles(&configured);
        if let Some(pair) = plan::servable(&read.kept, &trusted)
            && self.served.as_ref() != Some(pair)
        {
            self.served = Some(pair.clone());
        }
        let step = plan::next(&read.kept, &trusted, now, self.settings.limits);
        match step {
            Step::Wait => {}
            Step::Trust => self.cluster.trust(&configured, &read.kept.bundle(now)).await?,
            _ => {
                let (names, life) = (&self.settings.names, self.settings.limits.life);
                let kept = plan::carried_out(&read.kept, step, now, || Pair::make(names, now, life))?;
                self.cluster.write(read, &kept).await?;
            }
        }
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_names_what_was_deleted_also_while_a_certificate_is_served() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let pair = Pair::make(&["a.b.svc".into()], now, Duration::from_secs(3600)).unwrap();
        let what = "ValidatingWebhookConfiguration trawl-cloud".to_owned();
        let missing = LookError::Cluster(Error::NotInstalled { what });
        let said = state(Some(&missing), Some(&pair), now).unwrap_err();
        assert!(
            said.contains("ValidatingWebhookConfiguration trawl-cloud is missing"),
            "{said}"
        );
        let passing = LookError::Pair(PairError::Parse("x".into()));
        assert_eq!(state(Some(&passing), Some(&pair), now), Ok(()));
        assert!(state(None, Some(&pair), pair.not_after).is_err());
    }
}
