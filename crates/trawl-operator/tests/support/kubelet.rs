//! What the kubelet of the one node would do, told by the test: pods start, end and go away.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use trawl_api::names::{CAPTURE_JOB_UID_LABEL, TAP_UID_LABEL};

/// A node that is Ready, and somebody who starts its pods.
pub struct Kubelet {
    client: Client,
    namespace: String,
    node: String,
    task: tokio::task::JoinHandle<()>,
}

impl Kubelet {
    /// Registers the node and begins.
    pub async fn start(client: Client, namespace: &str, node: &str) -> Self {
        let nodes: Api<Node> = Api::all(client.clone());
        let labels = [
            ("kubernetes.io/hostname".to_owned(), node.to_owned()),
            ("trawl.cloud/sensor".to_owned(), "true".to_owned()),
        ];
        let meta = ObjectMeta {
            name: Some(node.into()),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        };
        let object = Node {
            metadata: meta,
            ..Node::default()
        };
        nodes
            .create(&PostParams::default(), &object)
            .await
            .expect("a node can be registered");
        let work = Work {
            nodes,
            pods: Api::namespaced(client.clone(), namespace),
            node: node.into(),
        };
        work.heartbeat().await;
        let task = tokio::spawn(async move {
            for round in 0u64.. {
                if round % 50 == 49 {
                    work.heartbeat().await;
                }
                work.round().await;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
        Self {
            client,
            namespace: namespace.into(),
            node: node.into(),
            task,
        }
    }

    /// The runner of a capture ends with `code`; the pod with it.
    pub async fn end_runner(&self, uid: &str, code: i32) {
        let pod = self.capture_pod(uid).await;
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let time = "2026-01-01T00:00:00Z";
        let ended = |code: i32| json!({"terminated": {"exitCode": code, "startedAt": time, "finishedAt": time, "reason": "Ended"}});
        let status = json!({
            "phase": phase,
            "initContainerStatuses": [container("reporter", false, ended(0))],
            "containerStatuses": [container("runner", false, ended(code))],
        });
        patch_status(&self.pods(), &pod.name_any(), status).await;
    }

    /// The capture's pod, once the Job controller has made it.
    pub async fn capture_pod(&self, uid: &str) -> Pod {
        let selected = ListParams::default().labels(&format!("{CAPTURE_JOB_UID_LABEL}={uid}"));
        for _ in 0..100 {
            let pods = self.pods().list(&selected).await.expect("pods can be listed");
            if let Some(pod) = pods
                .items
                .into_iter()
                .find(|p| p.spec.as_ref().is_some_and(|s| s.node_name.is_some()))
            {
                return pod;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("no pod of capture {uid} was scheduled to {}", self.node);
    }

    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Takes the node away.
    pub async fn stop(self) {
        let _ = Api::<Node>::all(self.client.clone())
            .delete(&self.node, &DeleteParams::default())
            .await;
        self.task.abort();
    }
}

struct Work {
    nodes: Api<Node>,
    pods: Api<Pod>,
    node: String,
}

impl Work {
    async fn heartbeat(&self) {
        let now = k8s_openapi::jiff::Timestamp::now();
        let resources = json!({"cpu": "8", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"});
        let body = json!({"status": {"capacity": resources, "allocatable": resources, "conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }]}});
        let _ = self
            .nodes
            .patch_status(&self.node, &PatchParams::default(), &Patch::Strategic(body))
            .await;
    }

    async fn round(&self) {
        let Ok(pods) = self.pods.list(&ListParams::default()).await else {
            return;
        };
        for pod in pods {
            let name = pod.name_any();
            if pod.metadata.deletion_timestamp.is_some() {
                let now = DeleteParams {
                    grace_period_seconds: Some(0),
                    ..DeleteParams::default()
                };
                let _ = self.pods.delete(&name, &now).await;
                continue;
            }
            let scheduled = pod.spec.as_ref().is_some_and(|s| s.node_name.is_some());
            let pending = pod.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Pending");
            if !scheduled || !pending {
                continue;
            }
            let running = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
            if pod.labels().contains_key(CAPTURE_JOB_UID_LABEL) {
                let status = json!({"phase": "Running",
                    "initContainerStatuses": [container("reporter", true, running.clone())],
                    "containerStatuses": [container("runner", true, running)]});
                patch_status(&self.pods, &name, status).await;
            } else if pod.labels().contains_key(TAP_UID_LABEL) {
                let status = json!({"phase": "Running",
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "containerStatuses": [container("sensor", true, running)]});
                patch_status(&self.pods, &name, status).await;
            }
        }
    }
}

fn container(name: &str, ready: bool, state: serde_json::Value) -> serde_json::Value {
    json!({"name": name, "ready": ready, "restartCount": 0, "image": "i", "imageID": "i", "state": state})
}

/// Writes the status of a pod. It may be gone, or ended meanwhile: what was seen of it before counts no more then.
async fn patch_status(pods: &Api<Pod>, name: &str, status: serde_json::Value) {
    let patch = Patch::Strategic(json!({"status": status}));
    if let Err(error) = pods.patch_status(name, &PatchParams::default(), &patch).await {
        let late = match &error {
            kube::Error::Api(s) if s.code == 404 => true,
            kube::Error::Api(s) => s.code == 422 && s.message.contains("may not be transitioned"),
            _ => false,
        };
        assert!(late, "pod {name}: {error}");
    }
}
