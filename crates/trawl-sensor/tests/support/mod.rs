//! A scripted daemon behind a real control socket, and a namespace on a real API server.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;
use trawl_api::{NetworkTap, TargetStatus};
use trawl_config::pods::{Analyzer, ObjectIdentity, SensorNote, SensorSource, SensorSpec, tap_objects_name};
use trawl_control::server::{Listener, receive_request};
use trawl_control::{
    AttachmentStatus, CaptureMode, Counters, DaemonStatus, ErrorCode, ErrorReply, InterfaceSpec, Reply,
    RequestBody, Source, TapIdentity,
};
use trawl_kube::apply::apply;

/// What the daemon answers.
#[derive(Default)]
pub struct Script {
    pub started_ns: u64,
    pub attached_ns: u64,
    pub counters: Counters,
    pub missing: bool,
    pub detached: u32,
    pub active_captures: u32,
}

/// The daemon. Dropping it hangs up on everybody, as a killed one does.
pub struct Captured {
    task: tokio::task::JoinHandle<()>,
}

impl Captured {
    pub fn start(socket: &Path, script: Arc<Mutex<Script>>) -> Self {
        let listener = Listener::bind(socket, None).expect("the socket");
        let task = tokio::spawn(async move {
            // The connections live in here, so that they end with the daemon.
            let mut leases = Vec::new();
            while let Ok((mut connection, _)) = listener.accept().await {
                let Ok(Some((body, _))) = receive_request(&mut connection, Duration::from_secs(5)).await
                else {
                    continue;
                };
                let attach = matches!(body, RequestBody::Attach(_));
                let reply = answer(&mut script.lock().unwrap(), body);
                let _ = connection.send(&reply).await;
                if attach {
                    leases.push(connection);
                }
            }
        });
        Self { task }
    }

    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

fn answer(script: &mut Script, body: RequestBody) -> Reply {
    let tap = TapIdentity {
        namespace: "n".into(),
        name: "mirror".into(),
        uid: "?".into(),
    };
    match body {
        RequestBody::Attach(_) if script.missing => Reply::Error(ErrorReply {
            code: ErrorCode::InterfaceUnavailable,
            field: Some("source.value.interface".into()),
            message: "interface mirror0 does not exist".into(),
        }),
        RequestBody::Attach(attach) => Reply::Attached(attachment(script, attach.tap)),
        RequestBody::Detach(_) => {
            script.detached += 1;
            Reply::Detached
        }
        RequestBody::Status => Reply::Status(DaemonStatus {
            daemon_version: "test".into(),
            started_at_ns: script.started_ns,
            attachments: vec![attachment(script, tap)],
        }),
        RequestBody::Capture(_) | RequestBody::Feed(_) => unreachable!("a sensor never asks for these"),
    }
}

fn attachment(script: &Script, mut tap: TapIdentity) -> AttachmentStatus {
    tap.uid = UID.lock().unwrap().clone();
    AttachmentStatus {
        tap,
        source: Source::MirrorInterface(InterfaceSpec {
            interface: "mirror0".into(),
            promiscuous: true,
        }),
        ifindex: 3,
        mode: CaptureMode::Copy,
        mode_proved: true,
        mode_refusals: vec!["zero-copy: not offered".into()],
        link_up: true,
        attached_at_ns: script.attached_ns,
        last_packet_ns: (script.counters.packets > 0).then_some(1_800_000_000_000_000_000),
        counters: script.counters,
        active_captures: script.active_captures,
        problem: None,
        queues: vec![],
        history: None,
        nic: vec![],
        feeds: vec![],
    }
}

/// UID of the tap of the one test that runs at a time.
static UID: Mutex<String> = Mutex::new(String::new());

/// A namespace with a tap and the ConfigMap that the operator would have made.
pub struct World {
    pub client: Client,
    pub namespace: String,
    pub spec: SensorSpec,
    pub dir: tempfile::TempDir,
}

impl World {
    pub async fn new(name: &str) -> Self {
        let client = client().await;
        install_crd(&client).await;
        let namespace = format!("trawl-se-{}-{name}", std::process::id());
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &object)
            .await
            .expect("a namespace");
        let tap = json!({"metadata": {"name": "mirror"}, "apiVersion": "trawl.cloud/v1alpha1", "kind": "NetworkTap",
            "spec": {"mode": "Passive", "type": "MirrorInterface", "mirrorInterface": {"interface": "mirror0",
                "promiscuous": true, "nodeSelector": {"matchLabels": {"a": "b"}}},
                "analyzers": {"zeek": {"enabled": true, "resources": {
                    "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}}}}});
        let taps = Api::<NetworkTap>::namespaced(client.clone(), &namespace);
        let tap = serde_json::from_value(tap).unwrap();
        let tap = taps
            .create(&PostParams::default(), &tap)
            .await
            .expect("the tap is accepted");
        let uid = tap.uid().unwrap();
        *UID.lock().unwrap() = uid.clone();
        let notes = serde_json::from_value(json!({"metadata": {"name": tap_objects_name(&uid)}})).unwrap();
        let configs = Api::<ConfigMap>::namespaced(client.clone(), &namespace);
        configs
            .create(&PostParams::default(), &notes)
            .await
            .expect("the notes");
        let spec = SensorSpec {
            tap: ObjectIdentity {
                namespace: namespace.clone(),
                name: "mirror".into(),
                uid,
            },
            source: SensorSource::MirrorInterface,
            interface: "mirror0".into(),
            promiscuous: true,
            analyzers: vec![Analyzer::Zeek],
        };
        Self {
            client,
            namespace,
            spec,
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("captured.sock")
    }

    pub async fn target(&self) -> Option<TargetStatus> {
        let taps = Api::<NetworkTap>::namespaced(self.client.clone(), &self.namespace);
        let status = taps.get("mirror").await.expect("the tap").status?;
        status.targets.into_iter().find(|t| t.node_name == "node-1")
    }

    pub async fn note(&self) -> Option<SensorNote> {
        let configs = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
        let config = configs
            .get(&tap_objects_name(&self.spec.tap.uid))
            .await
            .expect("the notes");
        serde_json::from_str(config.data?.get("node-1")?).ok()
    }

    pub async fn end(self) {
        let how = DeleteParams::default();
        let _ = Api::<Namespace>::all(self.client.clone())
            .delete(&self.namespace, &how)
            .await;
    }
}

pub async fn eventually<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{what} did not come in 20 s"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn client() -> Client {
    let path = std::env::var("TRAWL_TEST_KUBECONFIG")
        .expect("TRAWL_TEST_KUBECONFIG must name a kubeconfig of a real API server: run dev/test api");
    trawl_kube::startup::install_crypto();
    let kubeconfig = Kubeconfig::read_from(path).expect("the kubeconfig can be read");
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .expect("the kubeconfig is complete");
    Client::try_from(config).expect("a client")
}

async fn install_crd(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../crds/trawl.cloud_networktaps.yaml"
    );
    let text = std::fs::read_to_string(path).expect("the generated CRD");
    let crd: serde_json::Value = serde_saphyr::from_str(&text).expect("YAML");
    apply(&api, "trawl-test", "networktaps.trawl.cloud", &crd)
        .await
        .expect("the CRD is accepted");
    eventually("the CRD to be established", async || {
        let conditions = api
            .get("networktaps.trawl.cloud")
            .await
            .ok()?
            .status?
            .conditions?;
        conditions
            .iter()
            .any(|c| c.type_ == "Established" && c.status == "True")
            .then_some(())
    })
    .await;
}
