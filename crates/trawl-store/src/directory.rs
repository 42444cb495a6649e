//! The local directory: a name appears only when its file is whole and on disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use sha2::{Digest, Sha256};
use tokio::fs;
use tokio::io::AsyncWriteExt;

use crate::upload::Source;
use crate::{Key, ObjectInfo, StoreError};

#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
    objects: LocalFileSystem,
}

impl Directory {
    pub(crate) fn open(root: &Path) -> Result<Self, StoreError> {
        let objects = LocalFileSystem::new_with_prefix(root).map_err(|_| StoreError::Invalid {
            what: "store.backend.directory.path".into(),
            problem: "does not exist or cannot be opened: create the directory for uid 65532".into(),
        })?;
        Ok(Self {
            root: root.into(),
            objects,
        })
    }

    pub(crate) fn objects(&self) -> &dyn ObjectStore {
        &self.objects
    }

    /// Copies to a temporary name that listings do not show, syncs, then links to the final name: the link
    /// fails when the name exists, so that one creator wins.
    pub(crate) async fn create(&self, key: &Key, source: Source) -> Result<ObjectInfo, StoreError> {
        let target = self.root.join(key.as_str());
        let name = key.as_str().rsplit('/').next().unwrap_or_default();
        let temporary = target.with_file_name(format!("{name}#{}", unique()));
        let created = self.copy(key, source, &temporary, &target).await;
        match fs::remove_file(&temporary).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(key, &error)),
            _ => {}
        }
        let size = created?;
        self.settle(key).await?;
        Ok(ObjectInfo {
            key: key.as_str().into(),
            size,
            etag: None,
            version_id: None,
        })
    }

    async fn copy(
        &self,
        key: &Key,
        source: Source,
        temporary: &Path,
        target: &Path,
    ) -> Result<u64, StoreError> {
        let failed = |error: io::Error| failed(key, &error);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).await.map_err(failed)?;
        }
        if fs::symlink_metadata(target).await.is_ok() {
            return Err(StoreError::AlreadyExists {
                key: key.as_str().into(),
            });
        }
        let mut options = fs::OpenOptions::new();
        let mut out = options
            .write(true)
            .create_new(true)
            .mode(0o640)
            .open(temporary)
            .await
            .map_err(failed)?;
        let (mut hash, mut size) = (Sha256::new(), 0);
        let mut stream = source.stream().await?;
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(failed)?;
            hash.update(&chunk);
            size += chunk.len() as u64;
            out.write_all(&chunk).await.map_err(failed)?;
        }
        out.sync_all().await.map_err(failed)?;
        if size != source.size || <[u8; 32]>::from(hash.finalize()) != source.sha256 {
            let problem = "content does not have the announced size and sha256".into();
            return Err(StoreError::Invalid {
                what: key.as_str().into(),
                problem,
            });
        }
        fs::hard_link(temporary, target).await.map_err(failed)?;
        Ok(size)
    }

    /// Makes the names along `key` durable.
    pub(crate) async fn settle(&self, key: &Key) -> Result<(), StoreError> {
        let target = self.root.join(key.as_str());
        for directory in target
            .ancestors()
            .skip(1)
            .take_while(|d| d.starts_with(&self.root))
        {
            match fs::File::open(directory).await {
                Ok(directory) => directory.sync_all().await.map_err(|e| failed(key, &e))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(key, &error)),
            }
        }
        Ok(())
    }
}

/// A suffix of digits, which object_store's listings leave out.
fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let clock = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    (clock.as_nanos() as u64)
        ^ (u64::from(std::process::id()) << 40)
        ^ (NEXT.fetch_add(1, Ordering::Relaxed) << 56)
}

fn failed(key: &Key, error: &io::Error) -> StoreError {
    let what = key.as_str().to_owned();
    match error.kind() {
        io::ErrorKind::NotFound => StoreError::NotFound { key: what },
        io::ErrorKind::AlreadyExists => StoreError::AlreadyExists { key: what },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::Denied { what },
        kind => StoreError::Unreachable {
            problem: format!("input/output error ({kind})"),
        },
    }
}
