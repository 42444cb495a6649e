//! Bytes in, verdict out: hand-made files of both byte orders, damaged in every way that a length can lie.

use proptest::prelude::*;

use super::{MAX_COMMENTS, Resolution, Summary, WalkError, Walker};

/// Writes blocks in one byte order.
#[derive(Clone, Default)]
struct File {
    big: bool,
    bytes: Vec<u8>,
}

impl File {
    fn new(big: bool) -> Self {
        Self { big, bytes: vec![] }
    }

    fn u32(&self, value: u32) -> [u8; 4] {
        if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn u16(&self, value: u16) -> [u8; 2] {
        if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut out = [self.u16(code), self.u16(value.len() as u16)].concat();
        out.extend(value);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    fn options(&self, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut out: Vec<u8> = options
            .iter()
            .flat_map(|(code, value)| self.option(*code, value))
            .collect();
        if !options.is_empty() {
            out.extend([0; 4]);
        }
        out
    }

    fn block(mut self, kind: u32, body: &[u8]) -> Self {
        let length = self.u32(body.len() as u32 + 12);
        let kind = self.u32(kind);
        self.bytes.extend([&kind[..], &length, body, &length].concat());
        self
    }

    fn section(self, options: &[(u16, &[u8])]) -> Self {
        let mut body = [
            self.u32(0x1A2B_3C4D).to_vec(),
            self.u16(1).to_vec(),
            self.u16(0).to_vec(),
        ]
        .concat();
        body.extend([0xFF; 8]);
        body.extend(self.options(options));
        self.block(0x0A0D_0D0A, &body)
    }

    fn interface(self, snaplen: u32, options: &[(u16, &[u8])]) -> Self {
        let mut body = [self.u16(1), self.u16(0)].concat();
        body.extend(self.u32(snaplen));
        body.extend(self.options(options));
        self.block(1, &body)
    }

    fn packet(self, interface: u32, ticks: u64, data: &[u8], original: u32) -> Self {
        let words = [
            interface,
            (ticks >> 32) as u32,
            ticks as u32,
            data.len() as u32,
            original,
        ];
        let mut body: Vec<u8> = words.iter().flat_map(|w| self.u32(*w)).collect();
        body.extend(data);
        body.resize(body.len().next_multiple_of(4), 0);
        self.block(6, &body)
    }

    fn nanoseconds(self) -> Self {
        self.interface(0, &[(2, b"mirror0"), (9, &[9])])
    }
}

fn walk(bytes: &[u8], chunk: usize) -> Result<Summary, WalkError> {
    let mut walker = Walker::new();
    for piece in bytes.chunks(chunk.max(1)) {
        walker.push(piece)?;
    }
    walker.finish()
}

fn sample(big: bool) -> File {
    File::new(big)
        .section(&[(4, b"trawl-captured 0.1.0"), (1, b"who"), (1, b"why")])
        .nanoseconds()
        .packet(0, 1_790_000_000_123_456_789, &[7; 60], 60)
        .packet(0, 1_790_000_000_123_456_790, &[8; 61], 1_500)
}

#[test]
fn both_byte_orders_and_every_chunk_size_give_the_same_summary() {
    for big in [false, true] {
        let file = sample(big).bytes;
        for chunk in [1, 2, 3, 5, 7, 11, 13, 64, 1_000, file.len()] {
            let found = walk(&file, chunk).unwrap();
            assert_eq!(
                (found.packets, found.truncated_packets, found.sections),
                (2, 1, 1)
            );
            assert_eq!(found.first_packet_ns, Some(1_790_000_000_123_456_789));
            assert_eq!(found.last_packet_ns, Some(1_790_000_000_123_456_790));
            assert_eq!(found.whole_bytes, file.len() as u64);
            assert_eq!(found.application.as_deref(), Some("trawl-captured 0.1.0"));
            assert_eq!(found.comments, ["who", "why"]);
            assert_eq!(found.interfaces[0].name.as_deref(), Some("mirror0"));
            assert_eq!(
                (found.interfaces[0].link_type, found.interfaces[0].resolution),
                (1, Resolution::Decimal(9))
            );
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_salvaged_to_its_last_whole_block() {
    let whole = sample(false);
    let ends: Vec<usize> = {
        let section = File::new(false).section(&[(4, b"trawl-captured 0.1.0"), (1, b"who"), (1, b"why")]);
        let interface = section.clone().nanoseconds();
        let first = interface.clone().packet(0, 1, &[7; 60], 60);
        [
            0,
            section.bytes.len(),
            interface.bytes.len(),
            first.bytes.len(),
            whole.bytes.len(),
        ]
        .into()
    };
    for cut in 0..=whole.bytes.len() {
        let mut walker = Walker::new();
        walker.push(&whole.bytes[..cut]).unwrap();
        let last = ends.iter().rposition(|end| *end <= cut).unwrap();
        assert_eq!(walker.summary().whole_bytes, ends[last] as u64, "cut at {cut}");
        assert_eq!(
            walker.summary().packets,
            last.saturating_sub(2) as u64,
            "cut at {cut}"
        );
        let finished = walker.finish();
        match ends.contains(&cut) {
            true if cut == 0 => assert_eq!(finished, Err(WalkError::Empty)),
            true => assert!(finished.is_ok(), "cut at {cut}: {finished:?}"),
            false => assert_eq!(
                finished,
                Err(WalkError::Incomplete {
                    at: ends[last] as u64
                })
            ),
        }
    }
}

#[test]
fn a_packet_counts_only_with_its_trailing_length() {
    let mut file = sample(false).bytes;
    let length = file.len();
    file[length - 1] ^= 1;
    let mut walker = Walker::new();
    let error = walker.push(&file).unwrap_err();
    assert!(matches!(error, WalkError::LengthMismatch { .. }), "{error}");
    assert_eq!(walker.summary().packets, 1);
    assert_eq!(walker.push(&[]), Err(error), "a broken walk stays broken");
}

#[test]
fn lengths_that_lie_are_refused() {
    let head = File::new(false).section(&[]).nanoseconds();
    let at = head.bytes.len() as u64;
    let lying = |kind: u32, length: u32| {
        let mut bytes = head.bytes.clone();
        bytes.extend(kind.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend([0; 64]);
        walk(&bytes, 4096).unwrap_err()
    };
    for (kind, length) in [
        (6, 0),
        (6, 4),
        (6, 28),
        (6, 33),
        (1, 16),
        (3, 12),
        (5, 8),
        (0x0BAD, 11),
    ] {
        assert_eq!(
            lying(kind, length),
            WalkError::BadLength { at, length },
            "kind {kind}"
        );
    }
    for (kind, length) in [(6, 0xFFFF_FFFC), (1, 64 * 1024 + 4), (99, 16 * 1024 * 1024 + 4)] {
        assert_eq!(
            lying(kind, length),
            WalkError::TooLarge { at, length },
            "kind {kind}"
        );
    }
}

#[test]
fn a_packet_longer_than_its_block_is_refused() {
    let head = File::new(false).section(&[]).nanoseconds();
    let at = head.bytes.len() as u64;
    let words = [0u32, 0, 0, 65, 65];
    let mut body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    body.extend([0; 64]);
    let file = head.block(6, &body);
    assert_eq!(
        walk(&file.bytes, 7),
        Err(WalkError::PacketTooLong { at, captured: 65 })
    );
}

#[test]
fn a_packet_of_an_interface_that_was_not_described_is_refused() {
    let head = File::new(false).section(&[]).nanoseconds();
    let at = head.bytes.len() as u64;
    let file = head.packet(1, 0, &[0; 60], 60);
    assert_eq!(
        walk(&file.bytes, 100),
        Err(WalkError::UnknownInterface { at, interface: 1 })
    );
    // A new section forgets the interfaces of the one before.
    let two = sample(false).section(&[]).packet(0, 0, &[0; 60], 60);
    assert!(matches!(
        walk(&two.bytes, 100),
        Err(WalkError::UnknownInterface { interface: 0, .. })
    ));
}

#[test]
fn simple_and_obsolete_packet_blocks_count_as_well() {
    let file = File::new(true).section(&[]).interface(64, &[]);
    let simple = [&file.u32(1_500)[..], &[1; 64]].concat();
    let old = [
        &file.u16(0)[..],
        &file.u16(0),
        &file.u32(0),
        &file.u32(5),
        &file.u32(3),
        &file.u32(3),
        &[1, 2, 3, 0],
    ]
    .concat();
    let found = walk(&file.block(3, &simple).block(2, &old).bytes, 3).unwrap();
    assert_eq!((found.packets, found.truncated_packets), (2, 1));
    assert_eq!(
        found.first_packet_ns,
        Some(5_000),
        "the default resolution is microseconds"
    );
}

#[test]
fn unknown_blocks_are_passed_over_whatever_their_length() {
    for length in [0, 4, 8, 16, 100_000] {
        let file = File::new(false)
            .section(&[])
            .block(0xBAD, &vec![0xAA; length])
            .nanoseconds();
        assert!(walk(&file.bytes, 11).is_ok(), "{length}");
    }
}

#[test]
fn what_is_not_pcapng_is_named() {
    assert_eq!(walk(b"", 1), Err(WalkError::Empty));
    assert_eq!(
        walk(&[0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0], 12),
        Err(WalkError::NotPcapng)
    );
    assert_eq!(
        walk(&[0x0A, 0x0D, 0x0D, 0x0A, 28, 0, 0, 0, 1, 2, 3, 4], 12),
        Err(WalkError::BadByteOrder { at: 0 })
    );
    let mut file = File::new(false).section(&[]).bytes;
    file[12] = 2;
    assert_eq!(
        walk(&file, 99),
        Err(WalkError::BadVersion {
            at: 0,
            major: 2,
            minor: 0
        })
    );
}

#[test]
fn options_that_overrun_their_block_are_refused() {
    let file = File::new(false).section(&[]);
    let at = file.bytes.len() as u64;
    let body = [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[2, 0, 200, 0], b"eth0"].concat();
    assert_eq!(
        walk(&file.clone().block(1, &body).bytes, 9),
        Err(WalkError::BadOption { at, code: 2 })
    );
    for (code, value) in [(9, &[19u8][..]), (9, &[0xC0]), (9, &[9, 9]), (14, &[0; 4])] {
        let file = file.clone().interface(0, &[(code, value)]);
        assert_eq!(
            walk(&file.bytes, 9),
            Err(WalkError::BadOption { at, code }),
            "{code} {value:?}"
        );
    }
}

#[test]
fn memory_is_bounded_however_many_comments_a_file_holds() {
    let mut file = File::new(false);
    for _ in 0..100 {
        file = file.section(&[(1, b"again")]);
    }
    let found = walk(&file.bytes, 1_000).unwrap();
    assert_eq!((found.sections, found.comments.len()), (100, MAX_COMMENTS));
}

#[test]
fn stamps_are_nanoseconds_whatever_the_resolution() {
    let table = [
        (Resolution::Decimal(9), 1_500_000_001, 0, Some(1_500_000_001)),
        (Resolution::Decimal(6), 1_500_000, 0, Some(1_500_000_000)),
        (Resolution::Decimal(0), 7, 0, Some(7_000_000_000)),
        (Resolution::Decimal(12), 1_500, 0, Some(1)),
        (Resolution::Binary(10), 1_536, 0, Some(1_500_000_000)),
        (Resolution::Binary(0), 3, 0, Some(3_000_000_000)),
        (Resolution::Decimal(9), 5, 2, Some(2_000_000_005)),
        (Resolution::Decimal(9), 5, -1, None),
        (Resolution::Decimal(0), u64::MAX, 0, None),
        (Resolution::Binary(63), u64::MAX, i64::MAX, None),
    ];
    for (resolution, ticks, offset, expected) in table {
        assert_eq!(
            resolution.nanoseconds(ticks, offset),
            expected,
            "{resolution:?} {ticks} {offset}"
        );
    }
}

/// The independent reader that the project trusts most in this language.
#[test]
fn the_pcap_file_crate_counts_the_same() {
    for big in [false, true] {
        let file = sample(big).bytes;
        let mut reader = pcap_file::pcapng::PcapNgReader::new(&file[..]).unwrap();
        let mut packets = 0;
        while let Some(block) = reader.next_block() {
            packets += u64::from(block.unwrap().into_enhanced_packet().is_some());
        }
        assert_eq!(packets, walk(&file, 4_096).unwrap().packets);
    }
}

/// What captured writes of an interface with several receive queues: `epb_queue` at each packet, and statistics with
/// the loss balance in words.
#[test]
fn options_behind_packets_and_statistics_in_words_change_no_count() {
    for big in [false, true] {
        let mut file = sample(big);
        let words = [0, 400_000_000, 1, 5, 60].map(|w| file.u32(w)).concat();
        let queue = file.u32(3);
        let options = file.options(&[(6, &queue)]);
        file = file.block(6, &[&words[..], &[9; 5], &[0; 3], &options].concat());
        let words = [0, 400_000_000, 2].map(|w| file.u32(w)).concat();
        let options = file.options(&[(1, b"seen 3 = matched 3  "), (4, &[0; 8])]);
        file = file.block(5, &[words, options].concat());
        for chunk in [1, 7, 4_096] {
            assert_eq!(walk(&file.bytes, chunk).unwrap().packets, 3);
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_walk_panic_or_count_beyond_the_file(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut walker = Walker::new();
        let _ = walker.push(&bytes);
        prop_assert!(walker.summary().whole_bytes <= bytes.len() as u64);
        let _ = walker.finish();
    }

    #[test]
    fn a_damaged_file_gives_the_same_verdict_in_any_chunks(
        flips in proptest::collection::vec((0usize..400, any::<u8>()), 1..6),
        chunk in 1usize..40,
        big in any::<bool>(),
    ) {
        let mut bytes = sample(big).bytes;
        for (at, value) in flips {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        prop_assert_eq!(walk(&bytes, chunk), walk(&bytes, bytes.len()));
    }
}
