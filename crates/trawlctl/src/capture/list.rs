use k8s_openapi::jiff::Timestamp;
use kube::{Api, ResourceExt, api::ListParams};
use trawl_api::{CaptureJob, RequestType};

use super::NAME_PREFIX;
use crate::{
    Failure,
    cli::{ListArgs, ListFormat, Place},
    connect::{api_failure, connect},
    output,
    table::{age, bytes, or_dash, render, until},
};

/// Lists the captures of the namespace, oldest first.
pub async fn list(place: &Place, args: ListArgs) -> Result<(), Failure> {
    let (client, namespace) = connect(place).await?;
    let jobs: Api<CaptureJob> = Api::namespaced(client, &namespace);
    let found = jobs.list(&ListParams::default()).await;
    let mut found = found
        .map_err(|error| api_failure("cannot list captures", &namespace, &error))?
        .items;
    found.sort_by_key(|job| (job.creation_timestamp().map(|t| t.0), job.name_any()));
    match args.output {
        Some(format @ (ListFormat::Json | ListFormat::Yaml | ListFormat::Name)) => {
            let names: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
            output::list(&found, format, &names, NAME_PREFIX)
        }
        _ if found.is_empty() => {
            eprintln!("No captures in namespace {namespace}.");
            Ok(())
        }
        format => output::line(&table(&found, format == Some(ListFormat::Wide), Timestamp::now())),
    }
}

fn table(jobs: &[CaptureJob], wide: bool, now: Timestamp) -> String {
    let mut head = vec!["NAME", "TYPE", "TAP", "NODE", "PHASE", "SIZE", "EXPIRES", "AGE"];
    if wide {
        head.extend(["PACKETS", "STOP", "REASON", "SHA256"]);
    }
    let rows: Vec<Vec<String>> = jobs.iter().map(|job| row(job, wide, now)).collect();
    render(&head, &rows)
}

fn row(job: &CaptureJob, wide: bool, now: Timestamp) -> Vec<String> {
    let status = job.status.clone().unwrap_or_default();
    let kind = match job.spec.request_type {
        RequestType::Manual => "Manual",
        RequestType::Policy => "Policy",
    };
    let mut row = vec![
        job.name_any(),
        kind.into(),
        job.spec.tap_ref.name.clone(),
        or_dash(job.spec.target_node.clone()),
        or_dash(status.phase.map(|phase| format!("{phase:?}"))),
        or_dash(
            status
                .size_bytes
                .and_then(|size| u64::try_from(size).ok())
                .map(bytes),
        ),
        or_dash(status.retention_deadline.map(|deadline| until(deadline.0, now))),
        or_dash(job.creation_timestamp().map(|created| age(created.0, now))),
    ];
    if wide {
        let stop = status
            .runner_result
            .as_ref()
            .and_then(|result| result.stop_reason);
        row.push(or_dash(status.packet_count));
        row.push(or_dash(stop.map(|reason| format!("{reason:?}"))));
        row.push(or_dash(
            status.failure.map(|failure| format!("{:?}", failure.reason)),
        ));
        row.push(or_dash(status.sha256));
    }
    row
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_that_nobody_reported_on_shows_dashes_and_never_zeros() {
        let job: CaptureJob = serde_json::from_value(json!({
            "apiVersion": "trawl.cloud/v1alpha1", "kind": "CaptureJob",
            "metadata": {"name": "j", "creationTimestamp": "2026-03-01T12:00:00Z"},
            "spec": {"tapRef": {"name": "t"}, "targetNode": "n1", "duration": "10s", "maxSize": "1Mi"},
        }))
        .expect("job");
        let now = "2026-03-01T12:00:30Z".parse().expect("time");
        assert_eq!(
            row(&job, false, now),
            ["j", "Manual", "t", "n1", "-", "-", "-", "30s"]
        );
        assert_eq!(row(&job, true, now)[8..], ["-", "-", "-", "-"]);
    }
}
