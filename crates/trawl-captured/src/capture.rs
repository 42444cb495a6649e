//! A capture: its checks, its replies, its end.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FileType, OFlags, SeekFrom};
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use trawl_control::limits::{self, refusal};
use trawl_control::{
    Capture, Connection, Ended, ErrorCode, ErrorReply, FilterReading, PeerFd, Progress, Reply, Started,
    StopReason,
};
use trawl_dataplane::ring::device;
use trawl_dataplane::{CaptureSpec, Running, clock};

use crate::attachment::Attachment;
use crate::open::{self, APPLICATION};
use crate::places::{Place, Places};
use crate::registry::Registry;
use crate::session::say;

/// Captures at a time, of all taps.
const MAX_CAPTURES: usize = 64;
/// How long the last bytes may take to reach the file.
const FINISH_DEADLINE: Duration = Duration::from_secs(60);

static CAPTURES: Places = Places::new(MAX_CAPTURES);

/// Captures whose peers have not heard the end yet, or whose files are not finished.
pub(crate) fn active() -> usize {
    CAPTURES.taken()
}

fn place() -> Result<Place, ErrorReply> {
    CAPTURES.take().ok_or_else(|| ErrorReply {
        code: ErrorCode::TooManyCaptures,
        field: None,
        message: format!(
            "{MAX_CAPTURES} captures are under way, which is the limit; try again when one has ended"
        ),
    })
}

/// Serves a capture request to its end.
pub(crate) async fn serve(
    connection: &mut Connection,
    registry: &Registry,
    request: Capture,
    fd: Option<PeerFd>,
) -> Result<(), ErrorReply> {
    limits::check(&request)?;
    limits::check_trigger(&request, clock::realtime_ns())?;
    let output = examine(fd).await?;
    let attachment = registry.usable(&request.tap)?;
    // Until the peer has heard the end, and until the writer has come to it: an output that hangs keeps its place.
    let place = Arc::new(place()?);
    let (spec, filter) = specify(&attachment, &request).await?;
    if !say(connection, &Reply::FilterAccepted).await {
        return Ok(());
    }
    let (on_end, ended) = oneshot::channel();
    let (engine_of, kept) = (Arc::clone(&attachment), Arc::clone(&place));
    let started = tokio::task::spawn_blocking(move || {
        let over = move |ended| {
            drop(kept);
            drop(on_end.send(ended));
        };
        engine_of
            .engine
            .capture(spec, File::from(output.take()), Box::new(over))
    });
    let running = match started.await {
        Ok(Ok(running)) => running,
        Ok(Err(e)) => return Err(open::engine_error(&e)),
        Err(_) => {
            return Err(refusal(
                ErrorCode::Internal,
                "tap",
                "starting the capture failed unexpectedly",
            ));
        }
    };
    let start = Reply::Started(Started {
        interface: attachment.name.to_string(),
        mode: attachment.engine.mode(),
        started_at_ns: running.started_at_ns,
        requested_from_ns: running.requested_from_ns,
        covered_from_ns: running.covered_from_ns,
        filter,
    });
    let listening = say(connection, &start).await;
    let ended = follow(connection, &attachment, &running, ended, listening).await?;
    tracing::info!(
        tap = %request.tap.name, reason = ?ended.stop_reason, packets = ended.packets, bytes = ended.bytes,
        lost_writer = ended.balance.lost_writer, lost_history = ended.balance.lost_history,
        lost_ring = ended.balance.lost_ring, message = ended.message, "capture ended"
    );
    say(connection, &Reply::Ended(ended)).await;
    Ok(())
}

