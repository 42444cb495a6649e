use futures::StreamExt;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};
use trawl_api::{CaptureJob, CaptureJobStatus, JobPhase};

use crate::{
    Failure,
    cli::Place,
    connect::{causes, connect},
    output,
    table::bytes,
};

/// Follows a capture to its end.
pub async fn watch(place: &Place, name: &str) -> Result<(), Failure> {
    let (client, namespace) = connect(place).await?;
    follow(&client, &namespace, name, output::line).await
}

/// Hands a line to `show` at each change, until a terminal phase decides the result.
pub async fn follow(
    client: &Client,
    namespace: &str,
    name: &str,
    show: impl Fn(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // Asked once by itself, so that a wrong name or a missing right is an answer and not a silent wait.
    super::get(client, namespace, name).await?;
    let jobs: Api<CaptureJob> = Api::namespaced(client.clone(), namespace);
    let mut changes = watcher::watch_object(jobs, name).default_backoff().boxed();
    let mut shown = String::new();
    while let Some(change) = changes.next().await {
        let job = match change {
            Ok(Some(job)) => job,
            Ok(None) => {
                return Err(Failure::new(format!(
                    "capture \"{name}\" was deleted before it ended"
                )));
            }
            Err(error) => {
                eprintln!(
                    "warning: the watch broke and is taken up again: {}",
                    causes(&error)
                );
                continue;
            }
        };
        let status = job.status.unwrap_or_default();
        let line = describe(name, &status);
        if line != shown {
            show(&line)?;
            shown = line;
        }
        if let Some(end) = end(name, &status) {
            return end;
        }
    }
    Err(Failure::new("the watch ended").hint(format!("take it up again: trawlctl capture watch {name}")))
}

/// One line for what is known now.
fn describe(name: &str, status: &CaptureJobStatus) -> String {
    let Some(phase) = status.phase else {
        return format!("{name}: not seen by the operator yet");
    };
    let mut line = format!("{name}: {phase:?}");
    let waiting = status
        .conditions
        .iter()
        .find(|c| c.type_ == "TargetReady" && c.status != "True");
    if let (JobPhase::Pending, Some(condition)) = (phase, waiting) {
        line.push_str(&format!(" ({}: {})", condition.reason, condition.message));
    }
    if let Some(interface) = &status.resolved_interface {
        line.push_str(&format!(", interface {interface}"));
    }
    if let Some(count) = status.packet_count {
        line.push_str(&format!(", {count} packets"));
    }
    if let Some(size) = status.size_bytes.and_then(|size| u64::try_from(size).ok()) {
        line.push_str(&format!(", {}", bytes(size)));
    }
    if let Some(failure) = &status.failure {
        line.push_str(&format!(", {:?}: {}", failure.reason, failure.message));
    }
    line
}

/// The result once the phase is terminal.
fn end(name: &str, status: &CaptureJobStatus) -> Option<Result<(), Failure>> {
    match status.phase? {
        JobPhase::Pending | JobPhase::Capturing | JobPhase::Storing => None,
        JobPhase::Completed => Some(Ok(())),
        JobPhase::Failed => Some(Err(Failure::new(format!("capture \"{name}\" failed"))
            .hint(format!("see why: trawlctl capture describe {name}")))),
        JobPhase::Expired => Some(Err(Failure::new(format!(
            "capture \"{name}\" is Expired: its file is gone"
        )))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_completed_is_a_good_end_and_only_terminal_phases_are_an_end() {
        use JobPhase::*;
        for (phase, good) in [
            (Pending, None),
            (Capturing, None),
            (Storing, None),
            (Completed, Some(true)),
            (Failed, Some(false)),
            (Expired, Some(false)),
        ] {
            let status = CaptureJobStatus {
                phase: Some(phase),
                ..Default::default()
            };
            assert_eq!(end("j", &status).map(|result| result.is_ok()), good, "{phase:?}");
        }
        assert!(end("j", &CaptureJobStatus::default()).is_none());
    }

    #[test]
    fn zero_packets_are_said_and_unknown_packets_are_not() {
        let mut status = CaptureJobStatus {
            phase: Some(JobPhase::Storing),
            ..Default::default()
        };
        assert_eq!(describe("j", &status), "j: Storing");
        status.packet_count = Some(0);
        assert_eq!(describe("j", &status), "j: Storing, 0 packets");
    }
}
