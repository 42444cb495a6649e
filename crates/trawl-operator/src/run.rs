//! The two controllers, and what makes each of them look at once.

use std::future::Future;
use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use trawl_api::names::{CAPTURE_JOB_UID_LABEL, TAP_UID_LABEL};
use trawl_api::{CaptureJob, NetworkTap, TapType};
use trawl_kube::health::Readiness;

use crate::context::Context;
use crate::error::Error;
use crate::owned::OWNER_ANNOTATION;
use crate::{capture, tap};

/// Readiness parts that [`run`] reports on.
pub const READY_CAPTURES: &str = "watch of CaptureJobs";
pub const READY_TAPS: &str = "watch of NetworkTaps";
/// Reconciliations of one kind at a time; requests to the API server are cheap, but not free.
const CONCURRENCY: u16 = 8;

/// Runs both controllers until `stop` resolves and the reconciliations in flight are through.
pub async fn run<F>(ctx: Arc<Context>, readiness: Readiness, stop: F)
where
    F: Future<Output = ()> + Send + Sync + 'static,
{
    let stop = stop.shared();
    let captures = captures(ctx.clone(), readiness.clone(), stop.clone());
    let taps = taps(ctx, readiness, stop);
    futures::join!(captures, taps);
}

async fn captures<F>(ctx: Arc<Context>, readiness: Readiness, stop: F)
where
    F: Future<Output = ()> + Send + Sync + 'static,
{
    let controller = Controller::new(ctx.api::<CaptureJob>(), watcher::Config::default());
    let store = controller.store();
    let waiting = store.clone();
    let ready = mark_ready(controller.store(), readiness, READY_CAPTURES);
    let parts = watcher::Config::default().labels(CAPTURE_JOB_UID_LABEL);
    let work = controller
        .with_config(Config::default().concurrency(CONCURRENCY))
        .owns(ctx.api::<Job>(), parts.clone())
        .watches(ctx.api::<Pod>(), parts, |pod| owner_of::<CaptureJob, _>(&pod))
        .watches(ctx.api::<NetworkTap>(), watcher::Config::default(), move |tap| of_tap(&waiting, &tap.name_any()))
        .graceful_shutdown_on(stop)
        .run(capture::reconcile, on_error, ctx)
        .for_each(|outcome| async { log("CaptureJob", outcome) });
    futures::join!(ready, work);
}

async fn taps<F>(ctx: Arc<Context>, readiness: Readiness, stop: F)
where
    F: Future<Output = ()> + Send + Sync + 'static,
{
    let controller = Controller::new(ctx.api::<NetworkTap>(), watcher::Config::default());
    let (rivals, everywhere) = (controller.store(), controller.store());
    let ready = mark_ready(controller.store(), readiness, READY_TAPS);
    let parts = watcher::Config::default().labels(TAP_UID_LABEL);
    let applied = Arc::new(tap::Applied::default());
    let work = controller
        .with_config(Config::default().concurrency(CONCURRENCY))
        .owns(ctx.api::<Deployment>(), parts.clone())
        .owns(ctx.api::<DaemonSet>(), parts.clone())
        .owns(ctx.api::<ConfigMap>(), parts.clone())
        .watches(ctx.api::<Pod>(), parts, |pod| owner_of::<NetworkTap, _>(&pod))
        .watches(Api::<Node>::all(ctx.client.clone()), watcher::Config::default(), move |_| all(&everywhere))
        .watches(ctx.api::<NetworkTap>(), watcher::Config::default(), move |tap| contenders(&rivals, &tap))
        .graceful_shutdown_on(stop)
        .run(move |tap, ctx| tap::reconcile(tap, ctx, applied.clone()), on_error, ctx)
        .for_each(|outcome| async { log("NetworkTap", outcome) });
    futures::join!(ready, work);
}

async fn mark_ready<K>(store: Store<K>, readiness: Readiness, part: &'static str)
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    if store.wait_until_ready().await.is_ok() {
        readiness.set(part, Ok(()));
    }
}

/// The object that a pod works for, by the annotation that our templates carry.
fn owner_of<K: Resource<DynamicType = ()>, P: ResourceExt>(pod: &P) -> Option<ObjectRef<K>> {
    let name = pod.annotations().get(OWNER_ANNOTATION)?;
    Some(ObjectRef::new(name).within(&pod.namespace()?))
}

/// CaptureJobs that name a tap and have not ended.
fn of_tap(store: &Store<CaptureJob>, tap: &str) -> Vec<ObjectRef<CaptureJob>> {
    let live = |job: &CaptureJob| {
        use trawl_api::JobPhase::{Capturing, Pending, Storing};
        let phase = job.status.as_ref().and_then(|s| s.phase);
        matches!(phase, None | Some(Pending | Capturing | Storing))
    };
    let named = |job: &CaptureJob| job.spec.tap_ref.name == tap && live(job);
    store.state().iter().filter(|j| named(j)).map(|j| ObjectRef::from_obj(&**j)).collect()
}

fn all(store: &Store<NetworkTap>) -> Vec<ObjectRef<NetworkTap>> {
    store.state().iter().map(|t| ObjectRef::from_obj(&**t)).collect()
}

/// Other mirror taps that want the same interface: one of them may have to yield, or may go on now.
fn contenders(store: &Store<NetworkTap>, tap: &NetworkTap) -> Vec<ObjectRef<NetworkTap>> {
    let interface = |t: &NetworkTap| {
        let wanted = t.spec.source().filter(|_| t.spec.type_ == TapType::MirrorInterface);
        wanted.map(|s| s.interface.clone())
    };
    let Some(wanted) = interface(tap) else { return Vec::new() };
    let contends = |t: &NetworkTap| t.uid() != tap.uid() && interface(t).as_ref() == Some(&wanted);
    store.state().iter().filter(|t| contends(t)).map(|t| ObjectRef::from_obj(&**t)).collect()
}

fn on_error<K: ResourceExt>(object: Arc<K>, error: &Error, _: Arc<Context>) -> Action {
    tracing::warn!(object = object.name_any(), %error, "a reconciliation failed and is tried again");
    error.retry()
}

fn log<T, E: std::fmt::Display>(kind: &str, outcome: Result<T, E>) {
    if let Err(error) = outcome {
        tracing::debug!(kind, %error, "reconciliation");
    }
}
