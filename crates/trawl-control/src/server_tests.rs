use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::*;
use crate::client::{Client, ClientError};
use crate::codec;
use crate::limits::refusal;
use crate::messages::*;

fn capture() -> Capture {
    Capture {
        tap: TapIdentity {
            namespace: "n".into(),
            name: "t".into(),
            uid: "u".into(),
        },
        filter: None,
        filter_tunnels: false,
        duration_ms: 1000,
        max_size_bytes: 1 << 20,
        snaplen: 0,
        trigger_ns: None,
        pre_trigger_ms: 0,
        comments: vec![],
    }
}

fn ended() -> Ended {
    Ended {
        stop_reason: StopReason::Cancelled,
        started_at_ns: 1,
        ended_at_ns: 2,
        packets: 0,
        bytes: 0,
        sha256: String::new(),
        first_packet_ns: None,
        last_packet_ns: None,
        truncated_packets: 0,
        balance: LossBalance::default(),
        clock_source: "kernel-realtime".into(),
        message: None,
    }
}

fn socket() -> (tempfile::TempDir, std::path::PathBuf, Listener) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("captured.sock");
    let listener = Listener::bind(&path, None).unwrap();
    (dir, path, listener)
}

async fn refusal_of(bytes: &[u8], deadline: Duration) -> ErrorReply {
    let (_dir, path, listener) = socket();
    let mut raw = UnixStream::connect(&path).await.unwrap();
    raw.write_all(bytes).await.unwrap();
    let (mut connection, _) = listener.accept().await.unwrap();
    receive_request(&mut connection, deadline).await.unwrap_err()
}

fn frame(body: &str) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body.as_bytes()].concat()
}

#[tokio::test]
async fn a_capture_carries_its_file_and_a_half_close_still_gets_the_summary() {
    let (_dir, path, listener) = socket();
    let served = tokio::spawn(async move {
        let (mut connection, peer) = listener.accept().await.unwrap();
        listener.authorize(peer).unwrap();
        let (request, fd) = receive_request(&mut connection, REQUEST_DEADLINE)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(request, RequestBody::Capture(capture()));
        std::fs::File::from(fd.unwrap().take())
            .write_all(b"packets")
            .unwrap();
        connection.send(&Reply::FilterAccepted).await.unwrap();
        assert!(connection.receive_body().await.unwrap().is_none());
        connection.send(&Reply::Ended(ended())).await.unwrap();
    });
    let mut file = tempfile::tempfile().unwrap();
    let (mut replies, cancel) = Client::new(path).capture(capture(), &file).await.unwrap();
    assert_eq!(replies.next().await.unwrap(), Some(Reply::FilterAccepted));
    cancel.cancel().unwrap();
    assert_eq!(replies.next().await.unwrap(), Some(Reply::Ended(ended())));
    assert_eq!(replies.next().await.unwrap(), None);
    served.await.unwrap();
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "packets");
}

#[tokio::test]
async fn dropping_the_replies_hangs_up_even_while_a_cancel_handle_lives() {
    let (_dir, path, listener) = socket();
    let file = tempfile::tempfile().unwrap();
    let (replies, cancel) = Client::new(path).capture(capture(), &file).await.unwrap();
    let (mut connection, _) = listener.accept().await.unwrap();
    receive_request(&mut connection, REQUEST_DEADLINE)
        .await
        .unwrap()
        .unwrap();
    drop(replies);
    let end = tokio::time::timeout(Duration::from_secs(2), connection.receive_body())
        .await
        .unwrap();
    assert!(end.unwrap().is_none());
    drop(cancel);
}

#[tokio::test]
async fn a_daemon_that_goes_away_is_an_error_and_not_an_end() {
    let (_dir, path, listener) = socket();
    let file = tempfile::tempfile().unwrap();
    let (mut replies, _cancel) = Client::new(path).capture(capture(), &file).await.unwrap();
    let (mut connection, _) = listener.accept().await.unwrap();
    receive_request(&mut connection, REQUEST_DEADLINE)
        .await
        .unwrap()
        .unwrap();
    drop(connection);
    assert!(matches!(replies.next().await, Err(ClientError::Closed)));
}

