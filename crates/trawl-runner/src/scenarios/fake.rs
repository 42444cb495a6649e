//! A daemon that speaks the real protocol on a real socket and does to the file what a scenario asks.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use sha2::{Digest, Sha256};
use tokio::net::UnixListener;
use trawl_artifact::verify::hex;
use trawl_control::{
    Capture, CaptureMode, Connection, DaemonStatus, Ended, ErrorCode, ErrorReply, FilterReading, LeftOut,
    LossBalance, Progress, Reply, Request, RequestBody, Started, StopReason,
};

/// What happens to one capture.
#[derive(Clone, Debug)]
pub(super) enum Scenario {
    /// `packets` packets, then a proper end.
    Happy { packets: u64 },
    /// `packets` packets and half of another, then gone.
    Dies { packets: u64 },
    /// Dies before a byte was written.
    DiesEmpty,
    /// As `Dies`, but tells the reason.
    Breaks { packets: u64, message: &'static str },
    /// Refused with this code, before anything else.
    Refuses(ErrorCode),
    /// A whole file, but another hash is reported.
    WrongHash,
    /// A whole file, but another packet count is reported.
    WrongCount,
    /// Packets until the client half-closes.
    UntilCancelled,
    /// The first capture is cut off before it begins, the second is happy.
    RestartedOnce,
}

pub(super) const FIRST_NS: u64 = 1_790_000_000_123_456_789;

/// Serves `scenario` until the test's runtime ends.
pub(super) fn serve(socket: &Path, scenario: Scenario) {
    let listener = UnixListener::bind(socket).unwrap();
    tokio::spawn(async move {
        let mut captures = 0;
        while let Ok((stream, _)) = listener.accept().await {
            let mut connection = Connection::new(stream);
            let request: Request = connection.receive().await.unwrap().unwrap();
            match request.body {
                RequestBody::Status => {
                    let status = DaemonStatus {
                        daemon_version: "fake-1".into(),
                        started_at_ns: 1,
                        attachments: vec![],
                    };
                    connection.send(&Reply::Status(status)).await.unwrap();
                }
                RequestBody::Capture(capture) => {
                    captures += 1;
                    let file = File::from(connection.take_fds().remove(0).take());
                    play(&scenario, captures, capture, file, connection).await;
                }
                _ => panic!("the runner only asks for status and captures"),
            }
        }
    });
}

async fn play(
    scenario: &Scenario,
    captures: u32,
    request: Capture,
    mut file: File,
    mut connection: Connection,
) {
    if let Scenario::Refuses(code) = scenario {
        let refusal = ErrorReply {
            code: *code,
            field: None,
            message: "refused by the scenario".into(),
        };
        connection.send(&Reply::Error(refusal)).await.unwrap();
        return;
    }
    if matches!(scenario, Scenario::RestartedOnce) && captures == 1 {
        file.write_all(b"left behind").unwrap();
        return;
    }
    assert!(
        request.comments.iter().any(|c| c.contains("job-uid")),
        "{:?}",
        request.comments
    );
    connection.send(&Reply::FilterAccepted).await.unwrap();
    let started = Started {
        interface: "mirror0".into(),
        mode: CaptureMode::Copy,
        started_at_ns: FIRST_NS,
        requested_from_ns: FIRST_NS,
        covered_from_ns: FIRST_NS,
        filter: request.filter.map(|normalized| FilterReading {
            normalized,
            vlan_tags: 2,
            later_fragments: true,
            ip6_extension_headers: false,
            tunnels: request.filter_tunnels,
            left_out: vec![LeftOut {
                layer: "ip6ExtensionHeaders".into(),
                reason: "the fake does not".into(),
            }],
        }),
    };
    connection.send(&Reply::Started(started)).await.unwrap();
    let packets = match scenario {
        Scenario::Happy { packets } | Scenario::Dies { packets } | Scenario::Breaks { packets, .. } => {
            *packets
        }
        _ => 7,
    };
    if matches!(scenario, Scenario::DiesEmpty) {
        return;
    }
    let bytes = pcapng(packets);
    file.write_all(&bytes).unwrap();
    connection
        .send(&Reply::Progress(Progress {
            packets,
            bytes: bytes.len() as u64,
            elapsed_ms: 1,
        }))
        .await
        .unwrap();
    let mut ended = ended(packets, &bytes);
    match scenario {
        Scenario::Dies { .. } => return file.write_all(&packet(9)[..37]).unwrap(),
        Scenario::Breaks { message, .. } => {
            file.write_all(&packet(9)[..11]).unwrap();
            (ended.stop_reason, ended.message) = (StopReason::Error, Some((*message).into()));
        }
        Scenario::WrongHash => ended.sha256 = hex(&Sha256::digest(b"other")),
        Scenario::WrongCount => ended.packets += 1,
        Scenario::UntilCancelled => {
            // The client's half-close is the end of its messages.
            assert!(connection.receive::<Request>().await.unwrap().is_none());
            ended.stop_reason = StopReason::Cancelled;
        }
        _ => {}
    }
    connection.send(&Reply::Ended(ended)).await.unwrap();
    // The peer closes first.
    let _ = connection.receive::<Request>().await;
}

fn ended(packets: u64, bytes: &[u8]) -> Ended {
    Ended {
        stop_reason: StopReason::Duration,
        started_at_ns: FIRST_NS,
        ended_at_ns: FIRST_NS + 2_000_000_000,
        packets,
        bytes: bytes.len() as u64,
        sha256: hex(&Sha256::digest(bytes)),
        first_packet_ns: (packets > 0).then_some(FIRST_NS),
        last_packet_ns: packets.checked_sub(1).map(|n| FIRST_NS + n),
        truncated_packets: 0,
        balance: LossBalance {
            seen: packets + 2,
            matched: packets,
            filtered: 2,
            written: packets,
            ..LossBalance::default()
        },
        clock_source: "kernel-realtime".into(),
        message: None,
    }
}

/// A section, one Ethernet interface with nanosecond stamps, and `packets` packets of 64 bytes.
pub(super) fn pcapng(packets: u64) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(block(
        0x0A0D_0D0A,
        &[&0x1A2B_3C4Du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xFF; 8]].concat(),
    ));
    out.extend(block(
        1,
        &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0],
    ));
    for n in 0..packets {
        out.extend(packet(n));
    }
    out
}

fn packet(n: u64) -> Vec<u8> {
    let stamp = FIRST_NS + n;
    let words = [0, (stamp >> 32) as u32, stamp as u32, 64, 64];
    let mut body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    body.extend([n as u8; 64]);
    block(6, &body)
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}
