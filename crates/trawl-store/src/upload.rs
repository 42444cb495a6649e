//! What is to be stored: bytes in memory or a file on disk, with size and SHA-256 known beforehand.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

use crate::{MAX_OBJECT_BYTES, StoreError};

/// Bytes read from a file at a time.
pub(crate) const CHUNK: usize = 256 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) size: u64,
    pub(crate) sha256: [u8; 32],
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Bytes(Bytes),
    File(PathBuf),
}

impl Source {
    pub(crate) fn bytes(bytes: Bytes) -> Result<Self, StoreError> {
        let sha256 = Sha256::digest(&bytes).into();
        Self {
            size: bytes.len() as u64,
            sha256,
            body: Body::Bytes(bytes),
        }
        .checked()
    }

    pub(crate) fn file(path: &Path, size: u64, sha256: &str) -> Result<Self, StoreError> {
        let sha256 = unhex(sha256).ok_or_else(|| invalid("sha256", "must be 64 hex digits"))?;
        Self {
            size,
            sha256,
            body: Body::File(path.into()),
        }
        .checked()
    }

    fn checked(self) -> Result<Self, StoreError> {
        if self.size > MAX_OBJECT_BYTES {
            return Err(invalid(
                "size",
                &format!("{} bytes exceed the limit of {MAX_OBJECT_BYTES}", self.size),
            ));
        }
        Ok(self)
    }

    /// A fresh stream over the content: every attempt begins at the start.
    pub(crate) async fn stream(&self) -> Result<BoxStream<'static, std::io::Result<Bytes>>, StoreError> {
        match &self.body {
            Body::Bytes(bytes) => {
                let bytes = bytes.clone();
                Ok(futures::stream::once(async move { Ok(bytes) }).boxed())
            }
            Body::File(path) => {
                let unreadable =
                    |e: std::io::Error| invalid("file", &format!("cannot be read ({})", e.kind()));
                let file = tokio::fs::File::open(path).await.map_err(unreadable)?;
                let length = file.metadata().await.map_err(unreadable)?.len();
                if length < self.size {
                    return Err(invalid("file", "shorter than the size that was announced"));
                }
                Ok(ReaderStream::with_capacity(file.take(self.size), CHUNK).boxed())
            }
        }
    }
}

fn invalid(what: &str, problem: &str) -> StoreError {
    StoreError::Invalid {
        what: what.into(),
        problem: problem.into(),
    }
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    if !trawl_artifact::text::is_sha256(text) {
        return None;
    }
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}
