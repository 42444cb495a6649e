//! Artifact storage: object_store behind one small type, on S3 and on a local directory.
//!
//! Objects are created once and never replaced. A program opens the store with its own credentials directory, so
//! what it may do is decided by the store and not by this code.
#![forbid(unsafe_code)]

mod credentials;
mod directory;
mod error;
mod key;
mod listing;
mod s3;
mod upload;
mod versions;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use object_store::{GetOptions, GetRange, GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt};
use trawl_config::store::{StoreBackend, StoreConfig};

pub use error::StoreError;
pub use key::Key;

/// Largest object that is created with one request, in bytes. Create-if-absent is not offered for multipart uploads,
/// so this is also the largest artifact: `maxSize` ends at 1 GiB.
pub const MAX_OBJECT_BYTES: u64 = 1024 * 1024 * 1024 + 8 * 1024 * 1024;

/// One artifact store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    backend: Arc<Backend>,
}

#[derive(Debug)]
enum Backend {
    S3(s3::S3),
    Directory(directory::Directory),
}

/// What is known of an object without reading it. No ETag ever serves as proof of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    pub key: String,
    pub size: u64,
    pub etag: Option<String>,
    pub version_id: Option<String>,
}

/// An object, or a part of it, on its way.
pub struct Object {
    pub info: ObjectInfo,
    /// The bytes of the object that `stream` delivers.
    pub range: Range<u64>,
    pub stream: BoxStream<'static, Result<Bytes, StoreError>>,
}

impl Object {
    /// Gathers the whole stream, refusing more than `limit` bytes before memory is spent on it.
    pub async fn into_bytes(mut self, limit: u64) -> Result<Vec<u8>, StoreError> {
        let too_large = || StoreError::Invalid {
            what: "object".into(),
            problem: format!("larger than the limit of {limit} bytes"),
        };
        let mut out = Vec::new();
        while let Some(chunk) = self.stream.next().await {
            let chunk = chunk?;
            if out.len() as u64 + chunk.len() as u64 > limit {
                return Err(too_large());
            }
            out.extend_from_slice(&chunk);
        }
        Ok(out)
    }
}

/// A link that lets its bearer read one object for a while. It is a secret: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PresignedUrl(String);

impl PresignedUrl {
    /// The link itself, for the one answer that it is made for.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for PresignedUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PresignedUrl(..)")
    }
}

impl Store {
    /// Builds a client. Nothing is asked of the store yet. `credentials` is a directory with `access-key-id` and
    /// `secret-access-key`, read anew for every request so that a rotated Secret takes effect; the directory store
    /// does not look at it.
    pub fn open(config: &StoreConfig, credentials: &Path) -> Result<Self, StoreError> {
        if let Some(problem) = config.problems("store").into_iter().next() {
            return Err(StoreError::Invalid {
                what: problem.field,
                problem: problem.problem,
            });
        }
        let backend = match &config.backend {
            StoreBackend::S3(s3) => Backend::S3(s3::S3::open(s3, credentials)?),
            StoreBackend::Directory(directory) => {
                Backend::Directory(directory::Directory::open(Path::new(&directory.path))?)
            }
        };
        Ok(Self {
            backend: Arc::new(backend),
        })
    }

    /// Creates the object `key` from the first `size` bytes of the file at `path`, whose SHA-256 is `sha256`
    /// (checked by the S3 server, and by the directory store while copying). Exactly one of several creators wins; the others get
    /// [`StoreError::AlreadyExists`]. The file is streamed: memory use does not depend on its size.
    pub async fn put_file_if_absent(
        &self,
        key: &str,
        path: &Path,
        size: u64,
        sha256: &str,
    ) -> Result<ObjectInfo, StoreError> {
        self.put(key, upload::Source::file(path, size, sha256)?).await
    }

    /// Creates the object `key` from `bytes`, as [`Store::put_file_if_absent`] does.
    pub async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<ObjectInfo, StoreError> {
        self.put(key, upload::Source::bytes(bytes)?).await
    }

    async fn put(&self, key: &str, source: upload::Source) -> Result<ObjectInfo, StoreError> {
        let key = Key::parse(key)?;
        match &*self.backend {
            Backend::S3(s3) => s3.create(&key, &source).await,
            Backend::Directory(directory) => directory.create(&key, source).await,
        }
    }

    /// The whole object as a stream.
    pub async fn get(&self, key: &str) -> Result<Object, StoreError> {
        self.read(key, None).await
    }

    /// The bytes `range` of the object; an end beyond the object is cut, a start beyond it is an error.
    pub async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Object, StoreError> {
        self.read(key, Some(GetRange::Bounded(range))).await
    }

    async fn read(&self, key: &str, range: Option<GetRange>) -> Result<Object, StoreError> {
        let key = Key::parse(key)?;
        let options = GetOptions {
            range,
            ..GetOptions::default()
        };
        let found = self
            .objects()
            .get_opts(&key.path(), options)
            .await
            .map_err(|e| error::from(&key, &e))?;
        let (info, range) = (info(found.meta.clone()), found.range.clone());
        let stream = match found.payload {
            GetResultPayload::File(file, _) => directory::stream(key, file, range.clone()).await?,
            _ => found
                .into_stream()
                .map_err(move |e| error::from(&key, &e))
                .boxed(),
        };
        Ok(Object { info, range, stream })
    }

    /// Size and identifiers of the object.
    pub async fn head(&self, key: &str) -> Result<ObjectInfo, StoreError> {
        let key = Key::parse(key)?;
        self.objects()
            .head(&key.path())
            .await
            .map(info)
            .map_err(|e| error::from(&key, &e))
    }

    /// Deletes the object, in a bucket with versioning all its versions and delete markers; one that does not exist is
    /// no error. What the store keeps nevertheless is named by [`StoreError::Remains`].
    pub async fn delete(&self, key: &str) -> Result<(), StoreError> {
        let key = Key::parse(key)?;
        match &*self.backend {
            Backend::S3(s3) => s3.delete(&key).await,
            Backend::Directory(directory) => directory.delete(&key).await,
        }
    }

    /// Everything below the directory-like `prefix` (`captures/ns/uid`), in no particular order.
    pub async fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, StoreError> {
        let key = Key::parse(prefix.trim_end_matches('/'))?;
        let listed = self.objects().list(Some(&key.path()));
        listed
            .map_ok(info)
            .try_collect()
            .await
            .map_err(|e| error::from(&key, &e))
    }

    /// A link to read `key` for `ttl` (1 s to 7 days), or `None` where the store has no links: then the caller
    /// streams the object itself. The object need not exist.
    pub async fn presign_get(&self, key: &str, ttl: Duration) -> Result<Option<PresignedUrl>, StoreError> {
        let key = Key::parse(key)?;
        match &*self.backend {
            Backend::S3(s3) => s3.presign_get(&key, ttl).await.map(|url| Some(PresignedUrl(url))),
            Backend::Directory(_) => Ok(None),
        }
    }

    fn objects(&self) -> &dyn ObjectStore {
        match &*self.backend {
            Backend::S3(s3) => s3.objects(),
            Backend::Directory(directory) => directory.objects(),
        }
    }
}

fn info(meta: ObjectMeta) -> ObjectInfo {
    ObjectInfo {
        key: meta.location.to_string(),
        size: meta.size,
        etag: meta.e_tag,
        version_id: meta.version,
    }
}
