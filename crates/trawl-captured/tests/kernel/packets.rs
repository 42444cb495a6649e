use trawl_control::CaptureMode;

use crate::world::*;

#[tokio::test(flavor = "multi_thread")]
async fn tags_that_the_kernel_took_out_are_put_back_on_a_node_interface() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, node(NEAR)).await;
    let running = start(
        &client,
        capture("t", "vlan 7 and udp port 53", 2_500),
        world.path("f"),
    )
    .await
    .unwrap();
    // The kernel moves the outer tag of each received frame into metadata before any reader sees it.
    let far = world.injector(FAR);
    far.send(&tagged(&frame(1, 53, 100), 7)).unwrap();
    far.send(&frame(2, 53, 100)).unwrap();
    far.send(&tagged(&tagged(&frame(3, 53, 100), 9), 7)).unwrap();
    far.send(&tagged(&frame(4, 53, 1400), 7)).unwrap();
    let (ended, packets) = running.ended().await;
    let got: Vec<_> = packets.iter().map(|p| p.bytes.clone()).collect();
    assert_eq!(
        got,
        [tagged(&frame(1, 53, 100), 7), tagged(&frame(4, 53, 1400), 7)]
    );
    assert_eq!(packets[0].wire_length, 104);
    assert_eq!(ended.balance.filtered, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_on_the_wire_are_in_the_file_of_a_mirror_interface() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, mirror(NEAR)).await;
    let running = start(&client, capture("t", "vlan", 2_500), world.path("f"))
        .await
        .unwrap();
    let far = world.injector(FAR);
    let frames = [
        tagged(&frame(1, 53, 100), 7),
        tagged(&tagged(&frame(2, 53, 300), 100), 200),
    ];
    far.send(&frame(0, 53, 100)).unwrap();
    frames.iter().for_each(|f| far.send(f).unwrap());
    let (_, packets) = running.ended().await;
    assert_eq!(packets.into_iter().map(|p| p.bytes).collect::<Vec<_>>(), frames);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tagged_conversation_is_captured_by_a_plain_host_filter() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let filter = "host 10.0.0.1 and udp port 53";
        let running = start(&client, capture("t", filter, 2_500), world.path("f"))
            .await
            .unwrap();
        let reading = running.started.filter.clone().unwrap();
        assert_eq!((reading.normalized.as_str(), reading.vlan_tags), (filter, 2));
        let far = world.injector(FAR);
        let frames = [
            frame(1, 53, 100),
            tagged(&frame(2, 53, 100), 7),
            tagged(&tagged(&frame(3, 53, 100), 9), 7),
        ];
        far.send(&tagged(&frame(4, 54, 100), 7)).unwrap();
        frames.iter().for_each(|f| far.send(f).unwrap());
        let (ended, packets) = running.ended().await;
        assert_eq!(packets.into_iter().map(|p| p.bytes).collect::<Vec<_>>(), frames);
        assert_eq!(ended.balance.filtered, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_node_sends_is_captured_and_loopback_shows_each_packet_once() {
    let world = World::new();
    world.ip(&["link", "set", "lo", "up"]);
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, node(NEAR)).await;
    let lo = client
        .attach(trawl_control::Attach {
            history_bytes: None,
            tap: tap("lo"),
            source: node("lo"),
        })
        .await
        .unwrap();
    let out = start(&client, capture("t", "", 2_500), world.path("out"))
        .await
        .unwrap();
    let looped = start(&client, capture("lo", "", 2_500), world.path("lo"))
        .await
        .unwrap();
    world.injector(NEAR).send(&frame(1, 53, 100)).unwrap();
    world.injector("lo").send(&frame(2, 53, 100)).unwrap();
    assert_eq!(out.ended().await.1.len(), 1);
    assert_eq!(looped.ended().await.1.len(), 1);
    drop(lo);
}

