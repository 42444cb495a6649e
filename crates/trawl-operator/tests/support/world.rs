//! One namespace, one node, one store in a directory, and the operator that can be stopped and started.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use trawl_api::names::{REPORTER_FIELD_MANAGER, sensor_field_manager};
use trawl_api::{CaptureJob, CaptureJobStatus, JobPhase, NetworkTap, NetworkTapStatus};
use trawl_artifact::keys::{capture_key, manifest_key};
use trawl_artifact::manifest::Manifest;
use trawl_config::installation::Installation;
use trawl_config::pods::{RunnerSpec, capture_objects_name, tap_objects_name};
use trawl_kube::apply::{apply, apply_status};
use trawl_kube::health::Readiness;
use trawl_lifecycle::limits::Limits;
use trawl_operator::context::Context;
use trawl_operator::run::run;
use trawl_store::Store;

use super::kubelet::Kubelet;
use super::operator::{forget, install_crds, installation, kubeconfig, operator_client};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A name that no other test has.
pub fn fresh_name() -> String {
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("trawl-op-{}-{n}", std::process::id())
}

pub struct World {
    pub client: Client,
    pub namespace: String,
    pub node: String,
    pub kubelet: Kubelet,
    pub store_dir: tempfile::TempDir,
    pub limits: Limits,
    pub config: Installation,
    pub operator_client: Client,
    operator: Option<(CancellationToken, tokio::task::JoinHandle<()>)>,
}

impl World {
    /// A fresh world with the operator running.
    pub async fn new() -> Self {
        let kubeconfig = kubeconfig().await;
        let client = Client::try_from(kubeconfig.clone()).expect("a client");
        install_crds(&client).await;
        let name = fresh_name();
        let meta = ObjectMeta {
            name: Some(name.clone()),
            ..ObjectMeta::default()
        };
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let object = Namespace {
            metadata: meta,
            ..Namespace::default()
        };
        namespaces
            .create(&PostParams::default(), &object)
            .await
            .expect("a namespace can be made");
        let operator_client = operator_client(&client, kubeconfig, &name).await;
        let kubelet = Kubelet::start(client.clone(), &name, &name).await;
        let store_dir = tempfile::tempdir().expect("a directory");
        let config = installation(&name, store_dir.path().to_str().expect("UTF-8"));
        let limits = Limits::default();
        let mut world = Self {
            node: name.clone(),
            namespace: name,
            client,
            kubelet,
            store_dir,
            limits,
            config,
            operator_client,
            operator: None,
        };
        world.start_operator();
        world
    }

    pub fn start_operator(&mut self) {
        let ctx = Context::new(
            self.operator_client.clone(),
            self.config.clone(),
            self.store(),
            self.limits,
        );
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(run(Arc::new(ctx), Readiness::default(), async move {
            stopped.cancelled().await
        }));
        self.operator = Some((stop, task));
    }

    /// Ends it as a crash would: in the middle of whatever it does.
    pub async fn kill_operator(&mut self) {
        if let Some((_, task)) = self.operator.take() {
            task.abort();
            let _ = task.await;
        }
    }

    pub async fn restart_operator(&mut self) {
        self.kill_operator().await;
        self.start_operator();
    }

    pub fn store(&self) -> Store {
        Store::open(&self.config.store, &PathBuf::from("/nonexistent")).expect("the directory store opens")
    }

    /// Makes the store unreachable, or gives it back.
    pub fn lose_store(&self, lost: bool) {
        let (here, away) = (
            self.store_dir.path().to_owned(),
            self.store_dir.path().with_extension("away"),
        );
        if lost {
            std::fs::rename(&here, &away).expect("the store can be moved away");
            // A file in its place cannot be read as a directory.
            std::fs::write(&here, b"").expect("a file in its place");
        } else {
            std::fs::remove_file(&here).expect("the file can go");
            std::fs::rename(&away, &here).expect("the store can come back");
        }
    }

