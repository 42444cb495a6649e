use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::{io::AsyncWriteExt, process::Command};
use trawl_api::{CaptureJob, JobPhase, NetworkTap};
use trawl_testbed::{
    line::{Line, var},
    objects::{self, JobRequest, NAMESPACE, wait_until},
    traffic::Sender,
};

pub const TAP: &str = "cluster-test-mirror";
pub const PORT: u16 = 7001;
pub const OTHER_PORT: u16 = 7002;
pub const FILTER: &str = "udp dst port 7001";
/// Generous: a loaded machine is slow, a wrong state machine never arrives.
pub const SOON: Duration = Duration::from_secs(120);

/// The installation, with the shared tap attached and reporting.
pub async fn line() -> Result<Line> {
    let line = Line::from_env().await?;
    let api = objects::taps(&line.client);
    if api.get_opt(TAP).await?.is_none() {
        objects::create_mirror_tap(&line.client, TAP, &line.node, &line.mirror_iface).await?;
    }
    wait_until("tap reports", SOON, async || Ok(api.get(TAP).await?), reports).await?;
    Ok(line)
}

/// Whether a tap has a target whose sensor has reported.
pub fn reports(tap: &NetworkTap) -> bool {
    tap.status
        .as_ref()
        .is_some_and(|s| !s.targets.is_empty() && s.ready_targets.is_some_and(|n| n > 0))
}

pub fn request<'a>(
    line: &'a Line,
    filter: Option<&'a str>,
    duration: &'a str,
    max_size: &'a str,
) -> JobRequest<'a> {
    JobRequest {
        tap: TAP,
        node: &line.node,
        filter,
        duration,
        max_size,
        snaplen: 0,
        pre_trigger: None,
    }
}

/// Creates a job and waits until packets are being captured.
pub async fn start(line: &Line, request: &JobRequest<'_>) -> Result<CaptureJob> {
    let job = objects::create_job(&line.client, request).await?;
    objects::wait_for_job(&line.client, &job.name_any(), "capture started", SOON, |j| {
        j.status.as_ref().is_some_and(|s| s.started_at.is_some()) || objects::is_terminal(j)
    })
    .await
}

pub async fn finish(line: &Line, job: &CaptureJob) -> Result<CaptureJob> {
    objects::wait_for_job(
        &line.client,
        &job.name_any(),
        "terminal phase",
        Duration::from_secs(120),
        objects::is_terminal,
    )
    .await
}

/// Waits for the end of a job, which must be a good one.
pub async fn complete(line: &Line, job: &CaptureJob) -> Result<CaptureJob> {
    let job = finish(line, job).await?;
    assert_eq!(
        objects::phase(&job),
        Some(JobPhase::Completed),
        "{:?}",
        job.status
    );
    Ok(job)
}

/// Sends `count` numbered frames to [`PORT`], each followed by one that the filter must leave out.
pub fn send_pairs(line: &Line, count: u64, size: usize) -> Result<()> {
    let mut sender = Sender::open(&line.mirror_peer)?;
    for n in 0..count {
        sender.send_numbered(n..n + 1, PORT, size, Duration::from_micros(200))?;
        sender.send_numbered(1_000_000 + n..1_000_001 + n, OTHER_PORT, size, Duration::ZERO)?;
    }
    Ok(())
}

/// A gateway token of an analyst who may do what the contract's table says, and no more.
pub async fn analyst_token(line: &Line) -> Result<String> {
    let params = PatchParams::apply("trawl-testbed").force();
    for (plural, object) in [
        (
            "serviceaccounts",
            json!({"apiVersion": "v1", "kind": "ServiceAccount"}),
        ),
        (
            "roles",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": [
                {"apiGroups": ["trawl.cloud"], "resources": ["capturejobs"], "verbs": ["create", "get", "list", "watch"]},
                {"apiGroups": ["trawl.cloud"], "resources": ["capturejobs/download"], "verbs": ["get"]},
            ]}),
        ),
        (
            "rolebindings",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "test-analyst"},
                "subjects": [{"kind": "ServiceAccount", "name": "test-analyst", "namespace": NAMESPACE}]}),
        ),
    ] {
        let mut object: kube::api::DynamicObject = serde_json::from_value(object)?;
        object.metadata.name = Some("test-analyst".into());
        object.metadata.namespace = Some(NAMESPACE.into());
        let types = object.types.clone().context("types")?;
        let gvk = kube::core::GroupVersionKind::try_from(&types)?;
        let resource = kube::api::ApiResource::from_gvk_with_plural(&gvk, plural);
        let api: Api<kube::api::DynamicObject> =
            Api::namespaced_with(line.client.clone(), NAMESPACE, &resource);
        api.patch("test-analyst", &params, &Patch::Apply(&object)).await?;
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(line.client.clone(), NAMESPACE);
    let request = serde_json::from_value(json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {},
        "spec": {"audiences": ["trawl-artifact-gateway"], "expirationSeconds": 600},
    }))?;
    let reply = accounts
        .create_token_request("test-analyst", &PostParams::default(), &request)
        .await?;
    Ok(reply.status.context("no token in the reply")?.token)
}

/// Runs `trawlctl capture download` with the analyst's token on standard input.
pub async fn download(line: &Line, job: &CaptureJob, out: &Path) -> Result<Output> {
    let token = analyst_token(line).await?;
    let mut child = Command::new(&line.trawlctl)
        .args(["--kubeconfig".as_ref(), line.kubeconfig.as_os_str()])
        .args([
            "-n",
            NAMESPACE,
            "capture",
            "download",
            &job.name_any(),
            "--token-stdin",
            "--gateway",
            &line.gateway_url,
        ])
        .arg("--ca")
        .arg(&line.gateway_ca)
        .arg("-o")
        .arg(out)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child
        .stdin
        .take()
        .context("stdin")?
        .write_all(token.as_bytes())
        .await?;
    Ok(child.wait_with_output().await?)
}

/// Downloads a Completed job's file and fails with what trawlctl said otherwise.
pub async fn fetch(line: &Line, job: &CaptureJob, dir: &Path) -> Result<PathBuf> {
    let out = dir.join(format!("{}.pcapng", job.name_any()));
    let result = download(line, job, &out).await?;
    if !result.status.success() {
        bail!("trawlctl: {}", String::from_utf8_lossy(&result.stderr));
    }
    Ok(out)
}

/// Where the store keeps a job's capture file on this machine's disk.
pub fn stored_file(job: &CaptureJob) -> Result<PathBuf> {
    let uid = job.uid().context("job without UID")?;
    Ok(PathBuf::from(var("TRAWL_STORE_ROOT")?).join(format!("captures/{NAMESPACE}/{uid}/capture.pcapng")))
}

/// Fails when the store still holds anything of a job.
pub fn store_holds_nothing_of(job: &CaptureJob) -> Result<()> {
    let file = stored_file(job)?;
    let manifest = file.with_file_name("manifest.json");
    for f in [file, manifest] {
        if f.exists() {
            bail!("{} is still there", f.display());
        }
    }
    Ok(())
}