#[tokio::test(flavor = "multi_thread")]
async fn stamps_are_taken_per_packet_in_real_time() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let running = start(&client, capture("t", "", 2_500), world.path("f"))
            .await
            .unwrap();
        let far = world.injector(FAR);
        let mut sent = Vec::new();
        for i in 0..50u32 {
            let before = trawl_dataplane::clock::realtime_ns();
            far.send(&frame(i, 53, 100)).unwrap();
            sent.push((before, trawl_dataplane::clock::realtime_ns()));
        }
        let (_, packets) = running.ended().await;
        assert_eq!(packets.len(), 50);
        let mut stamps: Vec<_> = packets.iter().map(|p| p.stamp_ns).collect();
        for (stamp, (before, after)) in stamps.iter().zip(&sent) {
            assert!(
                *stamp + 200_000 > *before,
                "{stamp} before it was sent at {before}"
            );
            assert!(
                *stamp < *after + 2_000_000_000,
                "{stamp} long after it was sent at {after}"
            );
        }
        stamps.dedup();
        assert_eq!(stamps.len(), 50, "a stamp of its own for each packet");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mode_is_what_the_socket_has_and_says_why_it_is_not_better() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let held = attach(&client, mirror(NEAR)).await;
    // veth has XDP in its driver and no zero-copy.
    assert_eq!(held.status().mode, CaptureMode::Copy);
    assert!(
        held.status()
            .mode_refusals
            .iter()
            .any(|r| r.starts_with("zero-copy: ")),
        "{:?}",
        held.status()
    );
    assert!(!held.status().mode_proved);
    world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
    let mut proved = false;
    for _ in 0..100 {
        proved = status_of(&client.status().await.unwrap().attachments, "t").mode_proved;
        if proved {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(proved);
    // Frames that need several buffers change nothing about that; an interface without XDP leaves the generic mode.
    world.ip(&["link", "add", "bridge0", "type", "bridge"]);
    world.ip(&["link", "set", "bridge0", "up"]);
    let bridge = client
        .attach(trawl_control::Attach {
            history_bytes: None,
            tap: tap("b"),
            source: mirror("bridge0"),
        })
        .await
        .unwrap();
    assert_eq!(bridge.status().mode, CaptureMode::Generic);
    assert_eq!(bridge.status().mode_refusals.len(), 2, "{:?}", bridge.status());
    world.ip(&[
        "link", "add", "big0", "mtu", "9000", "type", "veth", "peer", "name", "big1", "mtu", "9000",
    ]);
    world.ip(&["link", "set", "big0", "up"]);
    world.ip(&["link", "set", "big1", "up"]);
    let big = client
        .attach(trawl_control::Attach {
            history_bytes: None,
            tap: tap("d"),
            source: mirror("big0"),
        })
        .await
        .unwrap();
    assert_eq!(big.status().mode, CaptureMode::Copy, "{:?}", big.status());
    let running = start(&client, capture("d", "", 2_500), world.path("big"))
        .await
        .unwrap();
    let jumbo = world.injector("big1");
    let frames = [2000, 9014, 60, 5000].map(|length| frame(1, 53, length));
    frames.iter().for_each(|f| jumbo.send(f).unwrap());
    let (_, packets) = running.ended().await;
    assert_eq!(packets.into_iter().map(|p| p.bytes).collect::<Vec<_>>(), frames);
    let af_packet = client
        .attach(trawl_control::Attach {
            history_bytes: None,
            tap: tap("n"),
            source: node(FAR),
        })
        .await
        .unwrap();
    assert_eq!(af_packet.status().mode, CaptureMode::AfPacket);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_receive_queue_of_an_interface_is_in_the_file() {
    let world = World::new();
    let queues = ["numrxqueues", "2", "numtxqueues", "2"];
    let ends = [
        &["link", "add", "mq0"][..],
        &queues,
        &["type", "veth", "peer", "name", "mq1"],
        &queues,
    ];
    world.ip(&ends.concat());
    world.shell("ethtool -K mq1 txvlan off >/dev/null");
    world.ip(&["link", "set", "mq0", "up"]);
    world.ip(&["link", "set", "mq1", "up"]);
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, mirror("mq0")).await;
    let running = start(&client, capture("t", "udp", 2_500), world.path("f"))
        .await
        .unwrap();
    let far = world.injector("mq1");
    // Flows are spread by their ports.
    for i in 0..200u32 {
        far.send(&frame(i, 1000 + i as u16, 100)).unwrap();
    }
    let bytes = running.path.clone();
    let mut numbers: Vec<_> = packets_by_queue(running, &bytes).await;
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    let rows = world.shell("ethtool -S mq0 | grep -c 'rx_queue_._xdp_packets: [1-9]'");
    assert_eq!(rows.trim(), "2", "both queues received");
}

/// Numbers of the packets of a finished capture of several queues, whose stamps are in order within each only.
async fn packets_by_queue(mut running: Running, path: &std::path::Path) -> Vec<u32> {
    loop {
        match running.replies.next().await.unwrap() {
            Some(trawl_control::Reply::Progress(_)) => {}
            Some(trawl_control::Reply::Ended(ended)) => {
                assert!(ended.balance.adds_up(), "{:?}", ended.balance);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    let number = |p: Packet| u32::from_be_bytes(*p.bytes[42..].first_chunk().unwrap());
    packets_of(path).into_iter().map(number).collect()
}
