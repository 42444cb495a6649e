use std::time::Duration;

use rustix::process::Signal;
use trawl_control::{Attach, AttachmentStatus, Client, ErrorCode, Reply, StopReason};

use crate::world::*;

async fn status(client: &Client) -> AttachmentStatus {
    status_of(&client.status().await.unwrap().attachments, "t")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_hangs_up_ends_its_capture_and_nothing_else() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let left = start(&client, capture("t", "", 60_000), world.path("left"))
            .await
            .unwrap();
        let other = start(&client, capture("t", "", 2_000), world.path("other"))
            .await
            .unwrap();
        world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
        wait_for(&client, "the packet arrived", |s| s.counters.packets == 1).await;
        drop(left.replies);
        wait_for(&client, "one capture is left", |s| s.active_captures == 1).await;
        wait_until("the file is finished", || {
            std::fs::metadata(world.path("left")).unwrap().len() > 0
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(packets_of(&world.path("left")).len(), 1);
        assert_eq!(other.ended().await.0.stop_reason, StopReason::Duration);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_closed_connection_still_gets_the_summary_of_the_cancelled_capture() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, mirror(NEAR)).await;
    let running = start(&client, capture("t", "", 60_000), world.path("f"))
        .await
        .unwrap();
    world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
    wait_for(&client, "the packet arrived", |s| s.counters.packets == 1).await;
    running.cancel.cancel().unwrap();
    let (ended, packets) = running.ended().await;
    assert_eq!((ended.stop_reason, packets.len()), (StopReason::Cancelled, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_daemon_leaves_no_program_on_the_interface_and_the_next_one_attaches() {
    let world = World::new();
    let mut daemon = world.daemon();
    let client = world.client();
    let mut held = attach(&client, mirror(NEAR)).await;
    assert_eq!(xdp_programs(&world), 1);
    let running = start(&client, capture("t", "", 60_000), world.path("f"))
        .await
        .unwrap();
    daemon.signal(Signal::KILL);
    daemon.0.wait().unwrap();
    let mut replies = running.replies;
    assert!(
        replies.next().await.is_err(),
        "a capture whose daemon died is no success"
    );
    held.closed().await;
    wait_until("the program is gone", || xdp_programs(&world) == 0);
    let _daemon = world.daemon();
    let held = attach(&client, mirror(NEAR)).await;
    assert_eq!(held.status().mode, trawl_control::CaptureMode::Copy);
    assert_eq!(xdp_programs(&world), 1);
    client.detach(tap("t")).await.unwrap();
    assert_eq!(xdp_programs(&world), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_is_told_to_stop_finishes_files_and_leaves_nothing_behind() {
    for source in both() {
        let world = World::new();
        let mut daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let running = start(&client, capture("t", "", 60_000), world.path("f"))
            .await
            .unwrap();
        world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
        wait_for(&client, "the packet arrived", |s| s.counters.packets == 1).await;
        daemon.signal(Signal::TERM);
        let (ended, packets) = running.ended().await;
        assert_eq!((ended.stop_reason, packets.len()), (StopReason::Error, 1));
        assert!(ended.message.unwrap().contains("stopping"));
        assert!(daemon.0.wait().unwrap().success());
        assert!(!world.socket().exists());
        assert_eq!(xdp_programs(&world), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attachment_outlives_its_connection_for_a_while_and_keeps_its_counters() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let held = attach(&client, mirror(NEAR)).await;
    let first = held.status().clone();
    world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
    wait_for(&client, "the packet arrived", |s| s.counters.packets == 1).await;
    drop(held);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let again = attach(&client, mirror(NEAR)).await;
    assert_eq!(again.status().attached_at_ns, first.attached_at_ns);
    assert_eq!(again.status().counters.packets, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_interface_serves_one_tap_and_a_node_interface_many() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let held = attach(&client, mirror(NEAR)).await;
    for source in [mirror(NEAR), node(NEAR)] {
        let refused = client
            .attach(Attach {
                history_bytes: None,
                tap: tap("second"),
                source,
            })
            .await
            .unwrap_err();
        let trawl_control::ClientError::Refused(refused) = refused else {
            panic!("{refused}")
        };
        assert_eq!(refused.code, ErrorCode::InterfaceConflict);
        assert!(refused.message.contains("trawl-system/t"), "{}", refused.message);
    }
    // A tap that nobody holds any more gives way at once.
    drop(held);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let second = client
        .attach(Attach {
            history_bytes: None,
            tap: tap("second"),
            source: mirror(NEAR),
        })
        .await
        .unwrap();
    assert_eq!(client.status().await.unwrap().attachments.len(), 1);
    let a = client
        .attach(Attach {
            history_bytes: None,
            tap: tap("a"),
            source: node(FAR),
        })
        .await
        .unwrap();
    let b = client
        .attach(Attach {
            history_bytes: None,
            tap: tap("b"),
            source: node(FAR),
        })
        .await
        .unwrap();
    assert_eq!(client.status().await.unwrap().attachments.len(), 3);
    drop((second, a, b));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_goes_down_is_a_problem_until_it_is_up_again() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        assert!(status(&client).await.link_up);
        world.ip(&["link", "set", NEAR, "down"]);
        let down = wait_for(&client, "the link is down", |s| !s.link_up).await;
        assert!(down.problem.unwrap().contains("is down"));
        world.ip(&["link", "set", NEAR, "up"]);
        wait_for(&client, "the link is up", |s| s.link_up && s.problem.is_none()).await;
        let running = start(&client, capture("t", "", 2_500), world.path("f"))
            .await
            .unwrap();
        world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
        assert_eq!(
            running.ended().await.1.len(),
            1,
            "frames arrive again after the flap"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_interface_ends_its_captures_and_is_opened_again_when_it_comes_back() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let held = attach(&client, source).await;
        let running = start(&client, capture("t", "", 60_000), world.path("f"))
            .await
            .unwrap();
        world.ip(&["link", "del", NEAR]);
        let (ended, _) = running.ended().await;
        assert_eq!(ended.stop_reason, StopReason::Error);
        assert!(ended.message.unwrap().contains("is gone"));
        let gone = status(&client).await;
        assert!(gone.problem.unwrap().contains("is gone"));
        let refused = start(&client, capture("t", "", 2_500), world.path("g"))
            .await
            .map(|_| ())
            .unwrap_err();
        assert_eq!(refused.code, ErrorCode::InterfaceUnavailable);
        world.make_wire();
        wait_for(&client, "it is open again", |s| {
            s.problem.is_none() && s.ifindex != held.status().ifindex
        })
        .await;
        let running = start(&client, capture("t", "", 2_500), world.path("h"))
            .await
            .unwrap();
        world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
        assert_eq!(running.ended().await.1.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interface_that_comes_back_under_its_old_number_is_opened_again() {
    for source in both() {
        let (world, elsewhere) = (World::new(), World::new());
        elsewhere.ip(&["link", "del", NEAR]);
        let _daemon = world.daemon();
        let client = world.client();
        let held = attach(&client, source).await;
        world.ip(&["link", "set", NEAR, "netns", &elsewhere.namespace]);
        wait_for(&client, "it is gone", |s| {
            s.problem.as_deref().is_some_and(|p| p.contains("is gone"))
        })
        .await;
        elsewhere.ip(&["link", "set", NEAR, "netns", &world.namespace]);
        world.ip(&["link", "set", NEAR, "up"]);
        wait_for(&client, "it is back", |s| s.link_up && s.problem.is_none()).await;
        assert_eq!(
            status(&client).await.ifindex,
            held.status().ifindex,
            "this test is about the same number"
        );
        let running = start(&client, capture("t", "", 2_500), world.path("f"))
            .await
            .unwrap();
        world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
        assert_eq!(running.ended().await.1.len(), 1, "frames arrive again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_four_capabilities_are_enough_and_too_few_are_explained() {
    let world = World::new();
    let serve = |capabilities: &str| {
        let mut command = world.command("setpriv");
        command
            .arg(format!("--bounding-set=-all{capabilities}"))
            .arg(format!("--inh-caps=-all{capabilities}"));
        command
            .arg(PROGRAM)
            .arg("serve")
            .arg("--socket")
            .arg(world.socket())
            .args(["--socket-group", "0"]);
        command
    };
    let daemon = world.wait_for_daemon(serve(",+net_raw,+net_admin,+bpf,+ipc_lock"));
    let client = world.client();
    for source in both() {
        let _held = attach(&client, source).await;
        let running = start(&client, capture("t", "", 2_500), world.path("f"))
            .await
            .unwrap();
        world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
        assert_eq!(running.ended().await.1.len(), 1);
        std::fs::remove_file(world.path("f")).unwrap();
        client.detach(tap("t")).await.unwrap();
    }
    drop(daemon);
    let _daemon = world.wait_for_daemon(serve(""));
    for source in both() {
        let refused = client
            .attach(Attach {
                history_bytes: None,
                tap: tap("t"),
                source,
            })
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains("CAP_NET_RAW"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_comes_about_once_a_second_and_grows() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, node(NEAR)).await;
    let mut running = start(&client, capture("t", "", 3_200), world.path("f"))
        .await
        .unwrap();
    let far = world.injector(FAR);
    let mut seen = Vec::new();
    loop {
        far.send(&frame(seen.len() as u32, 53, 1000)).unwrap();
        match running.replies.next().await.unwrap() {
            Some(Reply::Progress(p)) => seen.push(p),
            Some(Reply::Ended(_)) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!((2..=3).contains(&seen.len()), "{seen:?}");
    assert!(
        seen.is_sorted_by(|a, b| a.bytes < b.bytes && a.packets < b.packets),
        "{seen:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_many_taps_with_their_verdicts_arrives_whole() {
    let world = World::new();
    let _daemon = world.daemon_with(&["--history", "0"]);
    let client = world.client();
    let mut held = Vec::new();
    for i in 0..24 {
        let asked = Attach {
            history_bytes: None,
            tap: tap(&format!("t{i}")),
            source: node(NEAR),
        };
        held.push(client.attach(asked).await.unwrap());
    }
    let status = client.status().await.unwrap();
    let size = serde_json::to_vec(&status).unwrap().len();
    assert!(
        size > trawl_control::MAX_MESSAGE_BYTES,
        "this test is about a long status, not {size} bytes"
    );
    assert_eq!(status.attachments.len(), 24);
    assert!(status.attachments.iter().all(|a| !a.nic.is_empty()));
}
