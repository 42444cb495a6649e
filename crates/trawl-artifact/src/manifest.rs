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
