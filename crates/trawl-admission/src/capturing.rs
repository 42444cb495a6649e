//! What CapturePolicies and CaptureJobs have in common.

use std::time::Duration;

use trawl_api::limits;

use crate::{Rules, TapReference, findings::Findings};

/// Bytes that the headers of a packet may take: Ethernet, two tags, IPv6, and TCP with all its options.
const HEADERS: i32 = 128;

/// A retention within the limits of the contract and below the ceiling of the installation.
pub fn retention(rules: &Rules, retention: Duration, findings: &mut Findings) {
    let ceiling = rules.retention_ceiling.min(limits::RETENTION.max);
    if !(limits::RETENTION.min..=ceiling).contains(&retention) {
        let (min, max) = (limits::RETENTION.min_text, duration_text(ceiling));
        findings.replace(
            "spec.retention",
            format!("must be from {min} to {max}, the retention ceiling of this installation"),
        );
    }
}

/// The tap must be there by the time that a capture begins, and not before: manifests come in any order.
pub fn tap(tap: TapReference, findings: &mut Findings) {
    if tap == TapReference::Missing {
        findings.warn(
            "spec.tapRef.name",
            "there is no NetworkTap of this name in the namespace; captures fail until there is one",
        );
    }
}

/// Packets that are cut in their headers cannot be told apart afterwards.
pub fn snaplen(field: &str, snaplen: i32, findings: &mut Findings) {
    if (limits::MIN_SNAPLEN..HEADERS).contains(&snaplen) {
        findings.warn(
            field,
            &format!(
                "fewer than {HEADERS} bytes cut the headers of packets with VLAN tags, IPv6 or TCP options; use 0 for \
                 whole packets or at least {HEADERS}"
            ),
        );
    }
}

/// A capture reaches back only where something was kept.
pub fn pre_trigger(field: &str, before: Duration, findings: &mut Findings) {
    if before > Duration::ZERO {
        findings.warn(
            field,
            "a capture reaches back only as far as the packet history of its node; where a node keeps none, it begins \
             when it is asked for. The manifest says what was covered",
        );
    }
}

/// No filter is a filter too.
pub fn everything(field: &str, findings: &mut Findings) {
    findings.warn(
        field,
        "is empty: every packet on the interface is captured, until the duration or maxSize is reached",
    );
}

/// A duration as a manifest would say it: in days, else in hours, else in minutes, else in seconds.
pub fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "d"), (3600, "h"), (60, "m")];
    let whole = units
        .iter()
        .find(|(length, _)| seconds > 0 && seconds.is_multiple_of(*length));
    whole.map_or_else(
        || format!("{seconds}s"),
        |(length, unit)| format!("{}{unit}", seconds / length),
    )
}
