//! Other people's readers open the files without complaint.

use std::process::Command;

use trawl_control::Capture;

use crate::world::*;

/// What a reader prints, given that it has nothing to complain about.
fn read(program: &str, arguments: &[&str]) -> String {
    let out = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    let complaint = errors.lines().find(|line| {
        // tcpdump names the file, tshark warns of root.
        !line.contains("reading from file") && !line.contains("Running as user") && !line.is_empty()
    });
    assert!(out.status.success() && complaint.is_none(), "{program}: {errors}");
    String::from_utf8(out.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_with_tags_open_in_tshark_tcpdump_and_capinfos_and_show_balance_and_comments() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let request = Capture {
            comments: vec!["asked for by a test".into()],
            ..capture("t", "udp", 1_500)
        };
        let running = start(&client, request, world.path("f")).await.unwrap();
        let far = world.injector(FAR);
        for number in 0..50u32 {
            let plain = frame(number, 53, 60 + number as usize * 20);
            let sent = match number % 3 {
                0 => plain,
                1 => tagged(&plain, 7),
                _ => tagged(&tagged(&plain, 9), 8),
            };
            far.send(&sent).unwrap();
        }
        let (ended, packets) = running.ended().await;
        assert_eq!((packets.len(), ended.balance.lost_ring), (50, Some(0)));
        let file = world.path("f");
        let file = file.to_str().unwrap();
        let tags = read("tshark", &["-n", "-r", file, "-T", "fields", "-e", "vlan.id"]);
        let tags: Vec<_> = tags.lines().collect();
        assert_eq!(tags[..3], ["", "7", "8,9"]);
        assert_eq!(tags.len(), 50);
        assert_eq!(read("tcpdump", &["-n", "-r", file]).lines().count(), 50);
        let infos = read("capinfos", &[file]);
        for wanted in [
            "Number of packets:   50",
            "Capture comment:     asked for by a test",
            "nanoseconds (9)",
            "Number of stat entries = 1",
            "Filter string = udp",
        ] {
            assert!(infos.contains(wanted), "{wanted:?} is not in {infos}");
        }
        let blocks = std::fs::read(file).unwrap();
        let words = "seen 50 = matched 50 + filtered 0 + lost in history 0; matched 50 = written 50 + lost by the writer 0";
        let found = blocks.windows(words.len()).any(|w| w == words.as_bytes());
        assert!(found, "the balance stands in the file in words");
    }
}

/// Number, stamp and queue of each packet.
fn queues_of(path: &std::path::Path) -> Vec<(u32, u64, u32)> {
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
    use pcap_file::pcapng::{Block, PcapNgReader};
    let mut reader = PcapNgReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut found = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else {
            continue;
        };
        let queue = packet.options.iter().find_map(|option| match option {
            EnhancedPacketOption::Unknown(o) if o.code == 6 => {
                Some(u32::from_le_bytes(o.value[..].try_into().unwrap()))
            }
            _ => None,
        });
        let number = u32::from_be_bytes(packet.data[42..46].try_into().unwrap());
        let queue = queue.expect("each packet names its queue");
        found.push((number, packet.timestamp.as_nanos() as u64, queue));
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_of_several_queues_name_theirs_and_are_in_order_within_it() {
    let world = World::new();
    world.ip(&["link", "del", NEAR]);
    let queues = ["numrxqueues", "2", "numtxqueues", "2"];
    let wire = [
        &["link", "add", NEAR][..],
        &queues,
        &["type", "veth", "peer", "name", FAR],
        &queues,
    ]
    .concat();
    world.ip(&wire);
    world.ip(&["link", "set", NEAR, "up"]);
    world.ip(&["link", "set", FAR, "up"]);
    let _daemon = world.daemon();
    let client = world.client();
    let held = attach(&client, mirror(NEAR)).await;
    assert_eq!(held.status().queues.len(), 2);
    let mut running = start(&client, capture("t", "udp", 1_500), world.path("f"))
        .await
        .unwrap();
    let far = world.injector(FAR);
    for number in 0..2_000u32 {
        // Another port is another flow, and flows are spread over the queues.
        far.send(&frame(number, 1 + (number % 97) as u16, 100)).unwrap();
    }
    let ended = loop {
        match running.replies.next().await.unwrap() {
            Some(trawl_control::Reply::Ended(ended)) => break ended,
            Some(_) => {}
            None => panic!("no summary"),
        }
    };
    assert!(ended.balance.adds_up());
    assert_eq!((ended.packets, ended.balance.lost_ring), (2_000, Some(0)));
    let mut found = queues_of(&running.path);
    for queue in 0..2 {
        let own: Vec<_> = found.iter().filter(|f| f.2 == queue).collect();
        assert!(own.len() > 100, "queue {queue} got {}", own.len());
        assert!(
            own.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
            "order within queue {queue}"
        );
    }
    found.sort_unstable();
    assert!(found.iter().map(|f| f.0).eq(0..2_000));
    let file = running.path.to_str().unwrap();
    assert_eq!(read("tcpdump", &["-n", "-r", file]).lines().count(), 2_000);
    assert_eq!(
        read(
            "tshark",
            &["-n", "-r", file, "-T", "fields", "-e", "frame.number"]
        )
        .lines()
        .count(),
        2_000
    );
    assert!(read("capinfos", &[file]).contains("Number of interfaces in file: 1"));
}
