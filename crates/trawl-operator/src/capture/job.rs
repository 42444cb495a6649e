//! The Kubernetes Job of a CaptureJob, and the identity of its reporter.

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, PodSpec, PodTemplateSpec, SecretVolumeSource, Volume, VolumeMount,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use trawl_api::names::{CAPTURE_JOB_UID_LABEL, GROUP, REQUESTER_ANNOTATION};
use trawl_api::{CaptureJob, GoDuration};
use trawl_config::installation::Installation;
use trawl_config::pods::{ObjectIdentity, RunnerSpec, capture_objects_name};
use trawl_config::store::StoreBackend;

use crate::owned::{OWNER_ANNOTATION, labels, metadata, rule};
use crate::pod;

/// Seconds that a pod may need to start.
pub const START_BUDGET_SECS: i64 = 300;
/// Seconds that the upload may need.
pub const UPLOAD_BUDGET_SECS: i64 = 900;
/// How long a runner that was told to stop may still take to store what it has.
pub const STOP_BUDGET_SECS: i64 = 120;
/// Room beside the capture on the work volume, in bytes: manifest and file system overhead.
const WORK_SLACK: u64 = 8 << 20;
/// Name of the main container.
pub const RUNNER: &str = "runner";

/// What a Job is made from.
pub struct Plan<'a> {
    pub config: &'a Installation,
    pub job: &'a CaptureJob,
    pub owner: OwnerReference,
    pub uid: &'a str,
    pub name: &'a str,
    pub tap: ObjectIdentity,
    pub node: &'a str,
    /// Value of the node's `kubernetes.io/hostname` label.
    pub hostname: &'a str,
}

