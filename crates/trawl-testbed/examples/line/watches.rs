//! When the API server's watches told the client of each change, to the nanosecond of the client's clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, Client, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use trawl_api::CaptureJob;
use trawl_testbed::objects::{NAMESPACE, condition, jobs};

use crate::report::Point;

const OWNER_LABEL: &str = "trawl.cloud/capturejob-uid";

/// First arrival of each point, by UID of the CaptureJob.
#[derive(Clone, Default)]
pub struct Arrivals(Arc<Mutex<BTreeMap<String, BTreeMap<Point, Timestamp>>>>);

impl Arrivals {
    fn note(&self, uid: &str, point: Point, at: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(|broken| broken.into_inner());
        all.entry(uid.into()).or_default().entry(point).or_insert(at);
    }

    pub fn of(&self, uid: &str) -> BTreeMap<Point, Timestamp> {
        let all = self.0.lock().unwrap_or_else(|broken| broken.into_inner());
        all.get(uid).cloned().unwrap_or_default()
    }
}

/// Watches for as long as the set lives.
pub fn watch(client: &Client) -> (Arrivals, JoinSet<()>) {
    let arrivals = Arrivals::default();
    let mut tasks = JoinSet::new();
    tasks.spawn(each(
        jobs(client),
        watcher::Config::default(),
        arrivals.clone(),
        capture_job,
    ));
    let ours = watcher::Config::default().labels(OWNER_LABEL);
    let batch: Api<Job> = Api::namespaced(client.clone(), NAMESPACE);
    tasks.spawn(each(batch, ours.clone(), arrivals.clone(), |job, at, to| {
        if let Some(uid) = job.labels().get(OWNER_LABEL) {
            to.note(uid, Point::JobCreated, at);
        }
    }));
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    tasks.spawn(each(pods, ours, arrivals.clone(), |pod, at, to| {
        let Some(uid) = pod.labels().get(OWNER_LABEL) else {
            return;
        };
        to.note(uid, Point::PodCreated, at);
        if pod.spec.as_ref().is_some_and(|s| s.node_name.is_some()) {
            to.note(uid, Point::PodScheduled, at);
        }
    }));
    (arrivals, tasks)
}

async fn each<K>(
    api: Api<K>,
    config: watcher::Config,
    arrivals: Arrivals,
    look: impl Fn(&K, Timestamp, &Arrivals),
) where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let mut events = std::pin::pin!(watcher(api, config).default_backoff().applied_objects());
    while let Some(event) = events.next().await {
        let at = Timestamp::now();
        match event {
            Ok(object) => look(&object, at, &arrivals),
            Err(error) => {
                eprintln!("a watch broke and begins anew; the job under way may lack points: {error}")
            }
        }
    }
}

fn capture_job(job: &CaptureJob, at: Timestamp, to: &Arrivals) {
    let (Some(uid), Some(status)) = (job.uid(), &job.status) else {
        return;
    };
    let holds = |type_: &str| condition(job, type_).is_some_and(|(status, _)| status == "True");
    for (point, reached) in [
        (Point::StartReported, status.started_at.is_some()),
        (Point::ResultReported, status.runner_result.is_some()),
        (Point::Downloadable, holds("Downloadable")),
    ] {
        if reached {
            to.note(&uid, point, at);
        }
    }
}
