use trawl_control::CaptureMode;

use crate::world::*;

#[tokio::test(flavor = "multi_thread")]
async fn tags_that_the_kernel_took_out_are_put_back_on_a_node_interface() {
    let world = World::new();
    world.shell(&format!("ethtool -K {FAR} txvlan on >/dev/null"));
    world.ip(&[
        "link", "add", "link", FAR, "name", "far0.7", "type", "vlan", "id", "7",
    ]);
    world.ip(&["link", "set", "far0.7", "up"]);
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, node(NEAR)).await;
    let running = start(
        &client,
        capture("t", "vlan 7 and udp port 53", 700),
        world.path("f"),
    )
    .await
    .unwrap();
    let (tags, plain) = (world.injector("far0.7"), world.injector(FAR));
    tags.send(&frame(1, 53, 100)).unwrap();
    plain.send(&frame(2, 53, 100)).unwrap();
    plain.send(&tagged(&tagged(&frame(3, 53, 100), 9), 7)).unwrap();
    tags.send(&frame(4, 53, 1400)).unwrap();
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
    let running = start(&client, capture("t", "vlan", 500), world.path("f"))
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
async fn what_the_node_sends_is_captured_and_loopback_shows_each_packet_once() {
    let world = World::new();
    world.ip(&["link", "set", "lo", "up"]);
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, node(NEAR)).await;
    let lo = client
        .attach(trawl_control::Attach {
            tap: tap("lo"),
            source: node("lo"),
        })
        .await
        .unwrap();
    let out = start(&client, capture("t", "", 500), world.path("out"))
        .await
        .unwrap();
    let looped = start(&client, capture("lo", "", 500), world.path("lo"))
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
        let running = start(&client, capture("t", "", 800), world.path("f"))
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
                *stamp < *after + 50_000_000,
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
    world.ip(&["link", "add", "dum0", "type", "dummy"]);
    world.ip(&["link", "set", "dum0", "up"]);
    let dummy = client
        .attach(trawl_control::Attach {
            tap: tap("d"),
            source: mirror("dum0"),
        })
        .await
        .unwrap();
    // A dummy device has no XDP of its own.
    assert_eq!(dummy.status().mode, CaptureMode::Generic);
    assert_eq!(dummy.status().mode_refusals.len(), 2, "{:?}", dummy.status());
    let af_packet = client
        .attach(trawl_control::Attach {
            tap: tap("n"),
            source: node(FAR),
        })
        .await
        .unwrap();
    assert_eq!(af_packet.status().mode, CaptureMode::AfPacket);
}
