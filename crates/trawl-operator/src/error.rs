//! What can go wrong while a decision is carried out.

use std::time::Duration;

use kube::runtime::controller::Action;

/// A failed step. The next look at the object tries again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{step}: {}", words(.source))]
    Api {
        step: &'static str,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("{what} is missing: apply the manifests of this version again")]
    NotInstalled { what: String },
    #[error("{kind} {name} exists but belongs to something else; delete it")]
    Foreign { kind: String, name: String },
    #[error("{step}: {source}")]
    Store {
        step: &'static str,
        #[source]
        source: trawl_store::StoreError,
    },
    #[error("cannot encode {what}: {source}")]
    Encode {
        what: &'static str,
        #[source]
        source: serde_json::Error,
    },
}

/// Names the step that a Kubernetes request belonged to.
pub(crate) trait Step<T> {
    fn step(self, step: &'static str) -> Result<T, Error>;
}

impl<T> Step<T> for kube::Result<T> {
    fn step(self, step: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::Api {
            step,
            source: Box::new(source),
        })
    }
}

impl<T> Step<T> for Result<T, trawl_store::StoreError> {
    fn step(self, step: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::Store { step, source })
    }
}

impl Error {
    /// When to try again: at once after losing a race, soon after a Kubernetes error, later for the store.
    pub(crate) fn retry(&self) -> Action {
        Action::requeue(match self {
            Self::Api { source, .. } if trawl_kube::apply::is_conflict(source) => Duration::from_millis(200),
            Self::Api { .. } | Self::Encode { .. } => Duration::from_secs(3),
            Self::Store { .. } | Self::Foreign { .. } | Self::NotInstalled { .. } => Duration::from_secs(15),
        })
    }
}

/// What the API server says, without the whole answer around it.
fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} ({})", status.message, status.code),
        other => other.to_string(),
    }
}
