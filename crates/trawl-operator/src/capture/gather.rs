//! Everything that a decision about one CaptureJob rests on, read live from the API server.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerState, Node, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::ListParams;
use kube::core::{Selector, SelectorExt};
use trawl_api::names::{CAPTURE_JOB_FINALIZER, CAPTURE_JOB_UID_LABEL};
use trawl_api::{CaptureJob, CaptureJobStatus, JobPhase, NetworkTap, NetworkTapStatus};
use trawl_config::pods::capture_objects_name;
use trawl_lifecycle::capture::{
    ArtifactFact, CaptureFacts, CleanupFact, JobFact, NodeFact, ObjectsFact, RunnerFact, TapFact, TapView,
};

use super::job::RUNNER;
use crate::context::Context;
use crate::error::{Error, Step};
use crate::owned::is_owned;

/// What was read for one CaptureJob.
pub(super) struct Seen {
    pub job: CaptureJob,
    pub uid: String,
    pub name: String,
    /// Name of the Kubernetes Job.
    pub job_name: String,
    pub status: CaptureJobStatus,
    pub tap: Option<NetworkTap>,
    tap_status: NetworkTapStatus,
    pub node: Option<Node>,
    batch: Option<Job>,
    pods: Vec<Pod>,
}

/// Reads it; `None` when the CaptureJob is gone or another of the same name took its place.
pub(super) async fn gather(ctx: &Context, name: &str, uid: &str) -> Result<Option<Seen>, Error> {
    let Some(job) = ctx.api::<CaptureJob>().get_opt(name).await.step("read the CaptureJob")? else {
        return Ok(None);
    };
    if job.uid().as_deref() != Some(uid) {
        return Ok(None);
    }
    let job_name = capture_objects_name(uid);
    let status = job.status.clone().unwrap_or_default();
    let ended = matches!(status.phase, Some(JobPhase::Completed | JobPhase::Failed | JobPhase::Expired));
    let deleting = job.metadata.deletion_timestamp.is_some();

    let (taps, jobs, pods) = (ctx.api::<NetworkTap>(), ctx.api::<Job>(), ctx.api::<Pod>());
    let nodes = kube::Api::<Node>::all(ctx.client.clone());
    let selected = ListParams::default().labels(&format!("{CAPTURE_JOB_UID_LABEL}={uid}"));
    let target = async {
        let wanted = job.spec.target_node.as_deref().filter(|_| !ended && !deleting);
        match wanted {
            Some(node) => kube::Result::Ok((taps.get_opt(&job.spec.tap_ref.name).await?, nodes.get_opt(node).await?)),
            None => Ok((None, None)),
        }
    };
    let work = async {
        if ended && !deleting {
            return Ok((None, Vec::new()));
        }
        Ok((jobs.get_opt(&job_name).await?, pods.list(&selected).await?.items))
    };
    let (target, work): (kube::Result<(Option<NetworkTap>, Option<Node>)>, kube::Result<(Option<Job>, Vec<Pod>)>) =
        futures::join!(target, work);
    let (tap, node) = target.step("read the tap and the node")?;
    let (batch, pods) = work.step("read the Job and its pods")?;
    let tap_status = tap.as_ref().and_then(|t| t.status.clone()).unwrap_or_default();
    Ok(Some(Seen { uid: uid.into(), name: name.into(), job_name, status, tap, tap_status, node, batch, pods, job }))
}

impl Seen {
    /// The facts for a decision at `now`.
    pub fn facts(&self, ctx: &Context, artifact: &ArtifactFact, objects: ObjectsFact, now: Timestamp) -> CaptureFacts<'_> {
        let meta = &self.job.metadata;
        CaptureFacts {
            generation: meta.generation.unwrap_or(0),
            created_at: meta.creation_timestamp.as_ref().map_or(now, |t| t.0),
            namespace_ok: meta.namespace.as_deref() == Some(&ctx.config.namespace),
            deleting: meta.deletion_timestamp.is_some(),
            finalizer: self.job.finalizers().iter().any(|f| f == CAPTURE_JOB_FINALIZER),
            spec: &self.job.spec,
            status: &self.status,
            job_name: &self.job_name,
            tap: self.tap(),
            node: self.node(),
            job: self.job_fact(),
            runner: runner(&self.pods),
            artifact: artifact.clone(),
            cleanup: CleanupFact {
                job: self.batch.as_ref().is_some_and(|b| is_owned(b, &self.uid)),
                pods: !self.pods.is_empty(),
                objects,
            },
            now,
            limits: ctx.limits,
        }
    }

    fn tap(&self) -> TapFact<'_> {
        let Some(tap) = &self.tap else { return TapFact::Missing };
        TapFact::Found(TapView {
            uid: tap.metadata.uid.as_deref().unwrap_or_default(),
            generation: tap.metadata.generation.unwrap_or(0),
            deleting: tap.metadata.deletion_timestamp.is_some(),
            type_: tap.spec.type_,
            status: &self.tap_status,
        })
    }

    fn node(&self) -> NodeFact {
        let Some(node) = &self.node else { return NodeFact::Absent };
        let conditions = node.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
        if !conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True") {
            return NodeFact::NotReady;
        }
        let selector = self.tap.as_ref().and_then(|t| t.spec.source()).map(|s| s.node_selector.clone());
        match selector.map(Selector::try_from) {
            Some(Ok(selector)) if !selector.matches(node.labels()) => NodeFact::NotSelected,
            _ => NodeFact::Eligible,
        }
    }

    fn job_fact(&self) -> JobFact {
        let Some(batch) = &self.batch else { return JobFact::Absent };
        if !is_owned(batch, &self.uid) {
            return JobFact::Foreign;
        }
        let conditions = batch.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
        let condition = |type_: &str| conditions.iter().find(|c| c.type_ == type_ && c.status == "True");
        if let Some(failed) = condition("Failed") {
            return JobFact::Failed {
                reason: failed.reason.clone().unwrap_or_default(),
                message: failed.message.clone().unwrap_or_default(),
            };
        }
        if condition("Complete").is_some() { JobFact::Succeeded } else { JobFact::Active }
    }
}

/// How the runner stands, in the newest pod.
fn runner(pods: &[Pod]) -> RunnerFact {
    let Some(pod) = pods.iter().max_by_key(|p| p.creation_timestamp()) else { return RunnerFact::Unknown };
    let Some(status) = &pod.status else { return RunnerFact::Unknown };
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    match containers.iter().find(|c| c.name == RUNNER).and_then(|c| c.state.as_ref()) {
        Some(ContainerState { terminated: Some(t), .. }) => {
            RunnerFact::Exited { code: t.exit_code, reason: t.reason.clone() }
        }
        Some(ContainerState { running: Some(_), .. }) => RunnerFact::Running,
        _ => RunnerFact::Waiting(crate::pod::trouble(pod)),
    }
}
