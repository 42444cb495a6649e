//! An analyzer's feed: an interface in its namespace, for as long as it stays connected.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use trawl_control::limits::refusal;
use trawl_control::{Connection, ErrorCode, ErrorReply, Feed, PeerFd, Reply};
use trawl_dataplane::feed::{FeedError, Veth};
use trawl_dataplane::ring::device;
use trawl_dataplane::{EngineError, FeedHandle, InterfaceName};

use crate::attachment::Attachment;
use crate::places::{Place, Places};
use crate::registry::Registry;
use crate::session::say;

/// Feeds at a time, of all taps.
const MAX_FEEDS: usize = 64;
const LOOK: Duration = Duration::from_secs(1);

static FEEDS: Places = Places::new(MAX_FEEDS);

fn place() -> Result<Place, ErrorReply> {
    let full = || format!("{MAX_FEEDS} feeds are open, which is the limit; end one first");
    FEEDS
        .take()
        .ok_or_else(|| refusal(ErrorCode::FeedFailed, "tap", full()))
}

/// Serves a feed request until the peer leaves or the feed cannot go on.
pub(crate) async fn serve(
    connection: &mut Connection,
    registry: &Registry,
    request: Feed,
    fd: Option<PeerFd>,
) -> Result<(), ErrorReply> {
    let name = request
        .interface
        .parse::<InterfaceName>()
        .map_err(|e| refusal(ErrorCode::FeedFailed, "interface", format!("interface is {e}")))?;
    let Some(namespace) = fd else {
        return Err(refusal(
            ErrorCode::MissingDescriptor,
            "namespace",
            "send the network namespace as one descriptor",
        ));
    };
    let attachment = registry.usable(&request.tap)?;
    let _place = place()?;
    let (feed, end) = start(&attachment, name.clone(), namespace).await?;
    tracing::info!(tap = %request.tap.name, feed = %name, "feed begins");
    let mut why = Ok(());
    if say(connection, &Reply::Fed(feed.status())).await {
        why = stay(connection, registry, &attachment, (&feed, &end)).await;
    }
    // Waits for the sender's thread and removes the interface.
    let _ = tokio::task::spawn_blocking(move || drop(feed)).await;
    tracing::info!(tap = %request.tap.name, feed = %name, "feed ended");
    why
}

async fn start(
    attachment: &Arc<Attachment>,
    name: InterfaceName,
    namespace: PeerFd,
) -> Result<(FeedHandle, InterfaceName), ErrorReply> {
    let attachment = Arc::clone(attachment);
    let started = tokio::task::spawn_blocking(move || {
        let veth = Veth::create(&name, namespace.take()).map_err(|e| feed_error(&e))?;
        let end = veth.end().clone();
        let feed = attachment.engine.feed(name.to_string(), Box::new(veth));
        feed.map(|feed| (feed, end)).map_err(|e| engine_error(&e))
    });
    started.await.unwrap_or_else(|_| {
        Err(refusal(
            ErrorCode::Internal,
            "tap",
            "starting the feed failed unexpectedly",
        ))
    })
}

fn feed_error(error: &FeedError) -> ErrorReply {
    refusal(ErrorCode::FeedFailed, "interface", error.to_string())
}

fn engine_error(error: &EngineError) -> ErrorReply {
    refusal(ErrorCode::FeedFailed, "tap", error.to_string())
}

/// Returns when the peer left, or with the reason why no more frames can come.
async fn stay(
    connection: &mut Connection,
    registry: &Registry,
    attachment: &Arc<Attachment>,
    (feed, end): (&FeedHandle, &InterfaceName),
) -> Result<(), ErrorReply> {
    let mut closed = attachment.lease.subscribe();
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let over = |message: &str| Err(refusal(ErrorCode::FeedFailed, "tap", message));
    loop {
        tokio::select! {
            _ = connection.receive_body() => return Ok(()),
            _ = closed.wait_for(|closed| *closed) => {
                return over("the interface of the tap was detached; attach it and ask for the feed again");
            }
            _ = looks.tick() => {
                let same = registry.find(&attachment.tap).is_some_and(|now| Arc::ptr_eq(&now, attachment));
                if !same || feed.has_ended() {
                    return over("the interface of the tap was opened anew; ask for the feed again");
                }
                if device::link(end).is_ok_and(|link| link.is_none()) {
                    return over("the analyzer's interface was deleted, or its network namespace ended; ask for the feed again");
                }
            }
        }
    }
}
