use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use trawl_control::{Attach, Capture, ClientError, ErrorCode, ErrorReply, Reply, Request, RequestBody};

use crate::world::*;

fn refusal<T: std::fmt::Debug>(result: Result<T, ClientError>) -> ErrorReply {
    match result {
        Err(ClientError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// What the daemon answers to raw bytes.
fn answer(world: &World, bytes: &[u8]) -> ErrorReply {
    let mut stream = UnixStream::connect(world.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(bytes).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    match trawl_control::codec::parse(&reply[4..]).unwrap() {
        Reply::Error(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_that_cannot_be_are_refused_by_field_without_being_repeated() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, node(NEAR)).await;
    let cases = [
        ("host secret.example", ErrorCode::InvalidFilter),
        ("tcp port https", ErrorCode::InvalidFilter),
        ("((", ErrorCode::InvalidFilter),
        ("tcp tcp tcp", ErrorCode::InvalidFilter),
        ("caf\u{e9}", ErrorCode::InvalidFilter),
        (
            "ip6 host 2001:db8::1 and host 10.0.0.1",
            ErrorCode::FilterRejectsAll,
        ),
    ];
    for (i, (filter, code)) in cases.into_iter().enumerate() {
        let path = world.path(&format!("f{i}"));
        let refused = start(&client, capture("t", filter, 500), path)
            .await
            .map(|_| ())
            .unwrap_err();
        assert_eq!(
            (refused.code, refused.field.as_deref()),
            (code, Some("filter")),
            "{filter}"
        );
        assert!(
            !refused.message.contains("secret") && !refused.message.contains("https"),
            "{}",
            refused.message
        );
    }
    let long = start(&client, capture("t", &"a".repeat(1025), 500), world.path("long"))
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(long.message.contains("1024"), "{}", long.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interface_that_the_node_uses_itself_is_not_taken_as_a_mirror() {
    for address in ["10.99.0.1/24", "2001:db8::1/64"] {
        let world = World::new();
        world.shell(&format!("echo 0 > /proc/sys/net/ipv6/conf/{NEAR}/disable_ipv6"));
        world.ip(&["addr", "add", address, "dev", NEAR]);
        let _daemon = world.daemon();
        let client = world.client();
        let asked = Attach {
            history_bytes: None,
            tap: tap("t"),
            source: mirror(NEAR),
        };
        let refused = refusal(client.attach(asked).await);
        assert_eq!(refused.code, ErrorCode::InterfaceUnavailable);
        assert!(
            refused.message.contains("as a node interface"),
            "{}",
            refused.message
        );
        let _held = attach(&client, node(NEAR)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interface_that_is_not_there_is_named_with_what_to_do() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    for source in [mirror("nope0"), node("nope0")] {
        let refused = refusal(
            client
                .attach(Attach {
                    history_bytes: None,
                    tap: tap("t"),
                    source,
                })
                .await,
        );
        assert_eq!(refused.code, ErrorCode::InterfaceUnavailable);
        assert_eq!(refused.field.as_deref(), Some("source.interface"));
        assert!(
            refused.message.contains("nope0") && refused.message.contains("ip link"),
            "{}",
            refused.message
        );
    }
    let refused = refusal(
        client
            .attach(Attach {
                history_bytes: None,
                tap: tap("t"),
                source: mirror("name-that-is-too-long"),
            })
            .await,
    );
    assert!(refused.message.contains("1 to 15"), "{}", refused.message);
    let refused = start(&client, capture("t", "", 500), world.path("f"))
        .await
        .map(|_| ())
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::InterfaceUnavailable);
    assert!(refused.message.contains("attach it first"), "{}", refused.message);
    assert!(client.status().await.unwrap().attachments.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn triggers_in_the_future_and_histories_that_are_too_large_are_refused_by_field() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, node(NEAR)).await;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let late = Capture {
        trigger_ns: Some(now.as_nanos() as u64 + 60_000_000_000),
        ..capture("t", "", 500)
    };
    let refused = start(&client, late, world.path("f"))
        .await
        .map(|_| ())
        .unwrap_err();
    assert_eq!(
        (refused.code, refused.field.as_deref()),
        (ErrorCode::InvalidBounds, Some("triggerNs"))
    );
    // A moment ahead is what two clocks may differ by, and taken for now.
    let ahead = Capture {
        trigger_ns: Some(now.as_nanos() as u64 + 900_000_000),
        ..capture("t", "", 500)
    };
    start(&client, ahead, world.path("g"))
        .await
        .unwrap()
        .ended()
        .await;
    let refused = refusal(
        client
            .attach(Attach {
                history_bytes: Some((4 << 30) + 1),
                tap: tap("u"),
                source: node(NEAR),
            })
            .await,
    );
    assert_eq!(
        (refused.code, refused.field.as_deref()),
        (ErrorCode::InvalidBounds, Some("historyBytes"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_that_asks_for_more_history_than_is_held_is_told_what_is_covered() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let held = attach(&client, source).await;
        world.injector(FAR).send(&frame(7, 53, 100)).unwrap();
        tokio::time::sleep(Duration::from_millis(600)).await;
        let asked = Capture {
            pre_trigger_ms: 300_000,
            ..capture("t", "", 500)
        };
        let running = start(&client, asked, world.path("f")).await.unwrap();
        let started = running.started.clone();
        let span = started.covered_from_ns - started.requested_from_ns;
        assert!(span > 290_000_000_000, "{started:?}");
        let opened = held.status().attached_at_ns;
        assert!(
            started.covered_from_ns.abs_diff(opened) < 2_000_000_000,
            "{started:?}"
        );
        let (ended, packets) = running.ended().await;
        assert_eq!(
            (packets.len(), ended.balance.lost_history),
            (1, 0),
            "what was held is in the file"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_cannot_be_is_refused_by_field() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let ask = |interface: &str, tap_name: &str| trawl_control::Feed {
        tap: tap(tap_name),
        interface: interface.into(),
    };
    let namespace = File::open(format!("/run/netns/{}", world.namespace)).unwrap();
    let refused = refusal(client.feed(ask("mirror0", "t"), &namespace).await);
    assert_eq!(refused.code, ErrorCode::InterfaceUnavailable, "not attached");
    let _held = attach(&client, node(NEAR)).await;
    let refused = refusal(client.feed(ask("name-that-is-too-long", "t"), &namespace).await);
    assert_eq!(
        (refused.code, refused.field.as_deref()),
        (ErrorCode::FeedFailed, Some("interface"))
    );
    let refused = refusal(client.feed(ask(FAR, "t"), &namespace).await);
    assert_eq!(refused.code, ErrorCode::FeedFailed);
    assert!(
        refused.message.contains("exists in the analyzer"),
        "{}",
        refused.message
    );
    let no_namespace = File::open("/dev/null").unwrap();
    let refused = refusal(client.feed(ask("mirror0", "t"), &no_namespace).await);
    assert_eq!(refused.code, ErrorCode::FeedFailed);
    assert!(
        refused.message.contains("not a network namespace"),
        "{}",
        refused.message
    );
    assert!(
        !world.shell("ip -o link").contains("trawlf"),
        "nothing is left of what was refused"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_captures_and_feeds_that_are_never_read_hold_up_nobody() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, node(NEAR)).await;
    let namespace = File::open(format!("/run/netns/{}", world.namespace)).unwrap();
    let mut silent = Vec::new();
    for i in 0..64 {
        let connect = || async { UnixStream::connect(world.socket()).unwrap() };
        let file = File::create_new(world.path(&format!("s{i}"))).unwrap();
        let request = RequestBody::Capture(capture("t", "", 20_000));
        silent.push(ask_and_never_read(connect().await, request, &file).await);
        let request = RequestBody::Feed(trawl_control::Feed {
            tap: tap("t"),
            interface: format!("slow{i}"),
        });
        silent.push(ask_and_never_read(connect().await, request, &namespace).await);
    }
    let began = std::time::Instant::now();
    loop {
        let status = client.status().await.unwrap();
        let ours = status_of(&status.attachments, "t");
        if ours.active_captures == 64 && ours.feeds.len() == 64 {
            break;
        }
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{} captures",
            ours.active_captures
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let asked = std::time::Instant::now();
    client.status().await.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    let refused = start(&client, capture("t", "", 500), world.path("one-more"))
        .await
        .map(|_| ())
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::TooManyCaptures);
    drop(silent);
    let began = std::time::Instant::now();
    loop {
        let status = client.status().await.unwrap();
        let ours = status_of(&status.attachments, "t");
        if ours.active_captures == 0 && ours.feeds.is_empty() {
            break;
        }
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "peers that hung up are let go"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    wait_until("the interfaces of the feeds are gone", || {
        !world.shell("ip -o link").contains("trawlf")
    });
}

async fn ask_and_never_read(stream: UnixStream, body: RequestBody, fd: &File) -> trawl_control::Connection {
    stream.set_nonblocking(true).unwrap();
    let stream = tokio::net::UnixStream::from_std(stream).unwrap();
    let connection = trawl_control::Connection::of_client(stream);
    let request = Request { version: 1, body };
    let fd = std::os::fd::AsFd::as_fd(fd);
    connection.send_with_fd(&request, fd).await.unwrap();
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_oversized_and_foreign_messages_are_answered_and_nothing_else_suffers() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, node(NEAR)).await;
    let running = start(&client, capture("t", "", 1_500), world.path("f"))
        .await
        .unwrap();
    let codes = [
        (answer(&world, &framed(b"{")), ErrorCode::MalformedRequest),
        (
            answer(&world, &framed(b"\xff\xfe\x00")),
            ErrorCode::MalformedRequest,
        ),
        (answer(&world, &[0; 4]), ErrorCode::MalformedRequest),
        (
            answer(&world, &u32::MAX.to_be_bytes()),
            ErrorCode::MessageTooLarge,
        ),
        (
            answer(&world, &framed(br#"{"version":2,"body":{"type":"Status"}}"#)),
            ErrorCode::UnsupportedVersion,
        ),
        (
            answer(&world, &framed(br#"{"version":1,"body":{"type":"Reboot"}}"#)),
            ErrorCode::MalformedRequest,
        ),
        (
            answer(
                &world,
                &framed(br#"{"version":1,"body":{"type":"Status"},"x":1}"#),
            ),
            ErrorCode::MalformedRequest,
        ),
        (
            answer(
                &world,
                &framed(
                    &trawl_control::codec::encode(&Request {
                        version: 1,
                        body: RequestBody::Capture(capture("t", "", 500)),
                    })
                    .unwrap()[4..],
                ),
            ),
            ErrorCode::MissingDescriptor,
        ),
    ];
    for (refused, code) in codes {
        assert_eq!(refused.code, code, "{}", refused.message);
        assert!(!refused.message.is_empty());
    }
    let slow: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = UnixStream::connect(world.socket()).unwrap();
            stream.write_all(&[0, 0]).unwrap();
            stream
        })
        .collect();
    let began = std::time::Instant::now();
    client.status().await.unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "slow peers held up {:?}",
        began.elapsed()
    );
    world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
    assert_eq!(running.ended().await.1.len(), 1);
    let mut last = slow.into_iter().next().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut reply = Vec::new();
    last.read_to_end(&mut reply).unwrap();
    assert!(!reply.is_empty(), "a slow peer hears why it is dropped");
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_and_outputs_that_cannot_be_are_refused_by_field() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, node(NEAR)).await;
    let wrong = [
        (
            "durationMs",
            Capture {
                duration_ms: 0,
                ..capture("t", "", 1)
            },
        ),
        (
            "maxSizeBytes",
            Capture {
                max_size_bytes: 1000,
                ..capture("t", "", 1)
            },
        ),
        (
            "snaplen",
            Capture {
                snaplen: 10,
                ..capture("t", "", 1)
            },
        ),
    ];
    for (i, (field, request)) in wrong.into_iter().enumerate() {
        let refused = start(&client, request, world.path(&format!("b{i}")))
            .await
            .map(|_| ())
            .unwrap_err();
        assert_eq!(
            (refused.code, refused.field.as_deref()),
            (ErrorCode::InvalidBounds, Some(field))
        );
    }
    std::fs::write(world.path("full"), "old").unwrap();
    let outputs = [
        File::open(world.path("full")).unwrap(),
        File::options().write(true).open(world.path("full")).unwrap(),
        File::options().write(true).open("/dev/null").unwrap(),
    ];
    for output in outputs {
        let (mut replies, _cancel) = client.capture(capture("t", "", 500), &output).await.unwrap();
        let refused = refusal(replies.next().await);
        assert_eq!(refused.code, ErrorCode::OutputFailed, "{}", refused.message);
    }
    assert_eq!(std::fs::read(world.path("full")).unwrap(), b"old");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_the_group_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let _daemon = world.daemon();
    std::fs::set_permissions(world.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = world.path("trawl-captured");
    std::fs::copy(PROGRAM, &program).unwrap();
    let ask = || {
        let mut command = std::process::Command::new("setpriv");
        command
            .args(["--reuid", "4242", "--regid", "4242", "--clear-groups"])
            .arg(&program);
        command
            .arg("status")
            .arg("--socket")
            .arg(world.socket())
            .output()
            .unwrap()
    };
    let output = ask();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("has the socket's group"));
    // Even a socket that somebody opened to all asks who is there.
    std::fs::set_permissions(world.socket(), std::fs::Permissions::from_mode(0o666)).unwrap();
    let output = ask();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("user 4242") && said.contains("may not use this socket"),
        "{said}"
    );
}
