//! Reading a stored capture back: the operator believes neither the runner nor the manifest, only the bytes.

use futures::StreamExt;
use trawl_api::CaptureJob;
use trawl_api::{CaptureJobStatus, Outcome};
use trawl_artifact::Verifier;
use trawl_artifact::keys::{capture_key, manifest_key};
use trawl_artifact::manifest::{MAX_MANIFEST_BYTES, Manifest};
use trawl_artifact::verify::VerifyReport;
use trawl_lifecycle::capture::{ArtifactFact, ObjectsFact, VerifiedArtifact};
use trawl_store::{ObjectInfo, Store, StoreError};

/// Which capture is looked at, and what is claimed of it elsewhere.
pub struct Claimed<'a> {
    pub namespace: &'a str,
    pub uid: &'a str,
    pub job: &'a CaptureJob,
    pub status: &'a CaptureJobStatus,
}

/// Streams the object back, re-hashes and recounts it, and compares with manifest, runner and bounds.
pub async fn look(store: &Store, profile: &str, claimed: &Claimed<'_>) -> ArtifactFact {
    match read(store, claimed).await {
        Ok(Found::Nothing) => ArtifactFact::Absent,
        Ok(Found::Incomplete(what)) => ArtifactFact::Incomplete(what.into()),
        Ok(Found::Wrong(what)) => ArtifactFact::Mismatch(what),
        Ok(Found::Good(info, manifest, report)) => match disagreement(claimed, &manifest, &report) {
            Some(what) => ArtifactFact::Mismatch(what),
            None => ArtifactFact::Verified(VerifiedArtifact {
                profile: profile.into(),
                key: capture_key(claimed.namespace, claimed.uid),
                etag: info.etag,
                version_id: info.version_id,
                packet_count: report.packet_count,
                size_bytes: report.size_bytes,
                sha256: report.sha256,
                outcome: manifest.outcome,
            }),
        },
        Err(error) => ArtifactFact::Unreachable(error.to_string()),
    }
}

enum Found {
    Nothing,
    Incomplete(&'static str),
    Wrong(String),
    Good(ObjectInfo, Box<Manifest>, Box<VerifyReport>),
}

async fn read(store: &Store, claimed: &Claimed<'_>) -> Result<Found, StoreError> {
    let capture = capture_key(claimed.namespace, claimed.uid);
    let manifest = match store.get(&manifest_key(claimed.namespace, claimed.uid)).await {
        Ok(object) if object.info.size > MAX_MANIFEST_BYTES => {
            return Ok(Found::Wrong("the manifest is larger than 256 KiB".into()));
        }
        Ok(object) => object.into_bytes(MAX_MANIFEST_BYTES).await?,
        Err(StoreError::NotFound { .. }) => {
            return match store.head(&capture).await {
                Ok(_) => Ok(Found::Incomplete(
                    "the store holds a capture without its manifest",
                )),
                Err(StoreError::NotFound { .. }) => Ok(Found::Nothing),
                Err(error) => Err(error),
            };
        }
        Err(error) => return Err(error),
    };
    let manifest = match Manifest::from_json(&manifest) {
        Ok(manifest) if manifest.belongs_to(claimed.namespace, claimed.uid) => manifest,
        Ok(_) => return Ok(Found::Wrong("the manifest is of another capture".into())),
        Err(error) => return Ok(Found::Wrong(format!("the manifest cannot be read: {error}"))),
    };
    let mut object = match store.get(&capture).await {
        Ok(object) => object,
        Err(StoreError::NotFound { .. }) => {
            return Ok(Found::Incomplete(
                "the store holds a manifest without its capture",
            ));
        }
        Err(error) => return Err(error),
    };
    let mut verifier = Verifier::new();
    while let Some(chunk) = object.stream.next().await {
        verifier.push(&chunk?);
    }
    Ok(match verifier.finish(&manifest) {
        Ok(report) => Found::Good(object.info, Box::new(manifest), Box::new(report)),
        Err(error) => Found::Wrong(error.to_string()),
    })
}

/// Where a file that agrees with its manifest disagrees with what else is known.
fn disagreement(claimed: &Claimed<'_>, manifest: &Manifest, report: &VerifyReport) -> Option<String> {
    if report.size_bytes > claimed.job.spec.max_size.bytes() {
        return Some("sizeBytes: the file is larger than spec.maxSize".into());
    }
    if claimed
        .job
        .spec
        .target_node
        .as_ref()
        .is_some_and(|node| *node != manifest.node)
    {
        return Some("node: the manifest names another node than spec.targetNode".into());
    }
    let result = claimed.status.runner_result.as_ref()?;
    if result.outcome == Outcome::Succeeded && manifest.outcome == Outcome::Failed {
        return Some("outcome: the manifest says Failed, the runner said Succeeded".into());
    }
    if result.sha256.as_ref().is_some_and(|said| *said != report.sha256) {
        return Some("sha256: the file has another than the runner reported".into());
    }
    let differs = |said: Option<i64>, found: u64| said.is_some_and(|s| u64::try_from(s) != Ok(found));
    if differs(result.size_bytes, report.size_bytes) {
        return Some("sizeBytes: the file has another size than the runner reported".into());
    }
    if differs(result.packet_count, report.packet_count) {
        return Some("packetCount: the file holds another number than the runner reported".into());
    }
    None
}

/// Deletes capture and manifest where they exist, and proves that they are gone.
///
/// # Errors
/// Whatever keeps the store from saying so.
pub async fn delete(store: &Store, namespace: &str, uid: &str) -> Result<(), StoreError> {
    for key in [capture_key(namespace, uid), manifest_key(namespace, uid)] {
        // Also where HEAD finds nothing: a delete marker hides versions that are still stored.
        store.delete(&key).await?;
        match store.head(&key).await {
            Err(StoreError::NotFound { .. }) => {}
            Ok(_) => {
                return Err(StoreError::Unreachable {
                    problem: "an object is still there after its deletion".into(),
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The same, as a fact for the next decision.
pub async fn delete_fact(store: &Store, namespace: &str, uid: &str) -> ObjectsFact {
    match delete(store, namespace, uid).await {
        Ok(()) => ObjectsFact::Gone,
        Err(error) => {
            tracing::warn!(uid, %error, "objects of a deleted CaptureJob could not be removed yet");
            ObjectsFact::Unreachable
        }
    }
}