#[tokio::test]
async fn a_capture_without_a_descriptor_is_refused() {
    let request = Request {
        version: 1,
        body: RequestBody::Capture(capture()),
    };
    let refusal = refusal_of(&codec::encode(&request).unwrap(), REQUEST_DEADLINE).await;
    assert_eq!(refusal.code, ErrorCode::MissingDescriptor);
}

#[tokio::test]
async fn another_version_is_named_even_when_its_body_is_unknown() {
    let refusal = refusal_of(&frame(r#"{"version":7,"body":{"new":1}}"#), REQUEST_DEADLINE).await;
    assert_eq!(refusal.code, ErrorCode::UnsupportedVersion);
    assert!(refusal.message.contains("version 1"));
}

#[tokio::test]
async fn an_oversized_message_is_refused_with_the_limit() {
    let refusal = refusal_of(&u32::MAX.to_be_bytes(), REQUEST_DEADLINE).await;
    assert_eq!(refusal.code, ErrorCode::MessageTooLarge);
    assert!(refusal.message.contains("65536"));
}

#[tokio::test]
async fn an_unknown_field_is_refused_without_being_echoed() {
    let refusal = refusal_of(
        &frame(r#"{"version":1,"body":{"type":"Status"},"hunter2":1}"#),
        REQUEST_DEADLINE,
    )
    .await;
    assert_eq!(refusal.code, ErrorCode::MalformedRequest);
    assert!(!refusal.message.contains("hunter2"), "{}", refusal.message);
}

#[tokio::test]
async fn a_peer_that_never_finishes_its_request_is_dropped_at_the_deadline() {
    let refusal = refusal_of(&[0, 0], Duration::from_millis(100)).await;
    assert_eq!(refusal.code, ErrorCode::MalformedRequest);
    assert!(refusal.message.contains("0.1 s"));
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let listener = Listener::bind(&path, None).unwrap();
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
    assert_eq!(mode & 0o777, 0o660);
    assert!(matches!(Listener::bind(&path, None), Err(BindError::InUse(_))));
    drop(listener);
    std::fs::write(&path, "text").unwrap();
    assert!(matches!(
        Listener::bind(&path, None),
        Err(BindError::NotASocket(_))
    ));
}

#[tokio::test]
async fn a_stranger_is_refused_and_told_what_to_do() {
    let (_dir, _path, listener) = socket();
    let stranger = Peer {
        uid: 4242,
        gid: 4242,
        pid: None,
    };
    let refusal = listener.authorize(stranger).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::NotAuthorized);
    assert!(refusal.message.contains("group"));
}

#[tokio::test]
async fn a_missing_daemon_is_explained_with_the_path() {
    let error = Client::new("/nonexistent/captured.sock")
        .status()
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("/nonexistent/captured.sock"), "{error}");
}

#[tokio::test]
async fn a_large_reply_arrives_whole() {
    let (_dir, path, listener) = socket();
    let mut raw = UnixStream::connect(&path).await.unwrap();
    let (connection, _) = listener.accept().await.unwrap();
    let message = ErrorReply {
        code: ErrorCode::Internal,
        field: None,
        message: "x".repeat(60_000),
    };
    let sender = tokio::spawn(async move { connection.send(&Reply::Error(message)).await.unwrap() });
    let mut all = Vec::new();
    raw.read_to_end(&mut all).await.unwrap();
    sender.await.unwrap();
    assert!(all.len() > 60_000);
}

fn feed() -> Feed {
    Feed {
        tap: capture().tap,
        interface: "mirror0".into(),
    }
}

fn fed() -> FeedStatus {
    FeedStatus {
        interface: "mirror0".into(),
        packets: 0,
        bytes: 0,
        dropped: 0,
        problem: None,
    }
}

#[tokio::test]
async fn a_feed_carries_its_namespace_lives_as_long_as_its_guard_and_says_why_it_ended() {
    let (_dir, path, listener) = socket();
    let served = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        let asked = receive_request(&mut first, REQUEST_DEADLINE)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(asked.0, RequestBody::Feed(feed()));
        let inode = |fd: std::os::fd::BorrowedFd<'_>| rustix::fs::fstat(fd).unwrap().st_ino;
        let own = std::fs::File::open("/proc/self/ns/net").unwrap();
        assert_eq!(inode(asked.1.unwrap().as_fd()), inode(own.as_fd()));
        first.send(&Reply::Fed(fed())).await.unwrap();
        assert!(
            first.receive_body().await.unwrap().is_none(),
            "the guard was dropped"
        );
        let (mut second, _) = listener.accept().await.unwrap();
        receive_request(&mut second, REQUEST_DEADLINE).await.unwrap();
        second.send(&Reply::Fed(fed())).await.unwrap();
        let gone = refusal(ErrorCode::FeedFailed, "interface", "it is gone");
        second.send(&Reply::Error(gone)).await.unwrap();
    });
    let namespace = std::fs::File::open("/proc/self/ns/net").unwrap();
    let client = Client::new(path);
    let guard = client.feed(feed(), &namespace).await.unwrap();
    assert_eq!(guard.status(), &fed());
    drop(guard);
    let mut guard = client.feed(feed(), &namespace).await.unwrap();
    assert!(matches!(guard.closed().await, ClientError::Refused(r) if r.message == "it is gone"));
    served.await.unwrap();
}

