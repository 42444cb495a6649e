use trawl_api::{CaptureJob, CaptureJobStatus};

use super::get;
use crate::{
    Failure,
    cli::{NameArgs, Place},
    connect::connect,
    output,
    table::or_dash,
};

/// Shows one capture in full.
pub async fn describe(place: &Place, args: NameArgs) -> Result<(), Failure> {
    let (client, namespace) = connect(place).await?;
    let job = get(&client, &namespace, &args.name).await?;
    output::line(&text(&namespace, &args.name, &job))
}

fn text(namespace: &str, name: &str, job: &CaptureJob) -> String {
    let spec = &job.spec;
    let status = job.status.clone().unwrap_or_default();
    let mut lines = vec![
        field("Name", name),
        field("Namespace", namespace),
        field("Phase", or_dash(status.phase.map(|phase| format!("{phase:?}")))),
        "Requested:".into(),
        field("  Type", format!("{:?}", spec.request_type)),
        field("  Tap", &spec.tap_ref.name),
        field("  Node", or_dash(spec.target_node.clone())),
        field(
            "  Filter",
            spec.filter.clone().unwrap_or_else(|| "none: everything".into()),
        ),
        field("  Duration", &spec.duration),
        field("  Max size", &spec.max_size),
        field(
            "  Snaplen",
            if spec.snaplen == 0 {
                "whole packets".into()
            } else {
                spec.snaplen.to_string()
            },
        ),
        field("  Pre-trigger", or_dash(spec.pre_trigger.clone())),
        field("  Retention", or_dash(spec.retention.clone())),
    ];
    lines.extend(result(&status));
    if !status.conditions.is_empty() {
        lines.push("Conditions:".into());
        for c in &status.conditions {
            let stale = c.observed_generation != job.metadata.generation;
            let stale = if stale { " (of an older generation)" } else { "" };
            lines.push(format!(
                "  {:<20} {:<8} {:<20} {}{stale}",
                c.type_, c.status, c.reason, c.message
            ));
        }
    }
    lines.join("\n")
}

fn result(status: &CaptureJobStatus) -> Vec<String> {
    let time = |time: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        or_dash(time.as_ref().map(|time| time.0.to_string()))
    };
    let mut lines = vec![
        "Result:".into(),
        field("  Interface", or_dash(status.resolved_interface.clone())),
        field("  Requested at", time(&status.requested_at)),
        field("  Started at", time(&status.started_at)),
        field("  Ended at", time(&status.capture_ended_at)),
        field("  Completed at", time(&status.completed_at)),
        field("  Kept until", time(&status.retention_deadline)),
        field("  Packets", or_dash(status.packet_count)),
        field("  Size", or_dash(status.size_bytes)),
        field("  SHA-256", or_dash(status.sha256.clone())),
    ];
    if let Some(reason) = status
        .runner_result
        .as_ref()
        .and_then(|result| result.stop_reason)
    {
        lines.push(field("  Stopped by", format!("{reason:?}")));
    }
    if let Some(failure) = &status.failure {
        lines.push(field(
            "  Failure",
            format!(
                "{:?} while {:?}: {}",
                failure.reason, failure.failed_phase, failure.message
            ),
        ));
    }
    lines
}

fn field(name: &str, value: impl std::fmt::Display) -> String {
    format!("{:<16} {value}", format!("{name}:"))
}
