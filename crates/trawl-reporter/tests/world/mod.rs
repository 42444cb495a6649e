//! A namespace of its own on the test's API server: CRD, jobs, and a token bound by a Role to one job.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{AuthInfo, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use trawl_api::{CaptureJob, CaptureJobStatus};
use trawl_artifact::outcome::{Outcome, StopReason};
use trawl_artifact::progress::{
    CaptureEnded, CaptureResult, CaptureStarted, FilterVerdict, ProgressBody, ProgressWriter,
};
use trawl_reporter::Arguments;

const CRD: &str = include_str!("../../../../crds/trawl.cloud_capturejobs.yaml");

pub struct World {
    config: Config,
    admin: Client,
    pub namespace: String,
    pub jobs: Api<CaptureJob>,
}

impl World {
    pub async fn new(name: &str) -> Self {
        trawl_kube::startup::install_crypto();
        let path = std::env::var("TRAWL_TEST_KUBECONFIG")
            .expect("TRAWL_TEST_KUBECONFIG is not set: run dev/test api");
        let kubeconfig = Kubeconfig::read_from(path).expect("TRAWL_TEST_KUBECONFIG must name a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default())
            .await
            .unwrap();
        let admin = Client::try_from(config.clone()).unwrap();
        let crd: CustomResourceDefinition = serde_saphyr::from_str(CRD).unwrap();
        let crds: Api<CustomResourceDefinition> = Api::all(admin.clone());
        let crd_name = crd.metadata.name.clone().unwrap();
        let parameters = PatchParams::apply("trawl-tests").force();
        crds.patch(&crd_name, &parameters, &Patch::Apply(&crd))
            .await
            .unwrap();
        let namespace = format!("reporter-{name}-{}", std::process::id());
        let space = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        Api::<Namespace>::all(admin.clone())
            .create(&PostParams::default(), &space)
            .await
            .unwrap();
        let jobs: Api<CaptureJob> = Api::namespaced(admin.clone(), &namespace);
        for _ in 0..100 {
            if jobs.list(&Default::default()).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Self {
            config,
            admin,
            namespace,
            jobs,
        }
    }

    pub async fn job(&self, name: &str) -> CaptureJob {
        let job = json!({
            "apiVersion": "trawl.cloud/v1alpha1",
            "kind": "CaptureJob",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "requestType": "Manual", "tapRef": {"name": "north-south-mirror"}, "targetNode": "node-1",
                "filter": "tcp port 443", "duration": "2m", "snaplen": 0, "maxSize": "50Mi", "retention": "7d",
            },
        });
        self.jobs
            .create(&PostParams::default(), &serde_json::from_value(job).unwrap())
            .await
            .unwrap()
    }

    pub fn arguments(&self, job: &CaptureJob, directory: &Path) -> Arguments {
        Arguments {
            namespace: self.namespace.clone(),
            job: job.metadata.name.clone().unwrap(),
            job_uid: job.metadata.uid.clone().unwrap(),
            progress_dir: directory.into(),
        }
    }

    pub async fn status(&self, job: &str) -> CaptureJobStatus {
        self.jobs.get(job).await.unwrap().status.unwrap_or_default()
    }

    /// Waits up to 10 s for the status of job `mine`.
    pub async fn until(&self, wanted: impl Fn(&CaptureJobStatus) -> bool) {
        for _ in 0..200 {
            if wanted(&self.status("mine").await) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("status after 10 s: {:?}", self.status("mine").await);
    }

    pub async fn apply_as_operator(&self, job: &str, status: serde_json::Value) -> kube::Result<CaptureJob> {
        let patch = json!({
            "apiVersion": "trawl.cloud/v1alpha1", "kind": "CaptureJob", "metadata": {"name": job}, "status": status,
        });
        self.jobs
            .patch_status(job, &PatchParams::apply("trawl-operator"), &Patch::Apply(patch))
            .await
    }

    /// A client with a token that may do what the operator's Role allows for one job.
    pub async fn reporter_client(&self, job: &str) -> Client {
        Client::try_from(self.reporter_config(job).await).unwrap()
    }

    async fn reporter_config(&self, job: &str) -> Config {
        let post = PostParams::default();
        let name = format!("trawl-capture-{job}");
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin.clone(), &self.namespace);
        let account = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        accounts.create(&post, &account).await.unwrap();
        let role = json!({"metadata": {"name": name}, "rules": [{
            "apiGroups": ["trawl.cloud"], "resources": ["capturejobs/status"], "resourceNames": [job],
            "verbs": ["get", "patch"],
        }]});
        let roles: Api<Role> = Api::namespaced(self.admin.clone(), &self.namespace);
        roles
            .create(&post, &serde_json::from_value(role).unwrap())
            .await
            .unwrap();
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}],
        });
        let bindings: Api<RoleBinding> = Api::namespaced(self.admin.clone(), &self.namespace);
        bindings
            .create(&post, &serde_json::from_value(binding).unwrap())
            .await
            .unwrap();
        let spec = TokenRequestSpec {
            expiration_seconds: Some(600),
            ..Default::default()
        };
        let request = TokenRequest {
            spec,
            ..Default::default()
        };
        let token = accounts
            .create_token_request(&name, &post, &request)
            .await
            .unwrap();
        let token = token.status.unwrap().token;
        let mut config = self.config.clone();
        config.auth_info = AuthInfo::default();
        config.auth_info.token = Some(token.into());
        config
    }

    /// As [`World::reporter_client`], but by a port that answers only once the door is opened.
    pub async fn reporter_client_through_a_door(&self, job: &str) -> (Client, Door) {
        let mut config = self.reporter_config(job).await;
        let (host, port) = (
            config.cluster_url.host().unwrap().to_owned(),
            config.cluster_url.port_u16().unwrap(),
        );
        let reserved = TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap()
            .local_addr()
            .unwrap();
        config.cluster_url = format!("https://{reserved}").parse().unwrap();
        config.tls_server_name = Some(host.clone());
        let door = Door(Arc::new(Notify::new()));
        let opened = Arc::clone(&door.0);
        tokio::spawn(async move {
            opened.notified().await;
            let listener = TcpListener::bind(reserved).await.unwrap();
            while let Ok((mut inside, _)) = listener.accept().await {
                let mut outside = TcpStream::connect((host.as_str(), port)).await.unwrap();
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut inside, &mut outside).await });
            }
        });
        (Client::try_from(config).unwrap(), door)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let (admin, name) = (self.admin.clone(), self.namespace.clone());
        tokio::spawn(async move {
            Api::<Namespace>::all(admin)
                .delete(&name, &DeleteParams::default())
                .await
        });
    }
}