    pub fn taps(&self) -> Api<NetworkTap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn captures(&self) -> Api<CaptureJob> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub async fn make_tap(&self, name: &str) -> NetworkTap {
        let tap = json!({
            "apiVersion": "trawl.cloud/v1alpha1", "kind": "NetworkTap", "metadata": {"name": name},
            "spec": {"mode": "Passive", "type": "MirrorInterface",
                "mirrorInterface": {"interface": "mirror0", "promiscuous": true,
                    "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": self.node}}},
                "analyzers": {"suricata": {"enabled": true, "resources": {
                    "requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}}}}});
        let tap = serde_json::from_value(tap).expect("a tap");
        self.taps()
            .create(&PostParams::default(), &tap)
            .await
            .expect("the tap is accepted")
    }

    /// What the sensor of a tap reports now.
    pub async fn sensor_reports(&self, tap: &NetworkTap, packets: i64, at: Timestamp) {
        let manager = sensor_field_manager(&self.node);
        let uid = tap.uid().expect("a UID");
        let status = json!({"targets": [{"nodeName": self.node, "interface": "mirror0", "reporterInstance": "p/1",
            "heartbeatTime": at, "packetsObserved": packets, "kernelDrops": 0, "duplication": "Unknown",
            "rejectedRecords": 0, "analyzers": [{"name": "Suricata", "healthy": false, "reason": "not run"}]}]});
        apply_status(&self.taps(), &manager, &tap.name_any(), Some(&uid), &status)
            .await
            .expect("the sensor may report");
    }

    /// The note that the sensor's current pod leaves.
    pub async fn sensor_notes(&self, tap: &NetworkTap, note: serde_json::Value) {
        let name = tap_objects_name(&tap.uid().expect("a UID"));
        let selected =
            ListParams::default().labels(&format!("trawl.cloud/tap-uid={}", tap.uid().expect("a UID")));
        let pod = eventually("the sensor's pod", async || {
            self.kubelet
                .pods()
                .list(&selected)
                .await
                .ok()?
                .items
                .into_iter()
                .next()
        })
        .await;
        let mut note = note;
        note["pod"] = pod.name_any().into();
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {self.node.as_str(): note.to_string()}});
        let api: Api<k8s_openapi::api::core::v1::ConfigMap> =
            Api::namespaced(self.client.clone(), &self.namespace);
        apply(&api, &sensor_field_manager(&self.node), &name, &body)
            .await
            .expect("the sensor may leave a note");
    }

    /// A tap on which captures can start.
    pub async fn live_tap(&self, name: &str) -> NetworkTap {
        let tap = self.make_tap(name).await;
        self.sensor_reports(&tap, 1, Timestamp::now()).await;
        self.tap_until(name, "WorkloadReady", |s| {
            s.conditions
                .iter()
                .any(|c| c.type_ == "WorkloadReady" && c.status == "True")
        })
        .await;
        tap
    }

    pub async fn tap_until(
        &self,
        name: &str,
        what: &str,
        done: impl Fn(&NetworkTapStatus) -> bool,
    ) -> NetworkTapStatus {
        let start = Instant::now();
        loop {
            let status = self
                .taps()
                .get(name)
                .await
                .expect("the tap")
                .status
                .unwrap_or_default();
            if done(&status) {
                return status;
            }
            assert!(
                start.elapsed() < Duration::from_secs(40),
                "tap {name}: {what} did not come: {status:#?}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn make_capture(&self, name: &str, tap: &str) -> CaptureJob {
        self.make_capture_with(name, tap, json!({})).await
    }

    /// A capture with more, or other, in its spec.
    pub async fn make_capture_with(&self, name: &str, tap: &str, more: serde_json::Value) -> CaptureJob {
        let mut job = json!({
            "apiVersion": "trawl.cloud/v1alpha1", "kind": "CaptureJob", "metadata": {"name": name},
            "spec": {"requestType": "Manual", "tapRef": {"name": tap}, "targetNode": self.node,
                "filter": "tcp port 80", "duration": "2s", "snaplen": 0, "maxSize": "1Mi", "retention": "1h"}});
        let spec = job["spec"].as_object_mut().expect("an object");
        spec.extend(more.as_object().expect("an object").clone());
        let job = serde_json::from_value(job).expect("a capture");
        self.captures()
            .create(&PostParams::default(), &job)
            .await
            .expect("the capture is accepted")
    }

    /// What the Job of this capture tells its runner.
    pub async fn runner_spec(&self, uid: &str) -> RunnerSpec {
        let made = self
            .jobs()
            .get(&capture_objects_name(uid))
            .await
            .expect("the Job");
        let pod = made.spec.and_then(|job| job.template.spec).expect("a pod");
        let arguments = pod.containers[0].args.as_ref().expect("arguments");
        serde_json::from_str(&arguments[1]).expect("a runner's instructions")
    }

    pub async fn until(
        &self,
        name: &str,
        what: &str,
        done: impl Fn(&CaptureJobStatus) -> bool,
    ) -> CaptureJobStatus {
        let start = Instant::now();
        loop {
            let status = self
                .captures()
                .get(name)
                .await
                .expect("the capture")
                .status
                .unwrap_or_default();
            if done(&status) {
                return status;
            }
            assert!(
                start.elapsed() < Duration::from_secs(40),
                "capture {name}: {what} did not come: {status:#?}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn until_phase(&self, name: &str, phase: JobPhase) -> CaptureJobStatus {
        self.until(name, &format!("{phase:?}"), |s| s.phase == Some(phase))
            .await
    }

    /// What the reporter writes; `fields` is everything that it has said so far.
    pub async fn report(&self, name: &str, fields: serde_json::Value) {
        apply_status(&self.captures(), REPORTER_FIELD_MANAGER, name, None, &fields)
            .await
            .expect("the reporter may report");
    }

    /// Puts capture and manifest where the runner would.
    pub async fn upload(&self, job: &CaptureJob, file: &[u8], manifest: &Manifest) {
        let (namespace, uid) = (&self.namespace, job.uid().expect("a UID"));
        let store = self.store();
        let file = Bytes::copy_from_slice(file);
        store
            .put_if_absent(&capture_key(namespace, &uid), file)
            .await
            .expect("the capture is stored");
        let text = Bytes::from(manifest.to_json().expect("a manifest"));
        store
            .put_if_absent(&manifest_key(namespace, &uid), text)
            .await
            .expect("the manifest is stored");
    }

    pub async fn objects(&self, uid: &str) -> usize {
        self.store()
            .list(&format!("captures/{}/{uid}", self.namespace))
            .await
            .expect("the store lists")
            .len()
    }

    /// Every Job that was ever made for a capture and still is.
    pub async fn jobs_of(&self, uid: &str) -> Vec<Job> {
        let selected = ListParams::default().labels(&format!("trawl.cloud/capturejob-uid={uid}"));
        self.jobs()
            .list(&selected)
            .await
            .expect("Jobs can be listed")
            .items
    }

    /// What the API server says that an account of this namespace may do.
    pub async fn may(&self, account: &str, verb: &str, group: &str, resource: &str, name: &str) -> bool {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({"metadata": {}, "spec": {
            "user": format!("system:serviceaccount:{}:{account}", self.namespace),
            "resourceAttributes": {"namespace": self.namespace, "verb": verb, "group": group,
                "resource": resource, "subresource": subresource, "name": name}}});
        let review: SubjectAccessReview = serde_json::from_value(review).expect("a review");
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = api
            .create(&PostParams::default(), &review)
            .await
            .expect("an answer");
        answer.status.expect("a verdict").allowed
    }

    /// Leaves nothing behind in the cluster.
    pub async fn end(mut self) {
        if self.operator.is_none() {
            self.start_operator();
        }
        let (all, how) = (ListParams::default(), DeleteParams::default());
        let _ = self.captures().delete_collection(&how, &all).await;
        eventually("all captures to be gone", async || {
            self.captures()
                .list(&all)
                .await
                .ok()?
                .items
                .is_empty()
                .then_some(())
        })
        .await;
        self.kill_operator().await;
        let _ = Api::<Namespace>::all(self.client.clone())
            .delete(&self.namespace, &how)
            .await;
        eventually("all pods to be gone", async || {
            self.kubelet
                .pods()
                .list(&all)
                .await
                .ok()?
                .items
                .is_empty()
                .then_some(())
        })
        .await;
        self.kubelet.stop().await;
        forget(&self.client, &self.namespace).await;
    }
}

pub async fn eventually<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(
            start.elapsed() < Duration::from_secs(40),
            "{what} did not come in 40 s"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
