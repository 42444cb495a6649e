//! CaptureJobs as the operator would leave them.

use std::path::PathBuf;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use trawl_api::CaptureJob;
use trawl_artifact::keys;

use super::{PROFILE, Site};

/// Lower-case hex of the SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> String {
    trawl_artifact::verify::hex(&Sha256::digest(bytes))
}

impl Site {
    pub fn jobs(&self) -> Api<CaptureJob> {
        Api::namespaced(self.admin.clone(), &self.namespace)
    }

    /// Creates a job that nobody has looked at yet. Returns its UID.
    pub async fn job(&self, name: &str) -> String {
        let job = serde_json::from_value(json!({
            "apiVersion": "trawl.cloud/v1alpha1", "kind": "CaptureJob", "metadata": {"name": name},
            "spec": {"requestType": "Manual", "tapRef": {"name": "t"}, "targetNode": "n1", "duration": "10s",
                     "snaplen": 0, "maxSize": "64Mi", "retention": "1h"},
        }))
        .expect("job");
        let created = self
            .jobs()
            .create(&PostParams::default(), &job)
            .await
            .expect("create job");
        created.metadata.uid.expect("uid")
    }

    /// Writes into the job's status.
    pub async fn status(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.jobs()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .expect("patch status");
    }

    /// A status with which `content` may be downloaded for an hour.
    pub fn completed(&self, uid: &str, content: &[u8]) -> Value {
        let now = Timestamp::now();
        let deadline = now + SignedDuration::from_hours(1);
        json!({
            "observedGeneration": 1,
            "phase": "Completed",
            "requestedAt": now.to_string(),
            "completedAt": now.to_string(),
            "sha256": sha256(content),
            "sizeBytes": content.len(),
            "retentionDeadline": deadline.to_string(),
            "artifact": {"profile": PROFILE, "key": keys::capture_key(&self.namespace, uid), "verifiedAt": now.to_string()},
            "conditions": [{"type": "Downloadable", "status": "True", "reason": "Downloadable", "message": "",
                            "observedGeneration": 1, "lastTransitionTime": now.to_string()}],
        })
    }

    /// A job whose artifact `content` lies in the directory store, ready to be downloaded. Returns its UID.
    pub async fn ready(&self, name: &str, content: &[u8]) -> String {
        let uid = self.job(name).await;
        self.status(name, self.completed(&uid, content)).await;
        let path = self.object_path(&uid);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("directory");
        std::fs::write(path, content).expect("object");
        uid
    }

    /// Where the directory store keeps the capture of job `uid`.
    pub fn object_path(&self, uid: &str) -> PathBuf {
        self.dir
            .path()
            .join("objects")
            .join(keys::capture_key(&self.namespace, uid))
    }
}
