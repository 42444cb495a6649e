//! A small capture file and the manifest that tells the truth about it.

use trawl_api::CaptureJob;
use trawl_artifact::manifest::{Bounds, MANIFEST_SCHEMA, Manifest, ObjectIdentity, Versions};
use trawl_artifact::outcome::{Outcome, StopReason};
use trawl_artifact::{Verifier, verify};

const BASE_NS: u64 = 1_700_000_000_000_000_000;

/// A pcapng file with `packets` Ethernet frames of 60 bytes.
pub fn pcapng(packets: u64) -> Vec<u8> {
    let mut file = Vec::new();
    let mut section = 0x1A2B_3C4Du32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    block(&mut file, 0x0A0D_0D0A, &section);
    // LINKTYPE_ETHERNET, no snaplen, if_tsresol 9.
    block(
        &mut file,
        1,
        &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0],
    );
    for n in 0..packets {
        let stamp = BASE_NS + n;
        let mut body = 0u32.to_le_bytes().to_vec();
        body.extend(((stamp >> 32) as u32).to_le_bytes());
        body.extend((stamp as u32).to_le_bytes());
        body.extend(60u32.to_le_bytes());
        body.extend(60u32.to_le_bytes());
        body.extend([n as u8; 60]);
        block(&mut file, 6, &body);
    }
    file
}

fn block(file: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let length = 12 + body.len() as u32;
    file.extend(kind.to_le_bytes());
    file.extend(length.to_le_bytes());
    file.extend(body);
    file.extend(length.to_le_bytes());
}

/// The manifest that a runner would write for `file`.
pub fn manifest(job: &CaptureJob, file: &[u8], outcome: Outcome) -> Manifest {
    let mut verifier = Verifier::new();
    verifier.push(file);
    let measured = verifier.measure();
    let found = measured.walk.expect("the test's own file is sound");
    let at = |ns| verify::timestamp(ns).expect("a time");
    let meta = &job.metadata;
    let identity = |name: &str, uid: &str| ObjectIdentity {
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: name.into(),
        uid: uid.into(),
    };
    Manifest {
        schema: MANIFEST_SCHEMA.into(),
        job: identity(
            meta.name.as_deref().unwrap_or_default(),
            meta.uid.as_deref().unwrap_or_default(),
        ),
        tap: identity(&job.spec.tap_ref.name, "00000000-0000-0000-0000-000000000001"),
        node: job.spec.target_node.clone().unwrap_or_default(),
        interface: "mirror0".into(),
        mode: "copy".into(),
        expansion: None,
        filter: job.spec.filter.clone(),
        snaplen: 0,
        bounds: Bounds {
            duration_ms: job.spec.duration.as_millis(),
            max_size_bytes: job.spec.max_size.bytes(),
            pre_trigger_ms: 0,
        },
        requested_from: at(BASE_NS),
        covered_from: at(BASE_NS),
        started_at: at(BASE_NS),
        ended_at: at(BASE_NS + 2_000_000_000),
        outcome,
        stop_reason: if outcome == Outcome::Succeeded {
            StopReason::Duration
        } else {
            StopReason::Error
        },
        packet_count: found.packets,
        size_bytes: measured.size_bytes,
        sha256: measured.sha256,
        truncated: false,
        truncated_packets: 0,
        first_packet: found.first_packet_ns.map(at),
        last_packet: found.last_packet_ns.map(at),
        loss_balance: None,
        clock_source: "kernel-realtime".into(),
        versions: Versions {
            runner: "0.1.0".into(),
            captured: "0.1.0".into(),
        },
    }
}
