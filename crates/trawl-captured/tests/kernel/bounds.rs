use std::time::Duration;

use trawl_control::{Capture, StopReason};

use crate::world::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_file_holds_all_that_fits_below_its_bound_and_the_next_packet_would_not_have() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let far = world.injector(FAR);
        let lengths: Vec<usize> = (0..2500).map(|i| 60 + (i * 37) % 1400).collect();
        for (at, limit) in [1 << 20, (1 << 20) + 1, (1 << 20) + 33, (1 << 20) + 777, 1_500_000]
            .into_iter()
            .enumerate()
        {
            let request = Capture {
                max_size_bytes: limit,
                ..capture("t", "udp", 20_000)
            };
            let running = start(&client, request, world.path(&format!("{at}")))
                .await
                .unwrap();
            for (i, length) in lengths.iter().enumerate() {
                far.send(&frame(i as u32, 53, *length)).unwrap();
                if i % 64 == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            let (ended, packets) = running.ended().await;
            assert_eq!(ended.stop_reason, StopReason::Size);
            assert_eq!(ended.balance.lost_ring, Some(0));
            for (i, packet) in packets.iter().enumerate() {
                assert_eq!(
                    packet.bytes,
                    frame(i as u32, 53, lengths[i]),
                    "packet {i} is whole and in its place"
                );
            }
            let next = 32 + lengths[packets.len()].next_multiple_of(4) as u64;
            assert!(ended.bytes <= limit, "{} over {limit}", ended.bytes);
            assert!(
                ended.bytes + next > limit,
                "{} bytes and {next} more would have fitted into {limit}",
                ended.bytes
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_window_is_as_long_as_asked_and_holds_every_packet_stamped_inside_it() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let far = world.injector(FAR);
        let everything = start(&client, capture("t", "", 3_000), world.path("all"))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        let inner = start(&client, capture("t", "udp", 1_000), world.path("inner"))
            .await
            .unwrap();
        let start_ns = inner.started.started_at_ns;
        for i in 0..1500u32 {
            far.send(&frame(i, 53, 100)).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        let (ended, packets) = inner.ended().await;
        let (_, all) = everything.ended().await;
        assert_eq!(ended.stop_reason, StopReason::Duration);
        assert_eq!(ended.ended_at_ns - ended.started_at_ns, 1_000_000_000);
        let wanted: Vec<_> = all
            .into_iter()
            .filter(|p| (start_ns..start_ns + 1_000_000_000).contains(&p.stamp_ns))
            .collect();
        assert!(wanted.len() > 50, "{}", wanted.len());
        assert_eq!(packets, wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_without_packets_ends_in_time_as_a_valid_file() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let began = std::time::Instant::now();
        let running = start(&client, capture("t", "tcp", 300), world.path("empty"))
            .await
            .unwrap();
        let (ended, packets) = running.ended().await;
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        assert_eq!((ended.stop_reason, packets.len()), (StopReason::Duration, 0));
        assert_eq!(ended.first_packet_ns, None);
        let said = run(&["capinfos", "-c", world.path("empty").to_str().unwrap()]);
        assert!(said.contains("Number of packets:   0"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_snap_length_cuts_packets_and_remembers_their_length() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let request = Capture {
            snaplen: 64,
            ..capture("t", "greater 1000", 2_500)
        };
        let running = start(&client, request, world.path("cut")).await.unwrap();
        let far = world.injector(FAR);
        far.send(&frame(1, 53, 1400)).unwrap();
        far.send(&frame(2, 53, 900)).unwrap();
        let (ended, packets) = running.ended().await;
        assert_eq!(ended.truncated_packets, 1);
        assert_eq!((packets[0].bytes.len(), packets[0].wire_length), (64, 1400));
        assert_eq!(ended.balance.filtered, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_side_by_side_each_get_their_own_packets_and_their_counters_add_up() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let filters = [
            "udp port 1",
            "udp port 2",
            "udp port 1",
            "udp port 1 or udp port 2",
            "",
            "tcp",
        ];
        let mut all = Vec::new();
        for (i, filter) in filters.iter().enumerate() {
            all.push(
                start(&client, capture("t", filter, 3_000), world.path(&format!("{i}")))
                    .await
                    .unwrap(),
            );
        }
        let far = world.injector(FAR);
        for i in 0..300u32 {
            far.send(&frame(i, (i % 3) as u16 + 1, 200)).unwrap();
        }
        let mut counts = Vec::new();
        for running in all {
            let (ended, packets) = running.ended().await;
            assert_eq!(ended.balance.seen, 300);
            assert_eq!(ended.balance.lost_writer, 0);
            counts.push(packets.len());
        }
        assert_eq!(counts, [100, 100, 100, 200, 300, 0]);
        let status = client.status().await.unwrap();
        let attachment = status_of(&status.attachments, "t");
        assert_eq!(attachment.counters.packets, 300);
        assert_eq!(attachment.counters.bytes, 60_000);
        assert_eq!(attachment.active_captures, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_without_room_keeps_its_whole_packets_and_says_so() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, node(NEAR)).await;
    let small = world.path("small");
    std::fs::create_dir(&small).unwrap();
    run(&[
        "mount",
        "-t",
        "tmpfs",
        "-o",
        "size=1m",
        "tmpfs",
        small.to_str().unwrap(),
    ]);
    let running = start(&client, capture("t", "", 10_000), small.join("full"))
        .await
        .unwrap();
    let far = world.injector(FAR);
    for i in 0..2500u32 {
        far.send(&frame(i, 53, 1400)).unwrap();
        if i % 64 == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    let mut running = running;
    let ended = loop {
        match running.replies.next().await.unwrap() {
            Some(trawl_control::Reply::Ended(ended)) => break ended,
            Some(_) => {}
            None => panic!("no summary"),
        }
    };
    let length = std::fs::metadata(small.join("full")).unwrap().len();
    let read = std::process::Command::new("tcpdump")
        .args(["-r", small.join("full").to_str().unwrap()])
        .output();
    run(&["umount", small.to_str().unwrap()]);
    assert_eq!(ended.stop_reason, StopReason::Error);
    assert!(ended.message.unwrap().contains("No space left"));
    assert_eq!(length, ended.bytes);
    assert!(
        ended.balance.adds_up() && ended.balance.lost_writer > 0,
        "{:?}",
        ended.balance
    );
    assert!(ended.packets > 0);
    let read = read.unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    assert_eq!(
        read.stdout.iter().filter(|b| **b == b'\n').count() as u64,
        ended.packets
    );
}
