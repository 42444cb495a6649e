use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use trawl_api::{CaptureJob, CaptureJobSpec, LocalRef, NetworkTap, RequestType};

use super::{NAME_PREFIX, watch::follow};
use crate::{
    Failure,
    cli::{CreateArgs, ObjectFormat, Place},
    connect::{api_failure, connect},
    output,
};

/// Asks for a capture, and follows it with `--wait`.
pub async fn create(place: &Place, args: CreateArgs) -> Result<(), Failure> {
    if let Some(text) = &args.filter {
        try_filter(text)?;
    }
    let (client, namespace) = connect(place).await?;
    let node = match args.node.clone() {
        Some(node) => node,
        None => only_node(&client, &namespace, &args.tap).await?,
    };
    let (wait, format) = (args.wait, args.output);
    let jobs: Api<CaptureJob> = Api::namespaced(client.clone(), &namespace);
    let job = jobs.create(&PostParams::default(), &wanted(args, node)).await;
    let job = job.map_err(|error| api_failure("no capture was created", &namespace, &error))?;
    let name = job.name_any();
    match format {
        None => output::line(&format!("{NAME_PREFIX}/{name} created"))?,
        Some(ObjectFormat::Name) => output::line(&format!("{NAME_PREFIX}/{name}"))?,
        Some(ObjectFormat::Json) => output::json(&job)?,
        Some(ObjectFormat::Yaml) => output::yaml(&job)?,
    }
    if !wait {
        return Ok(());
    }
    if format.is_some() {
        // Standard output belongs to whoever reads the object.
        return follow(&client, &namespace, &name, |line| {
            eprintln!("{line}");
            Ok(())
        })
        .await;
    }
    follow(&client, &namespace, &name, output::line).await
}

/// Compiles the filter here, so that a mistake in it costs no round trip and is explained at once.
fn try_filter(text: &str) -> Result<(), Failure> {
    let compiled = trawl_filter::compile_with(text, &trawl_filter::Options::default());
    let compiled = compiled.map_err(|error| {
        Failure::usage(format!("--filter: {error}"))
            .hint("try it without a cluster: trawlctl filter explain 'EXPRESSION'")
    })?;
    for warning in compiled.warnings {
        eprintln!("warning: --filter: {warning}");
    }
    Ok(())
}

fn wanted(args: CreateArgs, node: String) -> CaptureJob {
    let metadata = match args.name {
        Some(name) => ObjectMeta {
            name: Some(name),
            ..ObjectMeta::default()
        },
        None => ObjectMeta {
            generate_name: Some("manual-".into()),
            ..ObjectMeta::default()
        },
    };
    let spec = CaptureJobSpec {
        request_type: RequestType::Manual,
        tap_ref: LocalRef::new(args.tap),
        target_node: Some(node),
        filter: args.filter,
        duration: args.duration,
        snaplen: args.snaplen,
        max_size: args.max_size,
        pre_trigger: args.pre_trigger,
        retention: args.retention,
        policy_ref: None,
        trigger: None,
        deduplication_key: None,
    };
    CaptureJob {
        metadata,
        spec,
        status: None,
    }
}

/// The node of a tap that reports exactly one.
async fn only_node(client: &Client, namespace: &str, tap: &str) -> Result<String, Failure> {
    let taps: Api<NetworkTap> = Api::namespaced(client.clone(), namespace);
    let found = taps
        .get_opt(tap)
        .await
        .map_err(|error| api_failure("cannot read the tap", namespace, &error))?;
    let found = found.ok_or_else(|| {
        Failure::new(format!(
            "--tap: there is no tap \"{tap}\" in namespace {namespace}"
        ))
        .hint(format!("see what there is: trawlctl -n {namespace} tap list"))
    })?;
    let targets = found.status.map(|status| status.targets).unwrap_or_default();
    match targets.as_slice() {
        [target] => Ok(target.node_name.clone()),
        [] => Err(
            Failure::usage(format!("--node is needed: tap \"{tap}\" reports no node yet"))
                .hint("give --node NAME, or wait until trawlctl tap list shows the tap with a target"),
        ),
        many => {
            let nodes: Vec<&str> = many.iter().map(|target| target.node_name.as_str()).collect();
            Err(Failure::usage(format!(
                "--node is needed: tap \"{tap}\" has {} nodes",
                many.len()
            ))
            .hint(format!("choose one of: {}", nodes.join(", "))))
        }
    }
}