/// Reports progress until the file is finished; a peer that closes its side cancels.
async fn follow(
    connection: &mut Connection,
    attachment: &Attachment,
    running: &Running,
    mut ended: oneshot::Receiver<Ended>,
    listening: bool,
) -> Result<Ended, ErrorReply> {
    let lost = |_| {
        refusal(
            ErrorCode::Internal,
            "tap",
            "the writer of the capture ended unexpectedly",
        )
    };
    let began = Instant::now();
    let mut ticks = interval_at(began + Duration::from_secs(1), Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    if listening {
        loop {
            tokio::select! {
                result = &mut ended => return result.map_err(lost),
                _ = connection.receive_body() => break,
                _ = ticks.tick() => {
                    let (packets, bytes) = running.written();
                    let elapsed_ms = began.elapsed().as_millis() as u64;
                    if !say(connection, &Reply::Progress(Progress { packets, bytes, elapsed_ms })).await {
                        break;
                    }
                }
            }
        }
    }
    attachment.engine.cancel(running.id, StopReason::Cancelled, None);
    match timeout(FINISH_DEADLINE, ended).await {
        Ok(result) => result.map_err(lost),
        Err(_) => Err(refusal(
            ErrorCode::OutputFailed,
            "output",
            "the output takes no more bytes; its file is not finished",
        )),
    }
}

/// Off the async workers: a file system that does not answer (a dead NFS server, say) keeps whoever asks it waiting.
/// No deadline, so that the place of the connection limits how many wait.
async fn examine(fd: Option<PeerFd>) -> Result<PeerFd, ErrorReply> {
    let examined = tokio::task::spawn_blocking(move || output(fd)).await;
    examined.unwrap_or_else(|_| {
        Err(refusal(
            ErrorCode::Internal,
            "output",
            "examining the output failed unexpectedly",
        ))
    })
}

/// The output must be an empty regular file that can be written: anything else could hold the writer for ever.
fn output(fd: Option<PeerFd>) -> Result<PeerFd, ErrorReply> {
    let fail = |message: &str| Err(refusal(ErrorCode::OutputFailed, "output", message));
    let Some(fd) = fd else {
        return Err(refusal(
            ErrorCode::MissingDescriptor,
            "output",
            "send the output file as one descriptor",
        ));
    };
    let Ok(flags) = rustix::fs::fcntl_getfl(&fd) else {
        return fail("the output descriptor cannot be examined");
    };
    if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) || flags.contains(OFlags::PATH) {
        return fail("the output descriptor is not open for writing; open the file for writing");
    }
    match rustix::fs::fstat(&fd) {
        Ok(stat) if !FileType::from_raw_mode(stat.st_mode).is_file() => {
            fail("the output is not a regular file; pass a regular file")
        }
        Ok(stat) if stat.st_size != 0 => fail("the output file is not empty; pass a new file"),
        // The peer shares the descriptor's position, and may have moved it.
        Ok(_) => match rustix::fs::seek(&fd, SeekFrom::Start(0)) {
            Ok(_) => Ok(fd),
            Err(_) => fail("the output cannot be written from its beginning; pass a regular file"),
        },
        Err(_) => fail("the output descriptor cannot be examined"),
    }
}

async fn specify(
    attachment: &Attachment,
    request: &Capture,
) -> Result<(CaptureSpec, Option<FilterReading>), ErrorReply> {
    let filter_text = request.filter.clone().unwrap_or_default();
    let compiled = open::filter(filter_text.clone(), request.filter_tunnels).await;
    let Ok(compiled) = compiled else {
        return Err(refusal(
            ErrorCode::Internal,
            "filter",
            "compiling the filter failed unexpectedly",
        ));
    };
    let compiled = compiled.map_err(|e| open::filter_error(&e))?;
    let spec = CaptureSpec {
        filter: compiled.filter.clone(),
        filter_text,
        duration_ns: request.duration_ms * 1_000_000,
        max_size: request.max_size_bytes,
        snaplen: request.snaplen,
        comments: request.comments.clone(),
        interface: attachment.name.to_string(),
        application: APPLICATION.into(),
        speed: device::speed(&attachment.name),
        // Clocks that differ by less than the allowance must not make a trigger of now one of the future.
        trigger_ns: request.trigger_ns.map(|ns| ns.min(clock::realtime_ns())),
        pre_trigger_ns: request.pre_trigger_ms * 1_000_000,
    };
    Ok((spec, open::reading(compiled)))
}
