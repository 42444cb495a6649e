//! The operator's identity: what `deploy/base/operator-rbac.yaml` allows, and nothing else.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, TypeMeta};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use trawl_config::installation::{Captured, Images, Installation, StoreSecrets};
use trawl_config::store::{DirectoryConfig, StoreBackend, StoreConfig};
use trawl_kube::apply::apply;

use super::world::eventually;

/// Cluster-wide rights of the operator; each world has its own copy of them.
const CLUSTER_RIGHTS: [&str; 2] = ["trawl-operator-nodes", "trawl-operator-webhooks"];

/// Name of the webhook configurations that the operator of this namespace looks after.
pub fn configuration(namespace: &str) -> String {
    format!("trawl-cloud-{namespace}")
}

pub async fn kubeconfig() -> Config {
    let path = std::env::var("TRAWL_TEST_KUBECONFIG")
        .expect("TRAWL_TEST_KUBECONFIG must name a kubeconfig of a real API server: run dev/test api");
    trawl_kube::startup::install_crypto();
    let kubeconfig = Kubeconfig::read_from(path).expect("the kubeconfig can be read");
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("the kubeconfig is complete")
}

/// A client that may do what `deploy/base/operator-rbac.yaml` allows, and nothing else.
pub async fn operator_client(admin: &Client, mut config: Config, namespace: &str) -> Client {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../deploy/base/operator-rbac.yaml"
    );
    let text = std::fs::read_to_string(path).expect("the operator's rights");
    let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).expect("YAML");
    for mut object in objects {
        let kind = object["kind"].as_str().expect("a kind").to_owned();
        let types = TypeMeta {
            api_version: object["apiVersion"].as_str().unwrap().into(),
            kind: kind.clone(),
        };
        let resource = ApiResource::from_gvk(&types.try_into().expect("a known form"));
        // Cluster-wide objects of each world have their own name, as their subject has.
        if kind.starts_with("Cluster") {
            let own = format!(
                "{}-{namespace}",
                object["metadata"]["name"].as_str().expect("a name")
            );
            object["metadata"]["name"] = own.as_str().into();
            if object.get("roleRef").is_some() {
                object["roleRef"]["name"] = own.into();
            }
        }
        for rule in object
            .get_mut("rules")
            .and_then(|r| r.as_array_mut())
            .into_iter()
            .flatten()
        {
            if rule["resourceNames"] == json!(["trawl-cloud"]) {
                rule["resourceNames"] = json!([configuration(namespace)]);
            }
        }
        if let Some(subjects) = object.get_mut("subjects").and_then(|s| s.as_array_mut()) {
            subjects
                .iter_mut()
                .for_each(|s| s["namespace"] = namespace.into());
        }
        let api: Api<DynamicObject> = if kind.starts_with("Cluster") {
            Api::all_with(admin.clone(), &resource)
        } else {
            Api::namespaced_with(admin.clone(), namespace, &resource)
        };
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        let params = PatchParams::apply("trawl-test").force();
        api.patch(&name, &params, &Patch::Apply(&object))
            .await
            .expect("the right is accepted");
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), namespace);
    let request = TokenRequest::default();
    let token = accounts
        .create_token_request("trawl-operator", &PostParams::default(), &request)
        .await
        .expect("a token");
    config.auth_info = AuthInfo {
        token: Some(token.status.expect("a token").token.into()),
        ..AuthInfo::default()
    };
    Client::try_from(config).expect("the operator's client")
}

/// Takes the cluster-wide rights away again.
pub async fn forget(admin: &Client, namespace: &str) {
    for name in CLUSTER_RIGHTS.map(|r| format!("{r}-{namespace}")) {
        let how = DeleteParams::default();
        let _ = Api::<ClusterRoleBinding>::all(admin.clone())
            .delete(&name, &how)
            .await;
        let _ = Api::<ClusterRole>::all(admin.clone()).delete(&name, &how).await;
    }
}

pub async fn install_crds(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for kind in ["networktaps", "capturepolicies", "capturejobs", "portmirrors"] {
        let path = format!(
            "{}/../../crds/trawl.cloud_{kind}.yaml",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(&path).expect("the generated CRD");
        let crd: serde_json::Value = serde_saphyr::from_str(&text).expect("YAML");
        let name = format!("{kind}.trawl.cloud");
        apply(&api, "trawl-test", &name, &crd)
            .await
            .expect("the CRD is accepted");
        eventually("the CRD to be established", async || {
            let conditions = api.get(&name).await.ok()?.status?.conditions?;
            conditions
                .iter()
                .any(|c| c.type_ == "Established" && c.status == "True")
                .then_some(())
        })
        .await;
    }
}

pub fn installation(namespace: &str, store: &str) -> Installation {
    let image = |name: &str| format!("localhost/trawl/{name}@sha256:{}", "0".repeat(64));
    Installation {
        api_version: trawl_config::installation::API_VERSION.into(),
        namespace: namespace.into(),
        images: Images {
            runner: image("runner"),
            reporter: image("reporter"),
            sensor: image("sensor"),
        },
        captured: Captured::default(),
        capture: Default::default(),
        store: StoreConfig {
            profile: "test".into(),
            backend: StoreBackend::Directory(DirectoryConfig { path: store.into() }),
        },
        secrets: StoreSecrets {
            runner: "trawl-store-runner".into(),
        },
        audit: Default::default(),
        retention: Default::default(),
        worker: Default::default(),
    }
}
