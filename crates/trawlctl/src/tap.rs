//! `trawlctl tap`: where captures can be made.

use k8s_openapi::jiff::Timestamp;
use kube::{Api, ResourceExt, api::ListParams};
use trawl_api::NetworkTap;

use crate::{
    Failure,
    cli::{ListArgs, ListFormat, Place},
    connect::{api_failure, connect},
    output,
    table::{age, or_dash, render},
};

/// Lists the taps of the namespace by name.
pub async fn list(place: &Place, args: ListArgs) -> Result<(), Failure> {
    let (client, namespace) = connect(place).await?;
    let taps: Api<NetworkTap> = Api::namespaced(client, &namespace);
    let found = taps.list(&ListParams::default()).await;
    let found = found
        .map_err(|error| api_failure("cannot list taps", &namespace, &error))?
        .items;
    match args.output {
        Some(format @ (ListFormat::Json | ListFormat::Yaml | ListFormat::Name)) => {
            let names: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
            output::list(&found, format, &names, "networktap.trawl.cloud")
        }
        _ if found.is_empty() => {
            eprintln!("No taps in namespace {namespace}.");
            Ok(())
        }
        format => output::line(&table(&found, format == Some(ListFormat::Wide), Timestamp::now())),
    }
}

fn table(taps: &[NetworkTap], wide: bool, now: Timestamp) -> String {
    let mut head = vec![
        "NAME",
        "TYPE",
        "PHASE",
        "TARGETS",
        "MATCHED",
        "LAST PACKET",
        "AGE",
    ];
    if wide {
        head.extend(["INTERFACE", "NODES"]);
    }
    let rows: Vec<Vec<String>> = taps.iter().map(|tap| row(tap, wide, now)).collect();
    render(&head, &rows)
}

fn row(tap: &NetworkTap, wide: bool, now: Timestamp) -> Vec<String> {
    let status = tap.status.clone().unwrap_or_default();
    let ago = |then: Timestamp| age(then, now);
    let mut row = vec![
        tap.name_any(),
        format!("{:?}", tap.spec.type_),
        or_dash(status.phase.map(|phase| format!("{phase:?}"))),
        or_dash(status.ready_targets),
        or_dash(status.matched_targets),
        or_dash(status.last_packet_time.map(|time| ago(time.0))),
        or_dash(tap.creation_timestamp().map(|time| ago(time.0))),
    ];
    if wide {
        let source = tap
            .spec
            .mirror_interface
            .as_ref()
            .or(tap.spec.node_interface.as_ref());
        let nodes: Vec<&str> = status
            .targets
            .iter()
            .map(|target| target.node_name.as_str())
            .collect();
        row.push(or_dash(source.map(|source| source.interface.clone())));
        row.push(or_dash((!nodes.is_empty()).then(|| nodes.join(","))));
    }
    row
}
