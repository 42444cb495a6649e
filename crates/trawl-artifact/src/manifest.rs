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
    /// What was made of the filter; absent with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expansion: Option<FilterExpansion>,
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

/// How a filter was read, so that a packet that is missing can be explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilterExpansion {
    /// The text with every test written out in full.
    pub normalized: String,
    /// VLAN tags that were seen through, at most.
    pub vlan_tags: u8,
    /// Whether tests of ports accepted later fragments, which carry none.
    pub later_fragments: bool,
    /// Whether IPv6 extension headers were seen through.
    pub ip6_extension_headers: bool,
    /// Whether the packets inside tunnels were looked at.
    pub tunnels: bool,
    /// What was left out for a reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// Something that is usually added to a filter and was not to this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeftOut {
    /// vlanTags, laterFragments, ip6ExtensionHeaders or tunnels.
    pub layer: String,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bounds {
    pub duration_ms: u64,
    pub max_size_bytes: u64,
    pub pre_trigger_ms: u64,
}

/// `seen = matched + filtered + lostHistory`, `written = matched - lostWriter`. `None` is "not measured".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LossBalance {
    pub seen: u64,
    pub matched: u64,
    pub filtered: u64,
    pub written: u64,
    pub lost_writer: u64,
    /// Of the window, but its memory was needed again before the capture came to it.
    #[serde(default)]
    pub lost_history: u64,
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn manifest() -> Manifest {
        let id = |name: &str| ObjectIdentity {
            namespace: "ns".into(),
            name: name.into(),
            uid: format!("{name}-uid"),
        };
        Manifest {
            schema: MANIFEST_SCHEMA.into(),
            job: id("job"),
            tap: id("tap"),
            node: "node-1".into(),
            interface: "mirror0".into(),
            mode: "zero-copy".into(),
            filter: None,
            expansion: None,
            snaplen: 0,
            bounds: Bounds {
                duration_ms: 1000,
                max_size_bytes: 1 << 20,
                pre_trigger_ms: 0,
            },
            requested_from: Timestamp::UNIX_EPOCH,
            covered_from: Timestamp::UNIX_EPOCH,
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: Timestamp::UNIX_EPOCH,
            outcome: Outcome::Succeeded,
            stop_reason: StopReason::Duration,
            packet_count: 0,
            size_bytes: 100,
            sha256: "a".repeat(64),
            truncated: false,
            truncated_packets: 0,
            first_packet: None,
            last_packet: None,
            loss_balance: None,
            clock_source: "kernel-realtime".into(),
            versions: Versions {
                runner: "0.1.0".into(),
                captured: "0.1.0".into(),
            },
        }
    }

    #[test]
    fn a_manifest_survives_the_round_trip_and_an_absent_counter_stays_absent() {
        let balance = LossBalance {
            seen: 3,
            matched: 2,
            filtered: 1,
            written: 2,
            lost_writer: 0,
            lost_history: 0,
            lost_ring: Some(0),
            lost_nic: None,
        };
        let manifest = Manifest {
            loss_balance: Some(balance),
            ..manifest()
        };
        let bytes = manifest.to_json().unwrap();
        assert_eq!(Manifest::from_json(&bytes).unwrap(), manifest);
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.contains("\"lostRing\": 0") && !text.contains("lostNic"),
            "{text}"
        );
    }

    #[test]
    fn what_contradicts_itself_is_neither_written_nor_read() {
        type Change = fn(&mut Manifest);
        let table: [(Change, &str); 7] = [
            (|m| m.schema = "trawl.capture-manifest/v2".into(), "schema"),
            (|m| m.job.uid.clear(), "job"),
            (|m| m.tap.name.clear(), "tap"),
            (|m| m.sha256 = "A".repeat(64), "sha256"),
            (|m| m.started_at = Timestamp::MAX, "endedAt"),
            (|m| m.truncated_packets = 1, "truncatedPackets"),
            (|m| m.last_packet = Some(Timestamp::UNIX_EPOCH), "firstPacket"),
        ];
        for (change, field) in table {
            let mut wrong = manifest();
            change(&mut wrong);
            assert!(wrong.to_json().unwrap_err().to_string().starts_with(field));
            let bytes = serde_json::to_vec(&wrong).unwrap();
            assert!(
                Manifest::from_json(&bytes)
                    .unwrap_err()
                    .to_string()
                    .starts_with(field)
            );
        }
    }

    #[test]
    fn unknown_repeated_and_missing_fields_trailing_bytes_and_excess_size_are_refused() {
        let text = String::from_utf8(manifest().to_json().unwrap()).unwrap();
        let huge = text.clone() + &" ".repeat(MAX_MANIFEST_BYTES as usize);
        assert!(matches!(
            Manifest::from_json(huge.as_bytes()),
            Err(ManifestError::TooLarge(_))
        ));
        for wrong in [
            text.replacen('{', "{\"extra\": 1,", 1),
            text.replacen('{', "{\"node\": \"other\",", 1),
            text.replace("  \"node\": \"node-1\",\n", ""),
            text.clone() + "{}",
            text.replace("\"packetCount\": 0", "\"packetCount\": -1"),
            String::new(),
        ] {
            assert!(
                matches!(Manifest::from_json(wrong.as_bytes()), Err(ManifestError::Json(_))),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_manifest_belongs_to_one_job_by_uid_and_not_by_name() {
        assert!(manifest().belongs_to("ns", "job-uid"));
        assert!(!manifest().belongs_to("ns", "job") && !manifest().belongs_to("other", "job-uid"));
    }
}
