//! A gateway in front of a real API server, with callers whose tokens the API server made.
#![allow(dead_code, reason = "every test binary uses its own part")]

mod callers;
pub mod jobs;
pub mod s3;
pub mod serving;

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use trawl_config::store::{DirectoryConfig, StoreBackend, StoreConfig};

pub use serving::{Certificates, Gateway};

/// Name of the store in statuses.
pub const PROFILE: &str = "test";
pub const AUDIENCE: &str = "trawl-artifact-gateway";

/// Where the real API server is; without one the test fails.
pub fn kubeconfig_path() -> PathBuf {
    let path = std::env::var_os("TRAWL_TEST_KUBECONFIG");
    PathBuf::from(
        path.expect("TRAWL_TEST_KUBECONFIG is not set: this test needs a real API server; run dev/test api"),
    )
}

/// One namespace with the CRDs, a store and a gateway.
pub struct Site {
    pub admin: Client,
    pub namespace: String,
    pub dir: tempfile::TempDir,
    pub certificates: Certificates,
    pub store: StoreConfig,
    pub gateway: Gateway,
    tokens: Mutex<Vec<String>>,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Site {
    /// A site on the directory store.
    pub async fn new() -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let objects = dir.path().join("objects");
        std::fs::create_dir(&objects).expect("directory of objects");
        let backend = StoreBackend::Directory(DirectoryConfig {
            path: objects.display().to_string(),
        });
        Self::on(
            dir,
            StoreConfig {
                profile: PROFILE.into(),
                backend,
            },
            Path::new("/nonexistent"),
            None,
        )
        .await
    }

    /// A site on `store`. The gateway reaches the API server at `server`, where given.
    pub async fn on(
        dir: tempfile::TempDir,
        store: StoreConfig,
        credentials: &Path,
        server: Option<&str>,
    ) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kubeconfig = Kubeconfig::read_from(kubeconfig_path()).expect("TRAWL_TEST_KUBECONFIG");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await;
        let admin = Client::try_from(config.expect("TRAWL_TEST_KUBECONFIG")).expect("client");
        apply_crds(&admin).await;
        let namespace = format!(
            "gw-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let wanted = serde_json::from_value(json!({"metadata": {"name": namespace}})).expect("namespace");
        Api::<Namespace>::all(admin.clone())
            .create(&PostParams::default(), &wanted)
            .await
            .expect("namespace");
        let certificates = Certificates::make(dir.path());
        let identity = callers::gateway_kubeconfig(&admin, &namespace, kubeconfig, server).await;
        let gateway = Gateway::start(
            dir.path(),
            &namespace,
            &store,
            credentials,
            &identity,
            &certificates,
        )
        .await;
        let tokens = Mutex::new(vec![identity.token]);
        Self {
            admin,
            namespace,
            dir,
            certificates,
            store,
            gateway,
            tokens,
        }
    }

    /// URL of the path of job `name` that ends in `leaf`.
    pub fn url(&self, name: &str, leaf: &str) -> String {
        let Self {
            namespace, gateway, ..
        } = self;
        format!(
            "{}/api/v1/namespaces/{namespace}/capturejobs/{name}/{leaf}",
            gateway.url()
        )
    }

    /// A client that trusts the gateway and follows no redirect.
    pub fn http(&self) -> reqwest::Client {
        self.certificates.client()
    }

    /// Asks for a download.
    pub async fn ask(&self, name: &str, token: &str) -> reqwest::Response {
        self.http()
            .get(self.url(name, "download"))
            .bearer_auth(token)
            .send()
            .await
            .expect("answer")
    }

    /// Stops the gateway, checks that no token is in its log, and removes what the test made.
    pub async fn end(self) -> String {
        let log = self.gateway.stop().await;
        for token in self.tokens.lock().expect("tokens").iter() {
            let signature = token.rsplit('.').next().expect("token");
            assert!(
                !log.contains(token.as_str()) && !log.contains(signature),
                "a token is in the log of the gateway"
            );
        }
        callers::remove_cluster_binding(&self.admin, &self.namespace).await;
        let namespaces: Api<Namespace> = Api::all(self.admin.clone());
        namespaces
            .delete(&self.namespace, &DeleteParams::background())
            .await
            .expect("delete namespace");
        log
    }
}

async fn apply_crds(admin: &Client) {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition as Crd;
    let crds: Api<Crd> = Api::all(admin.clone());
    for plural in ["capturejobs", "networktaps"] {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../crds/trawl.cloud_{plural}.yaml"));
        let text = std::fs::read_to_string(&path).expect("generated CRD");
        let crd: serde_json::Value = serde_saphyr::from_str(&text).expect("CRD");
        let name = format!("{plural}.trawl.cloud");
        let force = PatchParams::apply("trawl-tests").force();
        crds.patch(&name, &force, &Patch::Apply(&crd))
            .await
            .expect("apply CRD");
        let established = kube::runtime::conditions::is_crd_established();
        let wait = kube::runtime::wait::await_condition(crds.clone(), &name, established);
        tokio::time::timeout(std::time::Duration::from_secs(30), wait)
            .await
            .expect("CRD in time")
            .expect("CRD");
    }
}
