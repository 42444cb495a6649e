//! The serving certificate: loaded at start, read again when the files change.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use axum_server::tls_rustls::RustlsConfig;
use sha2::{Digest, Sha256};

/// How often the files are looked at. A mounted Secret changes by a symlink, so content is compared, not times.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// PEM files of the serving certificate chain and its key.
#[derive(Clone, Debug)]
pub struct Files {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Why there is no certificate to serve.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the serving certificate: cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("the serving certificate: not a PEM certificate chain with its private key: {0}")]
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn write(files: &Files, name: &str) {
        let key = KeyPair::generate().expect("key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        std::fs::write(&files.cert, params.self_signed(&key).expect("certificate").pem()).expect("cert");
        std::fs::write(&files.key, key.serialize_pem()).expect("key");
    }

    #[tokio::test]
    async fn a_new_certificate_is_taken_up_and_a_broken_one_leaves_the_old_in_use() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().expect("directory");
        let files = Files {
            cert: dir.path().join("tls.crt"),
            key: dir.path().join("tls.key"),
        };
        assert!(matches!(load(files.clone()).await, Err(TlsError::Read { .. })));
        write(&files, "first");
        let (cert, key) = read(&files).await.expect("read");
        let mut known = fingerprint(&cert, &key);
        let serving = load(files.clone()).await.expect("load");
        let first = serving.get_inner();
        assert!(
            !reload_if_changed(&serving, &files, &mut known)
                .await
                .expect("unchanged")
        );
        write(&files, "second");
        assert!(
            reload_if_changed(&serving, &files, &mut known)
                .await
                .expect("changed")
        );
        let second = serving.get_inner();
        assert!(!Arc::ptr_eq(&first, &second));
        std::fs::write(&files.cert, "rubbish").expect("cert");
        assert!(reload_if_changed(&serving, &files, &mut known).await.is_err());
        assert!(Arc::ptr_eq(&second, &serving.get_inner()));
    }
}
