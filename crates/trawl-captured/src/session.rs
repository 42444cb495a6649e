//! One connection: one request, its replies, and the end that belongs to it.

use std::sync::Arc;

use tokio::time::timeout;
use trawl_control::server::{REPLY_DEADLINE, REQUEST_DEADLINE, receive_request};
use trawl_control::{Attach, Connection, ErrorReply, PeerFd, Reply, RequestBody};

use crate::registry::Registry;
use crate::{capture, feed};

/// Serves one peer to the end.
pub(crate) async fn serve(mut connection: Connection, registry: Arc<Registry>) {
    let result = match receive_request(&mut connection, REQUEST_DEADLINE).await {
        Ok(None) => return,
        Ok(Some((request, fd))) => answer(&mut connection, &registry, request, fd).await,
        Err(refused) => Err(refused),
    };
    if let Err(refused) = result {
        tracing::info!(code = ?refused.code, field = refused.field, message = refused.message, "refused");
        say(&connection, &Reply::Error(refused)).await;
    }
}

async fn answer(
    connection: &mut Connection,
    registry: &Registry,
    request: RequestBody,
    fd: Option<PeerFd>,
) -> Result<(), ErrorReply> {
    match request {
        RequestBody::Attach(request) => attach(connection, registry, request).await,
        RequestBody::Detach(request) => {
            registry.detach(&request.tap).await;
            say(connection, &Reply::Detached).await;
            Ok(())
        }
        RequestBody::Status => {
            say(connection, &Reply::Status(registry.status())).await;
            Ok(())
        }
        RequestBody::Capture(request) => capture::serve(connection, registry, request, fd).await,
        RequestBody::Feed(request) => feed::serve(connection, registry, request, fd).await,
    }
}

/// False when the peer did not take the reply.
pub(crate) async fn say(connection: &Connection, reply: &Reply) -> bool {
    match timeout(REPLY_DEADLINE, connection.send(reply)).await {
        Ok(Ok(())) => true,
        Ok(Err(e)) => {
            tracing::info!(error = %e, "a reply could not be sent");
            false
        }
        Err(_) => {
            tracing::info!("a peer took no reply in time");
            false
        }
    }
}

async fn attach(connection: &mut Connection, registry: &Registry, request: Attach) -> Result<(), ErrorReply> {
    let attachment = registry.attach(request).await?;
    let mut closed = attachment.lease.subscribe();
    if say(connection, &Reply::Attached(attachment.status())).await {
        // Whatever the peer does now, silence included, the connection only stands for its interest.
        tokio::select! {
            _ = connection.receive_body() => {}
            _ = closed.wait_for(|closed| *closed) => {}
        }
    }
    registry.release(&attachment);
    Ok(())
}
