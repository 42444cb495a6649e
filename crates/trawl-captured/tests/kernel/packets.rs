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
    // Frames that need several buffers stay with the driver.
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
    assert_eq!(big.status().mode, CaptureMode::Copy);
    assert_eq!(big.status().mode_refusals.len(), 1, "{:?}", big.status());
    let running = start(&client, capture("d", "", 2_500), world.path("big"))
        .await
        .unwrap();
    world.injector("big1").send(&frame(1, 53, 2000)).unwrap();
    assert_eq!(running.ended().await.1[0].bytes, frame(1, 53, 2000));
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
