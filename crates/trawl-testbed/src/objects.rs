//! Taps and capture jobs as a user makes them, and what is left of them afterwards.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    core::v1::{Pod, ServiceAccount},
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;
use trawl_api::{CaptureJob, JobPhase, NetworkTap};

pub const NAMESPACE: &str = "trawl-system";

/// What a test asks for; everything else is as a user would leave it.
pub struct JobRequest<'a> {
    pub tap: &'a str,
    pub node: &'a str,
    pub filter: Option<&'a str>,
    pub duration: &'a str,
    pub max_size: &'a str,
    pub snaplen: i32,
    pub pre_trigger: Option<&'a str>,
}

pub fn taps(client: &Client) -> Api<NetworkTap> {
    Api::namespaced(client.clone(), NAMESPACE)
}

pub fn jobs(client: &Client) -> Api<CaptureJob> {
    Api::namespaced(client.clone(), NAMESPACE)
}

/// Creates a MirrorInterface tap on `interface` of `node`.
pub async fn create_mirror_tap(
    client: &Client,
    name: &str,
    node: &str,
    interface: &str,
) -> Result<NetworkTap> {
    create_tap(client, name, "MirrorInterface", node, interface).await
}

/// Creates a NodeInterface tap on `interface` of `node`.
pub async fn create_node_tap(client: &Client, name: &str, node: &str, interface: &str) -> Result<NetworkTap> {
    create_tap(client, name, "NodeInterface", node, interface).await
}

async fn create_tap(
    client: &Client,
    name: &str,
    type_: &str,
    node: &str,
    interface: &str,
) -> Result<NetworkTap> {
    let resources = json!({
        "requests": {"cpu": "10m", "memory": "32Mi"},
        "limits": {"cpu": "100m", "memory": "64Mi"},
    });
    let branch = if type_ == "NodeInterface" {
        "nodeInterface"
    } else {
        "mirrorInterface"
    };
    let tap = serde_json::from_value(json!({
        "apiVersion": "trawl.cloud/v1alpha1", "kind": "NetworkTap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "type": type_,
            branch: {
                "interface": interface,
                "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": node}},
            },
            "analyzers": {"suricata": {"enabled": true, "resources": resources}},
        },
    }))?;
    Ok(taps(client).create(&PostParams::default(), &tap).await?)
}

/// Creates a Manual CaptureJob with a generated name.
pub async fn create_job(client: &Client, request: &JobRequest<'_>) -> Result<CaptureJob> {
    let mut spec = json!({
        "requestType": "Manual", "tapRef": {"name": request.tap}, "targetNode": request.node,
        "duration": request.duration, "snaplen": request.snaplen, "maxSize": request.max_size, "retention": "1h",
    });
    if let Some(filter) = request.filter {
        spec["filter"] = filter.into();
    }
    if let Some(before) = request.pre_trigger {
        spec["preTrigger"] = before.into();
    }
    let job = serde_json::from_value(json!({
        "apiVersion": "trawl.cloud/v1alpha1", "kind": "CaptureJob",
        "metadata": {"generateName": "test-", "namespace": NAMESPACE}, "spec": spec,
    }))?;
    Ok(jobs(client).create(&PostParams::default(), &job).await?)
}

/// Polls `read` until `done` or `within` has passed; the last state seen is in the error.
pub async fn wait_until<T: std::fmt::Debug>(
    what: &str,
    within: Duration,
    mut read: impl AsyncFnMut() -> Result<T>,
    done: impl Fn(&T) -> bool,
) -> Result<T> {
    let end = Instant::now() + within;
    loop {
        let last = read().await;
        match last {
            Ok(value) if done(&value) => return Ok(value),
            last if Instant::now() > end => bail!("{what}: not within {within:?}; last seen {last:?}"),
            _ => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Waits for a job to satisfy `done`.
pub async fn wait_for_job(
    client: &Client,
    name: &str,
    what: &str,
    within: Duration,
    done: impl Fn(&CaptureJob) -> bool,
) -> Result<CaptureJob> {
    let api = jobs(client);
    wait_until(what, within, async || Ok(api.get(name).await?), done).await
}

pub fn phase(job: &CaptureJob) -> Option<JobPhase> {
    job.status.as_ref()?.phase
}

pub fn is_terminal(job: &CaptureJob) -> bool {
    matches!(
        phase(job),
        Some(JobPhase::Completed | JobPhase::Failed | JobPhase::Expired)
    )
}

/// Status and reason of a condition.
pub fn condition(job: &CaptureJob, type_: &str) -> Option<(String, String)> {
    let c = job
        .status
        .as_ref()?
        .conditions
        .iter()
        .find(|c| c.type_ == type_)?;
    Some((c.status.clone(), c.reason.clone()))
}

/// A runner may take 120 s to store what it has, and Kubernetes' own garbage collector, which removes the pods, pauses
/// for a while after CRDs were installed.
const GONE_WITHIN: Duration = Duration::from_secs(300);

/// Deletes a job and waits until it is gone, together with all that was made for it.
pub async fn delete_job(client: &Client, job: &CaptureJob) -> Result<()> {
    let api = jobs(client);
    let uid = job.uid().context("job without UID")?;
    api.delete(&job.name_any(), &DeleteParams::default()).await?;
    wait_until(
        "job gone",
        GONE_WITHIN,
        async || Ok(api.get_opt(&job.name_any()).await?.is_some()),
        |there| !there,
    )
    .await?;
    nothing_left_of(client, "trawl.cloud/capturejob-uid", &uid).await
}

/// Waits until no object labelled `label=value` exists.
pub async fn nothing_left_of(client: &Client, label: &str, value: &str) -> Result<()> {
    let selector = format!("{label}={value}");
    wait_until(
        "nothing left behind",
        GONE_WITHIN,
        async || {
            let mut left = BTreeMap::new();
            left.insert("jobs", count::<Job>(client, &selector).await?);
            left.insert("pods", count::<Pod>(client, &selector).await?);
            left.insert("deployments", count::<Deployment>(client, &selector).await?);
            left.insert(
                "serviceaccounts",
                count::<ServiceAccount>(client, &selector).await?,
            );
            left.insert("roles", count::<Role>(client, &selector).await?);
            left.insert("rolebindings", count::<RoleBinding>(client, &selector).await?);
            left.retain(|_, n| *n > 0);
            Ok(left)
        },
        BTreeMap::is_empty,
    )
    .await
    .map(drop)
}

async fn count<K>(client: &Client, selector: &str) -> Result<usize>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    Ok(api
        .list(&ListParams::default().labels(selector))
        .await?
        .items
        .len())
}
