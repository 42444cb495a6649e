//! The manifest: what the stored file holds, and how it came to be.

use jiff::Timestamp;
use trawl_artifact::Measured;
use trawl_artifact::manifest::{self, Bounds, FilterExpansion, MANIFEST_SCHEMA, Manifest, Versions};
use trawl_artifact::outcome::{Outcome, StopReason};
use trawl_artifact::pcapng::Summary;
use trawl_artifact::verify::timestamp;
use trawl_config::pods::RunnerSpec;
use trawl_control::{Ended, FilterReading, LossBalance, Started};

/// How a capture ended, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) stop_reason: StopReason,
    pub(crate) ended_at: Timestamp,
    /// The writer's own summary; absent when it died before it could give one.
    pub(crate) summary: Option<Ended>,
    /// Whether whole packets were salvaged from an unfinished file.
    pub(crate) salvaged: bool,
}

/// Builds the manifest from what was measured; nothing that the file can tell is taken from anybody's word.
pub(crate) fn build(
    spec: &RunnerSpec,
    started: &Started,
    end: &End,
    measured: &Measured,
    file: &Summary,
    captured_version: &str,
) -> Manifest {
    let moment = |ns: u64| timestamp(ns).unwrap_or(end.ended_at);
    let started_at = moment(started.started_at_ns);
    let outcome = match end.stop_reason {
        StopReason::Duration | StopReason::Size => Outcome::Succeeded,
        StopReason::Cancelled | StopReason::Error => Outcome::Failed,
    };
    Manifest {
        schema: MANIFEST_SCHEMA.into(),
        job: spec.job.clone(),
        tap: spec.tap.clone(),
        node: spec.node.clone(),
        interface: started.interface.clone(),
        mode: started.mode.as_str().into(),
        filter: spec.filter.clone().filter(|text| !text.is_empty()),
        expansion: started.filter.as_ref().map(expansion),
        snaplen: spec.snaplen,
        bounds: Bounds {
            duration_ms: spec.duration_ms,
            max_size_bytes: spec.max_size_bytes,
            pre_trigger_ms: spec.pre_trigger_ms,
        },
        requested_from: moment(started.requested_from_ns),
        covered_from: moment(started.covered_from_ns),
        started_at,
        ended_at: end.ended_at.max(started_at),
        outcome,
        stop_reason: end.stop_reason,
        packet_count: file.packets,
        size_bytes: measured.size_bytes,
        sha256: measured.sha256.clone(),
        truncated: end.salvaged,
        truncated_packets: file.truncated_packets,
        first_packet: file.first_packet_ns.and_then(timestamp),
        last_packet: file.last_packet_ns.and_then(timestamp),
        loss_balance: end.summary.as_ref().map(|summary| balance(&summary.balance)),
        clock_source: end
            .summary
            .as_ref()
            .map_or_else(|| "unknown".into(), |s| s.clock_source.clone()),
        versions: Versions {
            runner: env!("CARGO_PKG_VERSION").into(),
            captured: captured_version.into(),
        },
    }
}

fn expansion(reading: &FilterReading) -> FilterExpansion {
    let left_out = reading.left_out.iter().map(|out| manifest::LeftOut {
        layer: out.layer.clone(),
        reason: out.reason.clone(),
    });
    FilterExpansion {
        normalized: reading.normalized.clone(),
        vlan_tags: reading.vlan_tags,
        later_fragments: reading.later_fragments,
        ip6_extension_headers: reading.ip6_extension_headers,
        tunnels: reading.tunnels,
        left_out: left_out.collect(),
    }
}

fn balance(b: &LossBalance) -> manifest::LossBalance {
    manifest::LossBalance {
        seen: b.seen,
        matched: b.matched,
        filtered: b.filtered,
        written: b.written,
        lost_writer: b.lost_writer,
        lost_history: b.lost_history,
        lost_ring: b.lost_ring,
        lost_nic: b.lost_nic,
    }
}
