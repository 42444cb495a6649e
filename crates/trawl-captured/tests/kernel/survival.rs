//! What goes wrong on a real node, done for real; each test first sees that it has gone wrong.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use trawl_control::{Attach, Client, ClientError, ErrorCode, Feed, StopReason};

use crate::world::*;

fn namespace_of(world: &World) -> std::fs::File {
    std::fs::File::open(format!("/run/netns/{}", world.namespace)).unwrap()
}

fn feed(interface: &str) -> Feed {
    Feed {
        tap: tap("t"),
        interface: interface.into(),
    }
}

fn is_increasing(packets: &[Packet]) -> bool {
    packets.is_sorted_by(|a, b| sequence_of(a) < sequence_of(b))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_daemon_left_of_its_feeds_is_removed_by_the_next_one_and_nothing_else_is() {
    let (world, analyzer) = (World::new(), World::new());
    // A stranger's interface with a name like ours stays.
    world.ip(&[
        "link", "add", "trawlf99", "type", "veth", "peer", "name", "stranger",
    ]);
    let mut daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, mirror(NEAR)).await;
    let mut fed = client.feed(feed("mon0"), namespace_of(&analyzer)).await.unwrap();
    assert!(analyzer.shell("ip -o link show mon0").contains("UP"));
    daemon.signal(Signal::KILL);
    daemon.0.wait().unwrap();
    fed.closed().await;
    assert!(
        world.shell("ip -o link").contains("trawlf0"),
        "this test is about a leftover"
    );
    assert_eq!(xdp_programs(&world), 0);
    assert!(world.socket().exists(), "a killed daemon leaves its socket");
    let _daemon = world.daemon();
    wait_until("the leftover is gone", || {
        !world.shell("ip -o link").contains("trawlf0")
    });
    assert!(world.shell("ip -o link").contains("trawlf99"));
    let _held = attach(&client, mirror(NEAR)).await;
    let _fed = client.feed(feed("mon0"), namespace_of(&analyzer)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_flaps_costs_a_capture_only_what_did_not_arrive() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let running = start(&client, capture("t", "", 5_000), world.path("f"))
            .await
            .unwrap();
        let traffic = world.traffic(200);
        tokio::time::sleep(Duration::from_millis(500)).await;
        world.ip(&["link", "set", NEAR, "down"]);
        let down = wait_for(&client, "the link is down", |s| !s.link_up).await;
        world.ip(&["link", "set", NEAR, "up"]);
        wait_for(&client, "frames arrive again", |s| {
            s.link_up && s.counters.packets > down.counters.packets + 20
        })
        .await;
        let (ended, packets) = running.ended().await;
        let sent = traffic.stop();
        assert_eq!(ended.stop_reason, StopReason::Duration, "the capture goes on");
        assert!(is_increasing(&packets), "none twice, none out of order");
        let last = packets.last().map(sequence_of).unwrap();
        assert!(
            last + 1 > packets.len() as u32,
            "some frames met a link that was down"
        );
        assert!(last < sent && packets.len() > 100, "{} of {sent}", packets.len());
        let status = wait_for(&client, "all is well", |s| s.problem.is_none()).await;
        assert!(status.queues.iter().all(|q| q.rebinds == 0), "a flap is no stall");
    }
}

