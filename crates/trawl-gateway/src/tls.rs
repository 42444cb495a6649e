//! The serving certificate: loaded at start, read again when the files change.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use axum_server::tls_rustls::RustlsConfig;
use sha2::{Digest, Sha256};

/// How often the files are looked at. A mounted Secret changes by a symlink, so content is compared, not times.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// PEM files of the serving certificate chain and its key.
#[derive(Clone, Debug)]
pub struct Files {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Why there is no certificate to serve.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("--tls-cert/--tls-key: cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("--tls-cert/--tls-key: not a PEM certificate chain with its private key: {0}")]
    Parse(std::io::Error),
}

/// Loads the certificate and keeps a task that reloads it until the runtime ends.
pub async fn load(files: Files) -> Result<RustlsConfig, TlsError> {
    let (cert, key) = read(&files).await?;
    let mut known = fingerprint(&cert, &key);
    let config = RustlsConfig::from_pem(cert, key).await.map_err(TlsError::Parse)?;
    let serving = config.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            match reload_if_changed(&serving, &files, &mut known).await {
                Ok(false) => {}
                Ok(true) => tracing::info!("the serving certificate was reloaded"),
                // The certificate in memory stays in use: a half-written pair must not take the service down.
                Err(error) => tracing::warn!(%error, "the serving certificate could not be reloaded"),
            }
        }
    });
    Ok(config)
}

async fn reload_if_changed(
    serving: &RustlsConfig,
    files: &Files,
    known: &mut [u8; 32],
) -> Result<bool, TlsError> {
    let (cert, key) = read(files).await?;
    let seen = fingerprint(&cert, &key);
    if seen == *known {
        return Ok(false);
    }
    serving
        .reload_from_pem(cert, key)
        .await
        .map_err(TlsError::Parse)?;
    *known = seen;
    Ok(true)
}

async fn read(files: &Files) -> Result<(Vec<u8>, Vec<u8>), TlsError> {
    Ok((read_one(&files.cert).await?, read_one(&files.key).await?))
}

async fn read_one(path: &Path) -> Result<Vec<u8>, TlsError> {
    tokio::fs::read(path).await.map_err(|source| TlsError::Read {
        path: path.into(),
        source,
    })
}

fn fingerprint(cert: &[u8], key: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update((cert.len() as u64).to_be_bytes());
    hash.update(cert);
    hash.update(key);
    hash.finalize().into()
}
