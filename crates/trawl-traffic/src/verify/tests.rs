use super::*;
use crate::frame::{Shape, Template};

type Sample = (u64, Option<u32>, u64);

/// A pcapng file of numbered frames: number, queue, stamp.
fn file(packets: &[Sample]) -> Vec<u8> {
    let mut template = Template::new(Shape::default(), 100).unwrap();
    let mut out = block(
        0x0a0d_0d0a,
        &[
            0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
        ],
    );
    out.extend(block(1, &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0]));
    for (number, queue, stamp) in packets {
        let frame = template.number(*number);
        let mut body = vec![0; 4];
        body.extend(((stamp >> 32) as u32).to_le_bytes());
        body.extend((*stamp as u32).to_le_bytes());
        body.extend([100, 0, 0, 0, 100, 0, 0, 0]);
        body.extend(frame);
        if let Some(queue) = queue {
            body.extend([6, 0, 4, 0]);
            body.extend(queue.to_le_bytes());
            body.extend([0; 4]);
        }
        out.extend(block(6, &body));
    }
    out
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

fn judged(packets: &[Sample], wanted: &Wanted) -> Report {
    verify(file(packets).as_slice(), wanted).unwrap()
}

#[test]
fn a_whole_stream_is_good_and_its_hash_is_that_of_the_file() {
    let packets: Vec<_> = (10..1000).map(|n| (n, None, n)).collect();
    let report = judged(
        &packets,
        &Wanted {
            expect: Some(990),
            ..Wanted::default()
        },
    );
    assert!(report.is_good(), "{report}");
    let hash: String = Sha256::digest(file(&packets))
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(report.sha256, hash);
    assert_eq!(
        (report.streams[0].first, report.streams[0].last),
        (Some(10), Some(999))
    );
}

#[test]
fn each_fault_is_told_by_its_name() {
    let cases: [(&[Sample], &str); 4] = [
        (
            &[(1, None, 1), (2, None, 2), (5, None, 3), (9, None, 4)],
            "stream 0: 5 numbers are missing in 2 gaps",
        ),
        (
            &[(1, None, 1), (2, None, 2), (2, None, 3)],
            "stream 0: 1 packets came twice",
        ),
        (
            &[(1, None, 1), (3, None, 2), (2, None, 3)],
            "stream 0: 1 packets are out of order",
        ),
        (&[(1, None, 5), (2, None, 4)], "1 stamps go back within a queue"),
    ];
    for (packets, problem) in cases {
        assert_eq!(judged(packets, &Wanted::default()).problems, [problem]);
    }
}

#[test]
fn order_and_stamps_are_judged_within_a_queue_and_gaps_across_all() {
    let packets = [(0, Some(0), 5), (2, Some(0), 9), (1, Some(1), 3), (3, Some(1), 4)];
    let report = judged(&packets, &Wanted::default());
    assert!(report.is_good(), "{report}");
    assert_eq!(report.queues, 2);
}

#[test]
fn a_capture_of_every_hundredth_is_whole_without_the_others() {
    let wanted = Wanted {
        every: 100,
        ..Wanted::default()
    };
    let packets: Vec<_> = (3..50).map(|n| (n * 100, None, n)).collect();
    assert!(judged(&packets, &wanted).is_good());
    let report = judged(&[(100, None, 1), (150, None, 2), (300, None, 3)], &wanted);
    assert_eq!(report.problems.len(), 2, "{report}");
}

#[test]
fn losses_that_were_counted_are_allowed_and_more_are_not() {
    let packets = [(1, None, 1), (4, None, 2)];
    for (lost, good) in [(0, false), (1, false), (2, true)] {
        assert_eq!(
            judged(
                &packets,
                &Wanted {
                    lost,
                    ..Wanted::default()
                }
            )
            .is_good(),
            good
        );
    }
    // Losses before the first or behind the last show in the expected count alone.
    for (lost, good) in [(2, false), (3, true)] {
        let wanted = Wanted {
            lost,
            expect: Some(5),
            ..Wanted::default()
        };
        assert_eq!(judged(&packets, &wanted).is_good(), good);
    }
}

#[test]
fn a_file_without_numbers_and_one_that_is_no_capture_prove_nothing() {
    assert!(!judged(&[], &Wanted::default()).is_good());
    assert!(
        judged(
            &[],
            &Wanted {
                expect: Some(0),
                ..Wanted::default()
            }
        )
        .is_good()
    );
    for bytes in [&b""[..], b"abc", b"not a capture file at all"] {
        let report = verify(bytes, &Wanted::default()).unwrap();
        assert!(!report.is_good());
        assert_eq!(report.bytes, bytes.len() as u64);
    }
    let other = judged(
        &[(1, None, 1)],
        &Wanted {
            stream: Some(7),
            ..Wanted::default()
        },
    );
    assert_eq!((other.other, other.is_good()), (1, false));
}

#[test]
fn a_changed_payload_is_seen_and_its_number_is_not_believed() {
    let mut bytes = file(&[(1, None, 1), (2, None, 2), (3, None, 3)]);
    // The last byte of the second frame.
    let block = 28 + 100 + 4;
    let at = bytes.len() - block - 5;
    bytes[at] ^= 1;
    let report = verify(bytes.as_slice(), &Wanted::default()).unwrap();
    assert_eq!(
        (report.streams[0].broken, report.streams[0].missing),
        (1, 1),
        "{report}"
    );
}

#[test]
fn a_file_that_is_cut_is_wrong_with_all_its_packets_counted() {
    let bytes = file(&[(1, None, 1), (2, None, 2)]);
    let report = verify(&bytes[..bytes.len() - 1], &Wanted::default()).unwrap();
    assert_eq!(report.packets, 1);
    assert!(report.problems[0].contains("ends inside"), "{report}");
    assert_eq!(report.bytes, bytes.len() as u64 - 1);
}