#[tokio::test]
async fn a_feed_without_a_descriptor_is_refused() {
    let request = Request {
        version: 1,
        body: RequestBody::Feed(feed()),
    };
    let refusal = refusal_of(&codec::encode(&request).unwrap(), REQUEST_DEADLINE).await;
    assert_eq!(refusal.code, ErrorCode::MissingDescriptor);
    assert!(refusal.message.contains("namespace"), "{}", refusal.message);
}

#[tokio::test]
async fn a_descriptor_beside_any_other_request_is_refused() {
    let (_dir, path, listener) = socket();
    let file = tempfile::tempfile().unwrap();
    let sender = Connection::new(UnixStream::connect(&path).await.unwrap());
    let request = Request {
        version: 1,
        body: RequestBody::Status,
    };
    let fd = std::os::fd::AsFd::as_fd(&file);
    sender.send_with_fd(&request, fd).await.unwrap();
    let (mut connection, _) = listener.accept().await.unwrap();
    let refusal = receive_request(&mut connection, REQUEST_DEADLINE)
        .await
        .unwrap_err();
    assert_eq!(refusal.code, ErrorCode::MalformedRequest);
    assert!(
        refusal.message.contains("only a capture or a feed"),
        "{}",
        refusal.message
    );
}

#[tokio::test]
async fn a_socket_that_was_bound_and_never_served_goes_with_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let bound = Bound::new(&path, None).unwrap();
    assert!(path.exists());
    drop(bound);
    assert!(!path.exists());
}

/// A descriptor whose close takes this long: what its peer never reads is still to be sent.
fn lingering(time: Duration) -> (std::net::TcpStream, std::net::TcpListener) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream.set_nonblocking(true).unwrap();
    while stream.write(&[0; 65536]).is_ok() {}
    stream.set_nonblocking(false).unwrap();
    rustix::net::sockopt::set_socket_linger(&stream, Some(time)).unwrap();
    (stream, listener)
}

#[tokio::test]
async fn a_descriptor_that_does_not_close_keeps_nobody_waiting() {
    let linger = Duration::from_secs(4);
    for body in [RequestBody::Status, RequestBody::Capture(capture())] {
        let (_dir, path, listener) = socket();
        let (slow, _never_read) = lingering(linger);
        let raw = Connection::of_client(UnixStream::connect(&path).await.unwrap());
        let request = Request { version: 1, body };
        raw.send_with_fd(&request, slow.as_fd()).await.unwrap();
        drop(slow);
        let (mut connection, _) = listener.accept().await.unwrap();
        let began = std::time::Instant::now();
        drop(receive_request(&mut connection, REQUEST_DEADLINE).await);
        drop(connection);
        assert!(began.elapsed() < linger / 2, "{:?}", began.elapsed());
    }
}

#[test]
fn a_lingering_descriptor_does_take_its_time_to_close() {
    let linger = Duration::from_secs(1);
    let (slow, _never_read) = lingering(linger);
    let began = std::time::Instant::now();
    drop(slow);
    assert!(began.elapsed() >= linger, "{:?}", began.elapsed());
}