impl Plan<'_> {
    /// Metadata of everything that belongs to this capture.
    pub fn metadata(&self) -> ObjectMeta {
        let labels = labels("trawl-capture", CAPTURE_JOB_UID_LABEL, self.uid);
        metadata(
            &capture_objects_name(self.uid),
            &self.config.namespace,
            self.owner.clone(),
            labels,
        )
    }

    /// What the reporter may do: read its own CaptureJob and patch that one's status.
    pub fn reporter_rules(&self) -> Vec<PolicyRule> {
        vec![
            rule(GROUP, "capturejobs", self.name, &["get"]),
            rule(GROUP, "capturejobs/status", self.name, &["get", "patch"]),
        ]
    }

    /// The instructions of the runner.
    pub fn runner_spec(&self) -> RunnerSpec {
        let spec = &self.job.spec;
        RunnerSpec {
            job: ObjectIdentity {
                namespace: self.config.namespace.clone(),
                name: self.name.into(),
                uid: self.uid.into(),
            },
            tap: self.tap.clone(),
            node: self.node.into(),
            filter: spec.filter.clone(),
            filter_tunnels: self.config.capture.filter_tunnels,
            duration_ms: spec.duration.as_millis(),
            max_size_bytes: spec.max_size.bytes(),
            snaplen: u32::try_from(spec.snaplen).unwrap_or(0),
            trigger_ns: spec
                .trigger
                .as_ref()
                .and_then(|trigger| u64::try_from(trigger.event_time.0.as_nanosecond()).ok()),
            pre_trigger_ms: spec.pre_trigger.as_ref().map_or(0, GoDuration::as_millis),
            requester: self
                .job
                .metadata
                .annotations
                .as_ref()
                .and_then(|a| a.get(REQUESTER_ANNOTATION))
                .cloned(),
            upload_budget_ms: UPLOAD_BUDGET_SECS as u64 * 1000,
            store: self.config.store.clone(),
        }
    }

    /// The Job itself.
    ///
    /// # Errors
    /// When the runner's instructions cannot be encoded.
    pub fn build(&self) -> Result<Job, serde_json::Error> {
        let meta = self.metadata();
        let seconds = i64::try_from(self.job.spec.duration.as_millis().div_ceil(1000)).unwrap_or(3600);
        let mut pod_meta = ObjectMeta {
            labels: meta.labels.clone(),
            ..ObjectMeta::default()
        };
        pod_meta.annotations = Some([(OWNER_ANNOTATION.to_owned(), self.name.to_owned())].into());
        Ok(Job {
            spec: Some(JobSpec {
                backoff_limit: Some(0),
                completions: Some(1),
                parallelism: Some(1),
                active_deadline_seconds: Some(START_BUDGET_SECS + seconds + UPLOAD_BUDGET_SECS),
                template: PodTemplateSpec {
                    metadata: Some(pod_meta),
                    spec: Some(self.pod(&meta)?),
                },
                ..JobSpec::default()
            }),
            metadata: meta,
            status: None,
        })
    }

    fn pod(&self, meta: &ObjectMeta) -> Result<PodSpec, serde_json::Error> {
        Ok(PodSpec {
            service_account_name: meta.name.clone(),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            restart_policy: Some("Never".into()),
            // A runner that is told to stop still uploads what it has.
            termination_grace_period_seconds: Some(STOP_BUDGET_SECS),
            node_selector: Some([("kubernetes.io/hostname".to_owned(), self.hostname.to_owned())].into()),
            tolerations: Some(pod::tolerations()),
            security_context: Some(pod::pod_security()),
            init_containers: Some(vec![self.reporter()]),
            containers: vec![self.runner()?],
            volumes: Some(self.volumes()),
            ..PodSpec::default()
        })
    }

    fn runner(&self) -> Result<Container, serde_json::Error> {
        let spec = serde_json::to_string(&self.runner_spec())?;
        let mut mounts = vec![
            pod::mount("socket", pod::SOCKET_DIR, false),
            pod::mount("work", "/work", false),
            pod::mount("progress", "/progress", false),
        ];
        mounts.push(self.store_mount());
        let args = [
            "--spec",
            &spec,
            "--socket",
            pod::SOCKET,
            "--work-dir",
            "/work",
            "--progress-dir",
            "/progress",
            "--credentials-dir",
            "/credentials",
        ];
        Ok(Container {
            name: RUNNER.into(),
            image: Some(self.config.images.runner.clone()),
            image_pull_policy: Some("IfNotPresent".into()),
            args: Some(args.map(pod::argument).into()),
            volume_mounts: Some(mounts),
            security_context: Some(pod::container_security()),
            resources: Some(pod::resources("50m", "32Mi", "256Mi")),
            ..Container::default()
        })
    }

    /// A native sidecar: starts first, ends last.
    fn reporter(&self) -> Container {
        let args = [
            "--namespace",
            &self.config.namespace,
            "--job",
            self.name,
            "--job-uid",
            self.uid,
            "--progress-dir",
            "/progress",
        ];
        Container {
            name: "reporter".into(),
            image: Some(self.config.images.reporter.clone()),
            image_pull_policy: Some("IfNotPresent".into()),
            restart_policy: Some("Always".into()),
            args: Some(args.map(str::to_owned).into()),
            volume_mounts: Some(vec![
                pod::mount("progress", "/progress", true),
                pod::mount("api-access", pod::TOKEN_DIR, true),
            ]),
            security_context: Some(pod::container_security()),
            resources: Some(pod::resources("10m", "16Mi", "128Mi")),
            ..Container::default()
        }
    }

    fn volumes(&self) -> Vec<Volume> {
        let empty = |name: &str, limit: Option<u64>| Volume {
            name: name.into(),
            empty_dir: Some(EmptyDirVolumeSource {
                size_limit: limit.map(|bytes| Quantity(bytes.to_string())),
                ..EmptyDirVolumeSource::default()
            }),
            ..Volume::default()
        };
        vec![
            empty("work", Some(self.job.spec.max_size.bytes() + WORK_SLACK)),
            empty("progress", Some(1 << 20)),
            pod::host_directory("socket", &self.config.captured.socket_dir),
            pod::token_volume("api-access"),
            self.store_volume(),
        ]
    }

    fn store_mount(&self) -> VolumeMount {
        match &self.config.store.backend {
            StoreBackend::S3(_) => pod::mount("store", "/credentials", true),
            StoreBackend::Directory(directory) => pod::mount("store", &directory.path, false),
        }
    }

    /// The runner's way into the store: a credential for S3, the directory itself otherwise.
    fn store_volume(&self) -> Volume {
        match &self.config.store.backend {
            StoreBackend::S3(_) => Volume {
                name: "store".into(),
                secret: Some(SecretVolumeSource {
                    secret_name: Some(self.config.secrets.runner.clone()),
                    default_mode: Some(0o440),
                    ..SecretVolumeSource::default()
                }),
                ..Volume::default()
            },
            StoreBackend::Directory(directory) => pod::host_directory("store", &directory.path),
        }
    }
}
