//! What a store can answer, in the six ways that callers tell apart.

use std::error::Error;

use object_store::client::HttpError;

use crate::Key;

/// Why a store did not do what was asked. Messages hold no credential, no signature and no server text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("{key}: not found in the store")]
    NotFound { key: String },
    #[error("{key}: already exists in the store")]
    AlreadyExists { key: String },
    /// Nothing can be said about the object: ask again later.
    #[error("the store cannot be reached: {problem}")]
    Unreachable { problem: String },
    #[error("{what}: the store refuses this credential")]
    Denied { what: String },
    /// A deletion left these versions and delete markers of the object behind: their bytes are still stored.
    #[error("{key}: not deleted, {} of its versions remain ({}): {problem}", versions.len(), shown(versions))]
    Remains {
        key: String,
        versions: Vec<String>,
        problem: String,
    },
    /// Asking again will not help.
    #[error("{what}: {problem}")]
    Invalid { what: String, problem: String },
}

impl StoreError {
    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}

/// Translates an error of object_store. What cannot be told apart is `Unreachable`, which never costs evidence.
pub(crate) fn from(key: &Key, error: &object_store::Error) -> StoreError {
    use object_store::Error as E;
    let what = || key.as_str().to_owned();
    let text = chain(error);
    match error {
        E::NotFound { .. } if text.contains("NoSuchBucket") => no_such_bucket(),
        E::NotFound { .. } => StoreError::NotFound { key: what() },
        E::AlreadyExists { .. } | E::Precondition { .. } => StoreError::AlreadyExists { key: what() },
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => StoreError::Denied { what: what() },
        E::NotSupported { .. } | E::NotImplemented { .. } | E::InvalidPath { .. } => StoreError::Invalid {
            what: what(),
            problem: "the store does not offer this operation".into(),
        },
        // Listings arrive untranslated.
        _ if ["401", "403"]
            .iter()
            .any(|code| text.contains(&format!("status code: {code}"))) =>
        {
            StoreError::Denied { what: what() }
        }
        _ if is_io(error, std::io::ErrorKind::PermissionDenied) => StoreError::Denied { what: what() },
        _ if text.contains("Requested range") || text.contains("status code: 416") => StoreError::Invalid {
            what: what(),
            problem: "the range begins beyond the end of the object".into(),
        },
        _ if text.contains("status code: 4") && !text.contains("status code: 429") => StoreError::Invalid {
            what: what(),
            problem: "the store refuses the request: check endpoint, region, bucket and path style".into(),
        },
        _ => StoreError::Unreachable {
            problem: problem(error).into(),
        },
    }
}

pub(crate) fn no_such_bucket() -> StoreError {
    StoreError::Invalid {
        what: "bucket".into(),
        problem: "does not exist: create it, or correct the name".into(),
    }
}

/// A few identifiers, for a message.
fn shown(versions: &[String]) -> String {
    let mut shown: Vec<_> = versions.iter().take(4).map(|id| format!("{id:.64}")).collect();
    if versions.len() > shown.len() {
        shown.push("...".into());
    }
    shown.join(", ")
}

fn sources<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&e: &&'a (dyn Error + 'static)| e.source())
}

fn chain(error: &(dyn Error + 'static)) -> String {
    sources(error)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

fn is_io(error: &(dyn Error + 'static), kind: std::io::ErrorKind) -> bool {
    sources(error)
        .filter_map(|e| e.downcast_ref::<std::io::Error>())
        .any(|e| e.kind() == kind)
}

fn problem(error: &(dyn Error + 'static)) -> &'static str {
    use object_store::client::HttpErrorKind as K;
    match sources(error)
        .find_map(|e| e.downcast_ref::<HttpError>())
        .map(HttpError::kind)
    {
        Some(K::Connect) => "no connection (network, TLS trust or endpoint)",
        Some(K::Timeout) => "no answer in time",
        Some(K::Request | K::Interrupted | K::Decode) => "the connection broke",
        _ => "it answered with an error",
    }
}