/// Opens the way to the API server.
pub struct Door(Arc<Notify>);

impl Door {
    pub fn open(&self) {
        self.0.notify_one();
    }
}

/// The records of a capture under way or, with `finished`, of one that succeeded.
pub fn records(job: &CaptureJob, finished: bool) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    write(
        directory.path(),
        job,
        ProgressBody::Filter(FilterVerdict {
            accepted: true,
            rejects_all: false,
            message: None,
        }),
    );
    write(
        directory.path(),
        job,
        ProgressBody::Started(CaptureStarted {
            interface: "mirror0".into(),
            mode: "copy".into(),
            started_at: Timestamp::now(),
        }),
    );
    if finished {
        finish(directory.path(), job);
    }
    directory
}

/// Adds the end and the result.
pub fn finish(directory: &Path, job: &CaptureJob) {
    let sha256 = "0".repeat(64);
    write(
        directory,
        job,
        ProgressBody::Ended(CaptureEnded {
            stop_reason: StopReason::Duration,
            ended_at: Timestamp::now(),
            packet_count: 42,
            size_bytes: 4_242,
            sha256: sha256.clone(),
        }),
    );
    write(
        directory,
        job,
        ProgressBody::Result(CaptureResult {
            outcome: Outcome::Succeeded,
            reason: None,
            stop_reason: Some(StopReason::Duration),
            packet_count: Some(42),
            size_bytes: Some(4_242),
            sha256: Some(sha256),
            exit_code: 0,
            message: None,
        }),
    );
}

fn write(directory: &Path, job: &CaptureJob, body: ProgressBody) {
    let uid = job.metadata.uid.clone().unwrap();
    ProgressWriter::new(directory, uid)
        .write(body, Timestamp::now())
        .unwrap();
}
