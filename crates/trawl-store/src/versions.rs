//! Deletion that leaves nothing behind, also in a bucket that keeps old versions.
//!
//! A plain DELETE in such a bucket only hides the object: it adds a delete marker, and the bytes stay. So every
//! version and marker of the key is listed and deleted by its identifier, until a listing shows none.

use std::collections::HashSet;
use std::time::Duration;

use futures::StreamExt;
use http::{Method, StatusCode};
use object_store::ObjectStoreExt;

use crate::listing::{self, Marker, Version};
use crate::s3::{S3, broken, busy};
use crate::{Key, StoreError, error};

/// Longest answer that is read, in bytes: a page of 1000 entries needs less than a tenth.
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Most pages of one listing.
const MAX_PAGES: usize = 64;
/// How often the key is looked at again before something else is said to be writing it.
const ROUNDS: usize = 5;
/// Longest time that one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

impl S3 {
    pub(crate) async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        for _ in 0..ROUNDS {
            let Some(versions) = self.versions(key).await? else {
                return self.delete_current(key).await;
            };
            if !versions.is_empty() {
                self.delete_versions(key, &versions).await?;
                continue;
            }
            match self.objects().head(&key.path()).await {
                Err(object_store::Error::NotFound { .. }) => return Ok(()),
                // A server without versions may list none of what it holds.
                Ok(_) => self.delete_current(key).await?,
                Err(error) => return Err(error::from(key, &error)),
            }
        }
        Err(StoreError::Unreachable {
            problem: "the object comes back while it is being deleted".into(),
        })
    }

    async fn delete_current(&self, key: &Key) -> Result<(), StoreError> {
        match self.objects().delete(&key.path()).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error::from(key, &error)),
        }
    }

    /// Oldest first, and the delete markers last: a marker that goes while a version stays would bring the object
    /// back.
    async fn delete_versions(&self, key: &Key, versions: &[Version]) -> Result<(), StoreError> {
        let (markers, objects): (Vec<_>, Vec<_>) = versions.iter().rev().partition(|v| v.is_marker);
        let mut remaining = vec![];
        let mut refusal = None;
        for group in [objects, markers] {
            for version in group {
                if refusal.is_some() && version.is_marker {
                    remaining.push(version.id.clone());
                } else if let Some(status) = self.delete_version(key, &version.id).await? {
                    remaining.push(version.id.clone());
                    refusal = Some(status);
                }
            }
        }
        let Some(status) = refusal else { return Ok(()) };
        let problem = match status {
            StatusCode::FORBIDDEN => {
                "an object lock or a legal hold keeps them, or the credential lacks s3:DeleteObjectVersion"
                    .into()
            }
            other => format!("it answers with HTTP {}", other.as_u16()),
        };
        Err(StoreError::Remains {
            key: key.as_str().into(),
            versions: remaining,
            problem,
        })
    }

    /// `Some` is the status with which the server refuses.
    async fn delete_version(&self, key: &Key, id: &str) -> Result<Option<StatusCode>, StoreError> {
        let (status, body) = self.ask(Method::DELETE, Some(key), &[("versionId", id)]).await?;
        match status {
            _ if status.is_success() => Ok(None),
            StatusCode::NOT_FOUND if has_code(&body, "NoSuchBucket") => Err(error::no_such_bucket()),
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Err(busy(status)),
            StatusCode::NOT_IMPLEMENTED => Ok(Some(status)),
            _ if status.is_server_error() => Err(busy(status)),
            _ => Ok(Some(status)),
        }
    }

    /// Every version and marker of `key`, newest first; `None` where the server does not list versions.
    async fn versions(&self, key: &Key) -> Result<Option<Vec<Version>>, StoreError> {
        let mut found = vec![];
        let mut seen = HashSet::new();
        let mut from: Option<Marker> = None;
        for _ in 0..MAX_PAGES {
            let Some(page) = self.page(key, from.as_ref()).await? else {
                return Ok(None);
            };
            // Some servers repeat the last entry of a page on the next one.
            found.extend(page.versions.into_iter().filter(|v| seen.insert(v.id.clone())));
            match page.next {
                // Keys are in order and this one is the first of those that begin with it.
                Some(next) if next.key.as_str() <= key.as_str() && Some(&next) != from.as_ref() => {
                    from = Some(next);
                }
                Some(next) if next.key.as_str() <= key.as_str() => {
                    return Err(unclear(key, "does not come to its end"));
                }
                _ => return Ok(Some(found)),
            }
        }
        if found.is_empty() {
            return Err(unclear(key, "does not come to its end"));
        }
        // What is deleted now is missing from the next listing.
        Ok(Some(found))
    }

    async fn page(&self, key: &Key, from: Option<&Marker>) -> Result<Option<listing::Page>, StoreError> {
        let mut query = vec![("versions", ""), ("prefix", key.as_str())];
        if let Some(from) = from {
            query.push(("key-marker", &from.key));
            if !from.version.is_empty() {
                query.push(("version-id-marker", &from.version));
            }
        }
        let (status, body) = self.ask(Method::GET, None, &query).await?;
        match status {
            StatusCode::OK => {
                let text = std::str::from_utf8(&body).map_err(|_| unclear(key, "is not UTF-8"))?;
                listing::parse(text, key.as_str()).map_err(|problem| unclear(key, problem))
            }
            StatusCode::NOT_IMPLEMENTED => Ok(None),
            _ if has_code(&body, "NotImplemented") => Ok(None),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(StoreError::Denied {
                what: format!("{} (list its versions: s3:ListBucketVersions)", key.as_str()),
            }),
            StatusCode::NOT_FOUND => Err(error::no_such_bucket()),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Err(busy(status)),
            _ if status.is_server_error() => Err(busy(status)),
            _ => Err(StoreError::Invalid {
                what: key.as_str().into(),
                problem: format!("the store refuses to list versions (HTTP {})", status.as_u16()),
            }),
        }
    }

    /// One signed request without a body, about the bucket or about `key`.
    async fn ask(
        &self,
        method: Method,
        key: Option<&Key>,
        query: &[(&str, &str)],
    ) -> Result<(StatusCode, Vec<u8>), StoreError> {
        let url = self.url(key, query)?;
        let request = http::Request::builder().method(method.clone()).uri(url.as_str());
        let headers = self.sign(request, None)?;
        let unreachable = |e: reqwest::Error| StoreError::Unreachable {
            problem: broken(&e).into(),
        };
        let request = self
            .web()
            .request(method, url)
            .headers(headers)
            .timeout(REQUEST_TIMEOUT);
        let answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        let (mut stream, mut body) = (answer.bytes_stream(), vec![]);
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(unreachable)?;
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(StoreError::Invalid {
                    what: "store".into(),
                    problem: "answers with more than any request needs".into(),
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok((status, body))
    }
}

fn has_code(body: &[u8], code: &str) -> bool {
    let code = format!("<Code>{code}</Code>");
    body.windows(code.len()).any(|w| w == code.as_bytes())
}

fn unclear(key: &Key, problem: &str) -> StoreError {
    StoreError::Invalid {
        what: key.as_str().into(),
        problem: format!("the store's list of its versions {problem}"),
    }
}

#[cfg(test)]
mod tests;
