use super::*;

fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let word = |n: u32| match order {
        Order::Little => n.to_le_bytes(),
        Order::Big => n.to_be_bytes(),
    };
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = word(body.len() as u32 + 12);
    [&word(kind)[..], &length, &body, &length].concat()
}

fn words(order: Order, numbers: &[u32]) -> Vec<u8> {
    let bytes = numbers.iter().flat_map(|n| match order {
        Order::Little => n.to_le_bytes(),
        Order::Big => n.to_be_bytes(),
    });
    bytes.collect()
}

fn section(order: Order) -> Vec<u8> {
    let version = match order {
        Order::Little => 0x0000_0001,
        Order::Big => 0x0001_0000,
    };
    block(
        order,
        SECTION_HEADER,
        &words(order, &[0x1A2B_3C4D, version, u32::MAX, u32::MAX]),
    )
}

fn interface(order: Order, link: u16, snaplen: u32) -> Vec<u8> {
    let link = match order {
        Order::Little => link.to_le_bytes(),
        Order::Big => link.to_be_bytes(),
    };
    let body = [&link[..], &[0, 0], &words(order, &[snaplen])].concat();
    block(order, INTERFACE, &body)
}

fn enhanced(order: Order, interface: u32, wire: u32, data: &[u8]) -> Vec<u8> {
    let mut body = words(order, &[interface, 0, 0, data.len() as u32, wire]);
    body.extend(data);
    block(order, ENHANCED_PACKET, &body)
}

fn pcapng(order: Order) -> Vec<u8> {
    let mut old = match order {
        Order::Little => vec![1, 0, 0, 0],
        Order::Big => vec![0, 1, 0, 0],
    };
    old.extend(words(order, &[0, 0, 3, 3]));
    old.extend([7, 8, 9]);
    let simple = [&words(order, &[9])[..], &[1, 2, 3, 4]].concat();
    [
        section(order),
        interface(order, 1, 4),
        interface(order, 1, 0),
        block(order, 5, &[0; 12]),
        enhanced(order, 1, 5, &[1, 2, 3, 4, 5]),
        enhanced(order, 0, 1500, &[6]),
        block(order, SIMPLE_PACKET, &simple),
        block(order, OLD_PACKET, &old),
        block(order, 0x8000_0BAD, &[]),
    ]
    .concat()
}

fn pcap(order: Order, magic: u32, link: u32) -> Vec<u8> {
    let mut file = words(order, &[magic, 0x0004_0002, 0, 0, 262_144, link]);
    file.extend(words(order, &[0, 0, 2, 60]));
    file.extend([1, 2]);
    file.extend(words(order, &[0, 0, 0, 0]));
    file
}

fn read(bytes: &[u8]) -> Result<Vec<Packet>, PacketError> {
    let mut file = PacketFile::open(bytes)?;
    let mut packets = Vec::new();
    while let Some(packet) = file.next()? {
        packets.push(packet);
    }
    Ok(packets)
}

fn packet(wire_length: u32, data: &[u8]) -> Packet {
    Packet {
        wire_length,
        data: data.to_vec(),
    }
}

#[test]
fn packets_of_every_kind_of_block_and_both_byte_orders_are_read() {
    let expected = [
        packet(5, &[1, 2, 3, 4, 5]),
        packet(1500, &[6]),
        packet(9, &[1, 2, 3, 4]),
        packet(3, &[7, 8, 9]),
    ];
    for order in [Order::Little, Order::Big] {
        assert_eq!(read(&pcapng(order)).expect("reads"), expected, "{order:?}");
        // A second section begins afresh, in whatever order.
        let two = [pcapng(order), pcapng(Order::Big)].concat();
        assert_eq!(read(&two).expect("reads").len(), 8);
    }
}

#[test]
fn classic_files_of_both_resolutions_and_orders_are_read() {
    for order in [Order::Little, Order::Big] {
        for magic in [0xA1B2_C3D4, 0xA1B2_3C4D] {
            let expected = [packet(60, &[1, 2]), packet(0, &[])];
            assert_eq!(read(&pcap(order, magic, 1)).expect("reads"), expected);
            assert_eq!(
                read(&pcap(order, magic, 0x9000_0001)).expect("reads"),
                expected,
                "with check sequences"
            );
        }
    }
}

#[test]
fn a_file_that_was_cut_says_where_and_keeps_what_was_before() {
    for whole in [pcapng(Order::Little), pcap(Order::Little, 0xA1B2_C3D4, 1)] {
        let mut ends = 0;
        for length in 4..whole.len() {
            match read(&whole[..length]) {
                Ok(_) => ends += 1,
                Err(PacketError::Cut { at }) => assert!(at < length as u64),
                Err(error) => panic!("{length}: {error}"),
            }
        }
        assert!(ends <= 9, "only the borders of blocks are ends, not {ends}");
    }
}

#[test]
fn damage_is_named_with_its_place() {
    let order = Order::Little;
    let after = |bytes: Vec<u8>| [section(order), interface(order, 1, 0), bytes].concat();
    let at = (section(order).len() + interface(order, 1, 0).len()) as u64;
    let mut unequal = enhanced(order, 0, 4, &[1, 2, 3, 4]);
    let last = unequal.len() - 1;
    unequal[last] ^= 1;
    let length = |length: u32| [&words(order, &[ENHANCED_PACKET, length])[..], &[0; 64]].concat();
    for bytes in [
        unequal,
        length(0),
        length(13),
        length(MAX_BLOCK + 4),
        length(u32::MAX - 3),
        enhanced(order, 1, 4, &[1]),
        block(order, ENHANCED_PACKET, &words(order, &[0, 0, 0, 5, 5, 0])),
        block(order, ENHANCED_PACKET, &words(order, &[0, 0, 0, u32::MAX, 5, 0])),
        block(order, ENHANCED_PACKET, &[]),
        block(order, INTERFACE, &[]),
        block(order, SECTION_HEADER, &[0; 16]),
    ] {
        match read(&after(bytes)) {
            Err(PacketError::Damaged { at: place, .. }) => assert_eq!(place, at),
            other => panic!("{other:?}"),
        }
    }
    let mut huge = pcap(order, 0xA1B2_C3D4, 1);
    huge[32..36].fill(0xff);
    assert!(matches!(read(&huge), Err(PacketError::Damaged { at: 24, .. })));
}

#[test]
fn frames_that_are_not_ethernet_and_files_that_hold_none_are_told_apart() {
    let order = Order::Little;
    let cooked = [
        section(order),
        interface(order, 113, 0),
        enhanced(order, 0, 1, &[1]),
    ]
    .concat();
    assert!(matches!(
        read(&cooked),
        Err(PacketError::LinkType { link: 113, .. })
    ));
    assert!(matches!(
        read(&pcap(order, 0xA1B2_C3D4, 101)),
        Err(PacketError::LinkType { link: 101, .. })
    ));
    assert!(matches!(read(&[]), Err(PacketError::Empty)));
    for foreign in [&b"abc"[..], b"GIF89a-------", &[0; 64]] {
        assert!(matches!(read(foreign), Err(PacketError::Foreign)));
    }
    for compressed in [&[0x1f, 0x8b, 8, 0, 0][..], &[0x28, 0xb5, 0x2f, 0xfd]] {
        assert!(matches!(read(compressed), Err(PacketError::Compressed)));
    }
}

#[test]
fn any_one_wrong_byte_gives_packets_or_an_error_and_never_much_memory() {
    for whole in [pcapng(Order::Big), pcap(Order::Little, 0xA1B2_C3D4, 1)] {
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = read(&bytes);
            }
        }
    }
}
