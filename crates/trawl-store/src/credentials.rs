//! Credentials from a mounted Secret, read for every request so that rotation needs no restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use trawl_config::store::{ACCESS_KEY_ID_FILE, SECRET_ACCESS_KEY_FILE};

use crate::StoreError;

/// Longest credential file, in bytes.
const MAX_BYTES: usize = 4096;

#[derive(Debug)]
pub(crate) struct CredentialsDirectory {
    directory: PathBuf,
}

impl CredentialsDirectory {
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// Both halves, from one version of the Secret.
    pub(crate) fn read(&self) -> Result<AwsCredential, StoreError> {
        // The kubelet swaps the `..data` link as a whole: resolving it once keeps the two files together.
        let version = self.directory.join("..data");
        let directory = std::fs::canonicalize(version).unwrap_or_else(|_| self.directory.clone());
        Ok(AwsCredential {
            key_id: read_one(&directory, ACCESS_KEY_ID_FILE)?,
            secret_key: read_one(&directory, SECRET_ACCESS_KEY_FILE)?,
            token: None,
        })
    }
}

fn read_one(directory: &Path, name: &str) -> Result<String, StoreError> {
    // Worded so that no sanitizer takes the problem for the secret.
    let invalid = |problem: &str| StoreError::Invalid {
        what: "store".into(),
        problem: format!("file {name} of the mounted Secret {problem}"),
    };
    let text = std::fs::read_to_string(directory.join(name))
        .map_err(|e| invalid(&format!("cannot be read ({})", e.kind())))?;
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_BYTES || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(invalid("must be one line of printable ASCII"));
    }
    Ok(text.into())
}

#[async_trait]
impl CredentialProvider for CredentialsDirectory {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        self.read()
            .map(Arc::new)
            .map_err(|error| object_store::Error::Unauthenticated {
                path: self.directory.display().to_string(),
                source: Box::new(error),
            })
    }
}
