use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, TsResolution};
use proptest::prelude::*;

use super::*;

type Sample = (u64, Vec<u8>);

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    prop::collection::vec(
        (
            0..u64::from(u32::MAX) * 1_000_000_000,
            prop::collection::vec(any::<u8>(), 0..80),
        ),
        0..20,
    )
}

fn read(bytes: &[u8]) -> Result<Vec<Sample>, FileError> {
    let mut packets = Packets::new(bytes)?;
    let mut found = vec![];
    while let Some(packet) = packets.next_packet()? {
        found.push((packet.stamp_ns.unwrap_or(0), packet.bytes.to_vec()));
    }
    Ok(found)
}

fn pcapng(samples: &[Sample], order: Endianness, resolution: u8) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(vec![], order).unwrap();
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: 0,
        options: vec![InterfaceDescriptionOption::IfTsResol(resolution)],
    };
    writer.write_pcapng_block(interface).unwrap();
    for (stamp, bytes) in samples {
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(*stamp),
            original_len: bytes.len() as u32,
            data: bytes.into(),
            options: vec![EnhancedPacketOption::Flags(1)],
        };
        writer.write_pcapng_block(packet).unwrap();
    }
    writer.into_inner()
}

fn pcap(samples: &[Sample], order: Endianness) -> Vec<u8> {
    let header = PcapHeader {
        endianness: order,
        ts_resolution: TsResolution::NanoSecond,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(vec![], header).unwrap();
    for (stamp, bytes) in samples {
        let packet = PcapPacket::new(Duration::from_nanos(*stamp), bytes.len() as u32, bytes);
        writer.write_packet(&packet).unwrap();
    }
    writer.into_writer()
}

proptest! {
    #[test]
    fn what_another_writer_wrote_is_read_back_in_either_order_and_format(samples in samples()) {
        for order in [Endianness::Little, Endianness::Big] {
            prop_assert_eq!(&read(&pcapng(&samples, order, 9)).unwrap(), &samples);
            prop_assert_eq!(&read(&pcap(&samples, order)).unwrap(), &samples);
        }
    }

    #[test]
    fn a_file_that_is_cut_gives_its_whole_packets_and_then_says_so(samples in samples(), cut in any::<prop::sample::Index>()) {
        let whole = pcapng(&samples, Endianness::Little, 9);
        let cut = &whole[..cut.index(whole.len())];
        let Ok(mut packets) = Packets::new(cut) else { return Ok(()) };
        let mut expected = samples.iter();
        while let Ok(Some(packet)) = packets.next_packet() {
            prop_assert_eq!(packet.bytes, expected.next().unwrap().1.as_slice());
        }
    }

    #[test]
    fn changed_bytes_never_cause_a_panic_or_a_packet_beyond_the_file(
        samples in samples(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        for mut file in [pcapng(&samples, Endianness::Big, 9), pcap(&samples, Endianness::Little)] {
            for (at, byte) in &changes {
                let at = at.index(file.len());
                file[at] = *byte;
            }
            let Ok(mut packets) = Packets::new(file.as_slice()) else { continue };
            let mut total = 0;
            while let Ok(Some(packet)) = packets.next_packet() { total += packet.bytes.len(); }
            prop_assert!(total <= file.len());
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
        let mut section = pcapng(&[], Endianness::Little, 9);
        section.extend(bytes);
        let _ = read(&section);
    }
}

#[test]
fn the_queue_of_a_packet_is_read_in_either_order() {
    let words = [6u32, 44, 0, 0, 0, 0, 0, 0x0006_0004, 3, 0, 44];
    let big: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let mut little: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    little[28..32].copy_from_slice(&[6, 0, 4, 0]);
    for (order, block) in [(Endianness::Big, big), (Endianness::Little, little)] {
        let file = [pcapng(&[], order, 9), block].concat();
        let mut packets = Packets::new(file.as_slice()).unwrap();
        assert_eq!(packets.next_packet().unwrap().unwrap().queue, Some(3));
    }
}

#[test]
fn every_resolution_that_a_header_can_name_is_taken() {
    for resolution in 0..=u8::MAX {
        let mut file = pcapng(&[], Endianness::Little, resolution);
        // A packet block of no bytes, stamped 1 << 32 ticks.
        file.extend([6, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        file.extend([0; 12]);
        file.extend([32, 0, 0, 0]);
        let _ = read(&file);
    }
}

#[test]
fn microseconds_are_the_default_and_powers_of_two_are_understood() {
    for (resolution, stamp) in [(6, 4_294_967_296_000), (0x80 | 32, 1_000_000_000)] {
        let mut file = pcapng(&[], Endianness::Little, resolution);
        file.extend([6, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        file.extend([0; 12]);
        file.extend([32, 0, 0, 0]);
        assert_eq!(read(&file).unwrap(), [(stamp, vec![])]);
    }
}
