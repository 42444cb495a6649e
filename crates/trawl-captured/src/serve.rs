//! The daemon: listens, serves each peer in a task of its own, watches links, stops in order.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use trawl_control::server::{Bound, Listener, REPLY_DEADLINE};
use trawl_control::{Connection, ErrorCode, ErrorReply, Reply};
use trawl_dataplane::feed;

use crate::cli::ServeArgs;
use crate::registry::Registry;
use crate::{capture, open, privileges, session};

const MAX_CONNECTIONS: usize = 256;
const LOOK_AT_LINKS: Duration = Duration::from_secs(1);
const LOOK_AT_NICS: Duration = Duration::from_secs(10);
/// How long the peers of captures may take to hear the end when the daemon stops.
const GOODBYE: Duration = Duration::from_secs(10);

/// What comes before the first thread: the socket, which may need a capability that is given up then.
pub(crate) fn prepare(args: &ServeArgs) -> anyhow::Result<Bound> {
    log_to_stderr();
    let bound = Bound::new(&args.socket, Some(args.socket_group))?;
    privileges::keep_needed()?;
    for capability in privileges::missing() {
        tracing::warn!(
            capability,
            "this process lacks a capability that it needs to open interfaces"
        );
    }
    Ok(bound)
}

pub(crate) async fn run(args: ServeArgs, bound: Bound) -> anyhow::Result<ExitCode> {
    let listener = bound.listen().context("cannot serve the socket")?;
    clean_leftovers().await;
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let mut hangup = signal(SignalKind::hangup()).context("cannot wait for SIGHUP")?;
    let registry = Arc::new(Registry::new(open::ring_options(&args.ring)));
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let supervisor = tokio::spawn(supervise(Arc::clone(&registry)));
    let nics = tokio::spawn(look_at_nics(Arc::clone(&registry)));
    tracing::info!(socket = %args.socket.display(), group = args.socket_group, version = env!("CARGO_PKG_VERSION"), "listening");
    tokio::select! {
        () = accept(&listener, &registry, &places) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hangup.recv() => {}
    }
    tracing::info!("stopping: captures are finished, interfaces closed");
    drop(listener);
    supervisor.abort();
    nics.abort();
    registry.end_captures("trawl-captured is stopping").await;
    // Sessions of captures end by themselves now; those of attachments end when their interface closes.
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < GOODBYE && capture::active() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    registry.close_all().await;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

async fn accept(listener: &Listener, registry: &Arc<Registry>, places: &Arc<Semaphore>) {
    loop {
        let (connection, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(e) => {
                tracing::warn!(error = %e, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if let Err(refusal) = listener.authorize(peer) {
            tracing::warn!(
                uid = peer.uid,
                gid = peer.gid,
                "a peer without the right to ask was refused"
            );
            tokio::spawn(refuse(connection, refusal));
            continue;
        }
        let Ok(place) = Arc::clone(places).try_acquire_owned() else {
            let message =
                format!("{MAX_CONNECTIONS} connections are open, which is the limit; try again later");
            tokio::spawn(refuse(
                connection,
                ErrorReply {
                    code: ErrorCode::TooManyCaptures,
                    field: None,
                    message,
                },
            ));
            continue;
        };
        let registry = Arc::clone(registry);
        tokio::spawn(async move {
            session::serve(connection, registry).await;
            drop(place);
        });
    }
}

async fn refuse(connection: Connection, refusal: ErrorReply) {
    let _ = tokio::time::timeout(REPLY_DEADLINE, connection.send(&Reply::Error(refusal))).await;
}

async fn supervise(registry: Arc<Registry>) {
    let mut ticks = tokio::time::interval(LOOK_AT_LINKS);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        registry.supervise().await;
    }
}

async fn look_at_nics(registry: Arc<Registry>) {
    let mut ticks = tokio::time::interval(LOOK_AT_NICS);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        registry.look_at_nics().await;
    }
}

/// A daemon that was killed leaves the feeds' interfaces behind; its XDP programs went with it.
async fn clean_leftovers() {
    match tokio::task::spawn_blocking(feed::clean_leftovers).await {
        Ok(Ok(removed)) if removed.is_empty() => {}
        Ok(Ok(removed)) => tracing::info!(
            ?removed,
            "interfaces of feeds that an earlier daemon left were removed"
        ),
        Ok(Err(e)) => {
            tracing::warn!(error = %e, "what an earlier daemon left of its feeds cannot be removed")
        }
        Err(e) => tracing::warn!(error = %e, "looking for leftovers failed unexpectedly"),
    }
}

fn log_to_stderr() {
    let level = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    let _ = tracing_subscriber::fmt()
        .json()
        // Said on standard error as well, where a reader that went away would end the thread that says it.
        .log_internal_errors(false)
        .with_env_filter(level)
        .with_writer(std::io::stderr)
        .try_init();
}
