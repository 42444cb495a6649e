//! `trawl.capture-manifest/v1`: what an artifact claims to hold, stored beside it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::outcome::{Outcome, StopReason};

/// The only accepted value of [`Manifest::schema`].
pub const MANIFEST_SCHEMA: &str = "trawl.capture-manifest/v1";
/// Largest manifest that a reader accepts, in bytes.
pub const MAX_MANIFEST_BYTES: u64 = 256 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    pub schema: String,
    pub job: ObjectIdentity,
    pub tap: ObjectIdentity,
    pub node: String,
    pub interface: String,
    /// zero-copy, copy, generic or af-packet.
    pub mode: String,
    /// As requested; absent when everything was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    pub snaplen: u32,
    /// The bounds that were asked for.
    pub bounds: Bounds,
    pub requested_from: Timestamp,
    pub covered_from: Timestamp,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub outcome: Outcome,
    pub stop_reason: StopReason,
    pub packet_count: u64,
    pub size_bytes: u64,
    /// Lower-case hex of the capture file.
    pub sha256: String,
    /// True when the writer did not finish the file and whole packets were salvaged from it.
    pub truncated: bool,
    pub truncated_packets: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_packet: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_packet: Option<Timestamp>,
    /// Absent when the writer could not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_balance: Option<LossBalance>,
    pub clock_source: String,
    pub versions: Versions,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectIdentity {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bounds {
    pub duration_ms: u64,
    pub max_size_bytes: u64,
    pub pre_trigger_ms: u64,
}

/// `seen = matched + filtered`, `written = matched - lostWriter`. `None` is "not measured".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LossBalance {
    pub seen: u64,
    pub matched: u64,
    pub filtered: u64,
    pub written: u64,
    pub lost_writer: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_ring: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_nic: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Versions {
    pub runner: String,
    pub captured: String,
}

/// Why a manifest was refused.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("the manifest has {0} bytes; the limit is {MAX_MANIFEST_BYTES}")]
    TooLarge(u64),
    #[error("the manifest is not valid JSON of schema {MANIFEST_SCHEMA}: {0}")]
    Json(#[from] serde_json::Error),
    #[error("schema: only {MANIFEST_SCHEMA} is understood")]
    Schema,
    #[error("{field}: {problem}")]
    Field {
        field: &'static str,
        problem: &'static str,
    },
}

impl Manifest {
    /// Reads a manifest strictly: size limit, no unknown field, no contradiction within itself.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ManifestError> {
        let length = bytes.len() as u64;
        if length > MAX_MANIFEST_BYTES {
            return Err(ManifestError::TooLarge(length));
        }
        let manifest: Self = serde_json::from_slice(bytes)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// The bytes to store, after the same checks that a reader makes.
    pub fn to_json(&self) -> Result<Vec<u8>, ManifestError> {
        self.check()?;
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        match bytes.len() as u64 {
            length if length > MAX_MANIFEST_BYTES => Err(ManifestError::TooLarge(length)),
            _ => Ok(bytes),
        }
    }

    /// Whether this manifest speaks of the job `namespace`/`uid`; a manifest of another job proves nothing.
    pub fn belongs_to(&self, namespace: &str, uid: &str) -> bool {
        self.job.namespace == namespace && self.job.uid == uid
    }

    fn check(&self) -> Result<(), ManifestError> {
        if self.schema != MANIFEST_SCHEMA {
            return Err(ManifestError::Schema);
        }
        let refuse = |field, problem| Err(ManifestError::Field { field, problem });
        let named = |id: &ObjectIdentity| ![&id.namespace, &id.name, &id.uid].iter().any(|s| s.is_empty());
        if !named(&self.job) {
            return refuse("job", "namespace, name and uid must not be empty");
        }
        if !named(&self.tap) {
            return refuse("tap", "namespace, name and uid must not be empty");
        }
        if !crate::text::is_sha256(&self.sha256) {
            return refuse("sha256", "must be 64 lower-case hex digits");
        }
        if self.ended_at < self.started_at {
            return refuse("endedAt", "must not lie before startedAt");
        }
        if self.truncated_packets > self.packet_count {
            return refuse("truncatedPackets", "must not exceed packetCount");
        }
        if self.packet_count == 0 && (self.first_packet.is_some() || self.last_packet.is_some()) {
            return refuse("firstPacket", "must be absent when packetCount is 0");
        }
        Ok(())
    }
}