/// The BPF link that holds the program of captured on the near end.
fn program_link(world: &World) -> String {
    let script = format!(
        "id=$(ip -j -d link show {NEAR} | jq '.[0].xdp.prog.id'); bpftool -j link list | jq \".[] | select(.type == \\\"xdp\\\" and .prog_id == $id) | .id\""
    );
    world.shell(&script).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ring_that_gets_nothing_of_what_arrives_is_opened_again_and_says_so() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, mirror(NEAR)).await;
    let _traffic = world.traffic(500);
    let before = wait_for(&client, "frames arrive", |s| s.counters.packets > 50).await;
    let running = start(&client, capture("t", "", 60_000), world.path("f"))
        .await
        .unwrap();
    world.shell(&format!("bpftool link detach id {}", program_link(&world)));
    let cut = Instant::now();
    assert_eq!(xdp_programs(&world), 0, "the program is off");
    let stalled = wait_for(&client, "it is said", |s| s.problem.is_some()).await;
    assert!(stalled.problem.unwrap().contains("none of them reaches captured"));
    let (ended, packets) = running.ended().await;
    assert_eq!(ended.stop_reason, StopReason::Error);
    assert!(ended.message.unwrap().contains("opened again"));
    assert!(is_increasing(&packets));
    let again = wait_for(&client, "frames arrive again", |s| {
        s.attached_at_ns != before.attached_at_ns && s.counters.packets > 50 && s.problem.is_none()
    })
    .await;
    assert!(cut.elapsed() < Duration::from_secs(8), "{:?}", cut.elapsed());
    assert_eq!(again.queues[0].rebinds, 1);
    let running = start(&client, capture("t", "", 500), world.path("g"))
        .await
        .unwrap();
    assert!(!running.ended().await.1.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_is_told_who_has_the_socket_and_who_has_the_interface() {
    let world = World::new();
    let _daemon = world.daemon();
    let _held = attach(&world.client(), mirror(NEAR)).await;
    let mut command = world.command(PROGRAM);
    command
        .args(["serve", "--socket-group", "0", "--socket"])
        .arg(world.socket());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("another trawl-captured listens at") && said.contains("captured.sock"),
        "{said}"
    );
    world
        .client()
        .status()
        .await
        .expect("the first one is not disturbed");
    // With a socket of its own it runs, and meets the other one's program on the interface.
    let other = world.path("other.sock");
    let mut command = world.command(PROGRAM);
    command
        .args(["serve", "--socket-group", "0", "--socket"])
        .arg(&other);
    let mut second = Daemon(command.stderr(std::process::Stdio::null()).spawn().unwrap());
    wait_until("the second daemon listens", || {
        std::os::unix::net::UnixStream::connect(&other).is_ok()
    });
    let program = world.shell(&format!("ip -j -d link show {NEAR} | jq '.[0].xdp.prog.id'"));
    let asked = Attach {
        history_bytes: None,
        tap: tap("t"),
        source: mirror(NEAR),
    };
    let refused = Client::new(&other).attach(asked.clone()).await.unwrap_err();
    let ClientError::Refused(refused) = refused else {
        panic!("{refused}")
    };
    assert_eq!(refused.code, ErrorCode::InterfaceUnavailable);
    assert!(
        refused.message.contains(&format!("program {}", program.trim())),
        "{} has no {program}",
        refused.message
    );
    assert_eq!(xdp_programs(&world), 1, "the program of the first one stays");
    world.client().detach(tap("t")).await.unwrap();
    let _held = Client::new(&other).attach(asked).await.expect("now it is free");
    second.signal(Signal::TERM);
    assert!(second.0.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_is_stopped_and_continued_again_and_again_counts_what_that_cost() {
    for source in both() {
        let world = World::new();
        let daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let running = start(&client, capture("t", "", 4_000), world.path("f"))
            .await
            .unwrap();
        let traffic = world.traffic(1000);
        for _ in 0..30 {
            daemon.signal(Signal::STOP);
            let stat = format!("/proc/{}/stat", daemon.0.id());
            wait_until("it is stopped", || {
                std::fs::read_to_string(&stat).unwrap().contains(") T ")
            });
            tokio::time::sleep(Duration::from_millis(30)).await;
            daemon.signal(Signal::CONT);
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        let (ended, packets) = running.ended().await;
        traffic.stop();
        assert_eq!(ended.stop_reason, StopReason::Duration);
        let first = packets.first().map(sequence_of).unwrap();
        let last = packets.last().map(sequence_of).unwrap();
        let lost = ended.balance.lost_ring.unwrap() + ended.balance.lost_history + ended.balance.lost_writer;
        assert!(is_increasing(&packets));
        assert!(u64::from(last - first) < packets.len() as u64 + lost, "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorder_that_is_stopped_holds_up_nobody_and_still_gets_its_file() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, mirror(NEAR)).await;
    let recording = crate::record::record(&world, &["--duration", "2s", "-o", "f"]);
    recording.wait_for("records into f");
    wait_for(&client, "it has begun", |s| s.active_captures == 1).await;
    recording.signal(Signal::STOP);
    let traffic = world.traffic(500);
    let other = start(&client, capture("t", "", 1_000), world.path("g"))
        .await
        .unwrap();
    assert!(other.ended().await.1.len() > 300, "others go on");
    wait_for(&client, "its capture is over", |s| s.active_captures == 0).await;
    traffic.stop();
    recording.signal(Signal::CONT);
    let (code, said) = recording.finish();
    assert_eq!(code, Some(0), "{said}");
    assert!(packets_of(&world.path("f")).len() > 300, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_cannot_go_on_says_why_and_leaves_nothing() {
    let (world, analyzer) = (World::new(), World::new());
    let _daemon = world.daemon();
    let client = world.client();
    let held = attach(&client, mirror(NEAR)).await;
    let ends = || world.shell("ip -o link").matches("trawlf").count();
    let reason = |error: ClientError| match error {
        ClientError::Refused(refused) if refused.code == ErrorCode::FeedFailed => refused.message,
        other => panic!("{other}"),
    };
    // The analyzer deletes its end.
    let mut fed = client.feed(feed("mon0"), namespace_of(&analyzer)).await.unwrap();
    assert_eq!(ends(), 1);
    analyzer.ip(&["link", "del", "mon0"]);
    let why = reason(fed.closed().await);
    assert!(why.contains("was deleted"), "{why}");
    // The interface that it copies from is made anew: the hold stays, the feed is asked for again.
    let mut fed = client.feed(feed("mon0"), namespace_of(&analyzer)).await.unwrap();
    world.ip(&["link", "del", NEAR]);
    world.make_wire();
    wait_for(&client, "it is open again", |s| {
        s.problem.is_none() && s.ifindex != held.status().ifindex
    })
    .await;
    let why = reason(fed.closed().await);
    assert!(why.contains("opened anew"), "{why}");
    let mut fed = client.feed(feed("mon1"), namespace_of(&analyzer)).await.unwrap();
    world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
    wait_for(&client, "the copy went out", |s| {
        s.feeds.iter().any(|f| f.packets == 1)
    })
    .await;
    client.detach(tap("t")).await.unwrap();
    let why = reason(fed.closed().await);
    assert!(why.contains("detached"), "{why}");
    wait_until("nothing is left", || ends() == 0);
    assert!(!analyzer.shell("ip -o link").contains("mon"));
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_nobody_reads_any_more_end_neither_a_recording_nor_a_daemon() {
    let world = World::new();
    let mut command = world.command(PROGRAM);
    command
        .args(["serve", "--socket-group", "0", "--socket"])
        .arg(world.socket());
    command
        .env("RUST_LOG", "trace")
        .stderr(std::process::Stdio::piped());
    let mut daemon = Daemon(command.spawn().unwrap());
    drop(daemon.0.stderr.take());
    wait_until("the daemon listens", || {
        std::os::unix::net::UnixStream::connect(world.socket()).is_ok()
    });
    let client = world.client();
    for source in both() {
        let _held = attach(&client, source).await;
        let running = start(&client, capture("t", "", 1_000), world.path("f"))
            .await
            .unwrap();
        world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
        assert_eq!(running.ended().await.1.len(), 1);
        std::fs::remove_file(world.path("f")).unwrap();
        client.detach(tap("t")).await.unwrap();
    }
    let mut command = world.command(PROGRAM);
    command.args([
        "record",
        "--alone",
        "-i",
        NEAR,
        "--pre",
        "1s",
        "--duration",
        "1s",
        "-o",
    ]);
    command.arg(world.path("g")).stderr(std::process::Stdio::piped());
    let mut recording = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(recording.stderr.take());
    drop(recording.stdout.take());
    assert!(recording.wait().unwrap().success());
    assert_eq!(packets_of(&world.path("g")).len(), 0);
    // And watching ends when nobody looks.
    let mut command = world.command(PROGRAM);
    command
        .args(["watch", "--interface", NEAR, "--node"])
        .stdout(std::process::Stdio::piped());
    let mut watching = command.spawn().unwrap();
    drop(watching.stdout.take());
    let began = Instant::now();
    assert!(watching.wait().unwrap().success());
    assert!(began.elapsed() < Duration::from_secs(8));
    daemon.signal(Signal::HUP);
    assert!(
        daemon.0.wait().unwrap().success(),
        "a terminal that goes stops it in order"
    );
}
