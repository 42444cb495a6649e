//! The local directory: a name appears only when its file is whole and on disk.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};
use tokio::fs;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio_util::io::ReaderStream;

use crate::upload::{CHUNK, Source};
use crate::{Key, ObjectInfo, StoreError, error};

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

    pub(crate) async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        match self.objects.delete(&key.path()).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => self.settle(key).await,
            Err(error) => Err(error::from(key, &error)),
        }
    }

    /// Makes the names along `key` durable.
    async fn settle(&self, key: &Key) -> Result<(), StoreError> {
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

/// The bytes `range` of an open file, in larger pieces than object_store's own 8 KiB: each costs a change of threads.
pub(crate) async fn stream(
    key: Key,
    file: std::fs::File,
    range: Range<u64>,
) -> Result<BoxStream<'static, Result<Bytes, StoreError>>, StoreError> {
    let mut file = fs::File::from_std(file);
    file.seek(io::SeekFrom::Start(range.start))
        .await
        .map_err(|e| failed(&key, &e))?;
    let mut left = range.end - range.start;
    let pieces = ReaderStream::with_capacity(file.take(left), CHUNK).map(Some);
    // The end of the file, where more of it was announced, must not look like the end of the object.
    let pieces = pieces.chain(futures::stream::once(async { None }));
    Ok(pieces
        .filter_map(move |piece| {
            let piece = match piece {
                Some(Ok(bytes)) => {
                    left -= bytes.len() as u64;
                    Some(Ok(bytes))
                }
                Some(Err(error)) => Some(Err(failed(&key, &error))),
                None if left > 0 => Some(Err(StoreError::Unreachable {
                    problem: "the file became shorter while it was read".into(),
                })),
                None => None,
            };
            std::future::ready(piece)
        })
        .boxed())
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
