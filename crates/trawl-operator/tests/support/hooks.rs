//! The webhooks of a namespace on the real API server: the operator's server on 127.0.0.1, and configurations of its
//! own that differ from the installed ones in three points only. They have another name, say `url` instead of
//! `service`, and see two namespaces, so that other tests are not disturbed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DeleteParams, PostParams};
use kube::config::AuthInfo;
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use trawl_api::webhooks::{HOOKED, Purpose};
use trawl_audit::Record;
use trawl_config::installation::Installation;
use trawl_kube::health::Readiness;
use trawl_operator::webhook::certificates::managed::Settings;
use trawl_operator::webhook::certificates::plan::Limits;
use trawl_operator::webhook::{Certificates, READY, serve};

use super::operator::{configuration, forget, install_crds, installation, kubeconfig, operator_client};
use super::world::eventually;

/// Group that may do everything with the four kinds; it stands for RBAC, which these tests are not about.
const EVERYBODY: &str = "trawl-test-everybody";
/// Default group of an installation.
pub const ADMINISTRATORS: &str = "trawl:retention-administrators";

pub struct Hooks {
    /// Administrator of the cluster.
    pub admin: Client,
    pub namespace: String,
    /// Another namespace that the webhooks see.
    pub outside: String,
    pub ledger: PathBuf,
    pub limits: Limits,
    pub files: Option<PathBuf>,
    pub readiness: Readiness,
    config: Installation,
    kubeconfig: Config,
    operator: Client,
    listen: SocketAddr,
    running: Option<(CancellationToken, tokio::task::JoinHandle<()>)>,
    _directory: tempfile::TempDir,
}

/// What the API server says when it refuses.
#[derive(Debug)]
pub struct Refusal {
    pub code: u16,
    pub message: String,
    /// Field and message of each problem.
    pub causes: Vec<(String, String)>,
}

/// Somebody who asks.
#[derive(Clone)]
pub struct User {
    client: Client,
    namespace: String,
}

impl Hooks {
    /// The webhooks of a namespace in which the controllers run, served.
    pub async fn around(world: &super::World) -> Self {
        let mut hooks = Self::at(world.namespace.clone(), Some(world.operator_client.clone())).await;
        hooks.start().await;
        hooks
    }

    /// Everything installed and the webhooks not served yet.
    pub async fn installed() -> Self {
        Self::at(super::world::fresh_name(), None).await
    }

    async fn at(namespace: String, operator: Option<Client>) -> Self {
        let kubeconfig = kubeconfig().await;
        let admin = Client::try_from(kubeconfig.clone()).expect("a client");
        install_crds(&admin).await;
        let outside = format!("{namespace}-outside");
        // A world has made its own namespace and identity.
        let missing: &[&String] = if operator.is_some() {
            &[&outside]
        } else {
            &[&namespace, &outside]
        };
        for name in missing {
            let object = json!({"metadata": {"name": name}});
            let object: Namespace = serde_json::from_value(object).expect("a namespace");
            let api: Api<Namespace> = Api::all(admin.clone());
            api.create(&PostParams::default(), &object)
                .await
                .expect("a namespace");
        }
        let operator = match operator {
            Some(operator) => operator,
            None => operator_client(&admin, kubeconfig.clone(), &namespace).await,
        };
        let directory = tempfile::tempdir().expect("a directory");
        let mut config = installation(&namespace, "/nonexistent");
        config.audit.directory = directory.path().to_str().expect("UTF-8").into();
        let hooks = Self {
            ledger: directory.path().join("ledger.jsonl"),
            listen: free_address(),
            admin,
            namespace,
            outside,
            limits: Limits::default(),
            files: None,
            readiness: Readiness::default(),
            config,
            kubeconfig,
            operator,
            running: None,
            _directory: directory,
        };
        hooks.install().await;
        hooks
    }

    /// Everything installed, and the webhooks served.
    pub async fn new() -> Self {
        let mut hooks = Self::installed().await;
        hooks.start().await;
        hooks
    }

    /// Another directory for the ledger.
    pub fn keep_ledger_in(&mut self, directory: &std::path::Path) {
        self.config.audit.directory = directory.to_str().expect("UTF-8").into();
        self.ledger = directory.join("ledger.jsonl");
    }

    async fn install(&self) {
        let secrets: Api<Secret> = Api::namespaced(self.admin.clone(), &self.namespace);
        let empty = json!({"metadata": {"name": "trawl-webhook-tls"}, "type": "Opaque"});
        let empty = serde_json::from_value(empty).expect("a Secret");
        secrets
            .create(&PostParams::default(), &empty)
            .await
            .expect("an empty Secret");
        let mut user = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": EVERYBODY}, "rules": [{"apiGroups": ["trawl.cloud"], "resources": ["*"], "verbs": ["*"]}]});
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        let _ = send(&self.admin, "POST", path, Some(&user)).await;
        user = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": EVERYBODY},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": EVERYBODY},
            "subjects": [{"kind": "Group", "name": EVERYBODY, "apiGroup": "rbac.authorization.k8s.io"}]});
        for namespace in [&self.namespace, &self.outside] {
            let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
            send(&self.admin, "POST", &path, Some(&user))
                .await
                .expect("a binding");
        }
        for purpose in [Purpose::Mutate, Purpose::Validate] {
            let object = self.configuration(purpose);
            send(&self.admin, "POST", &configurations(purpose), Some(&object))
                .await
                .expect("a configuration");
        }
    }

    fn configuration(&self, purpose: Purpose) -> Value {
        let mut object = purpose.configuration();
        object["metadata"]["name"] = configuration(&self.namespace).into();
        for webhook in object["webhooks"].as_array_mut().expect("webhooks") {
            let path = webhook["clientConfig"]["service"]["path"]
                .as_str()
                .expect("a path")
                .to_owned();
            webhook["clientConfig"] = json!({"url": format!("https://{}{path}", self.listen)});
            webhook["namespaceSelector"] = json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name",
                "operator": "In", "values": [self.namespace, self.outside]}]});
        }
        object
    }

    /// Replaces both configurations by what an installation would apply: without any bundle.
    pub async fn forget_bundles(&self) {
        for purpose in [Purpose::Mutate, Purpose::Validate] {
            let path = format!("{}/{}", configurations(purpose), configuration(&self.namespace));
            send(&self.admin, "DELETE", &path, None).await.expect("deleted");
            let object = self.configuration(purpose);
            send(&self.admin, "POST", &configurations(purpose), Some(&object))
                .await
                .expect("made anew");
        }
    }

    /// Puts a bundle into every webhook, as cert-manager's injector does.
    pub async fn inject(&self, bundle: &str) {
        use base64::Engine as _;
        let bundle = base64::engine::general_purpose::STANDARD.encode(bundle);
        for purpose in [Purpose::Mutate, Purpose::Validate] {
            let path = format!("{}/{}", configurations(purpose), configuration(&self.namespace));
            let mut object = send(&self.admin, "GET", &path, None).await.expect("there");
            for webhook in object["webhooks"].as_array_mut().expect("webhooks") {
                webhook["clientConfig"]["caBundle"] = bundle.as_str().into();
            }
            send(&self.admin, "PUT", &path, Some(&object))
                .await
                .expect("injected");
        }
    }

    /// The bundle of the first validating webhook.
    pub async fn bundle(&self) -> String {
        use base64::Engine as _;
        let path = format!(
            "{}/{}",
            configurations(Purpose::Validate),
            configuration(&self.namespace)
        );
        let object = send(&self.admin, "GET", &path, None).await.expect("there");
        let text = object["webhooks"][0]["clientConfig"]["caBundle"]
            .as_str()
            .unwrap_or_default();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text)
            .expect("base64");
        String::from_utf8(bytes).expect("PEM")
    }

    /// The certificate that a new connection is shown.
    pub async fn presented(&self) -> Vec<u8> {
        let config = rustls::ClientConfig::builder()
            .dangerous()
            .with_custom_certificate_verifier(std::sync::Arc::new(super::peek::Anybody))
            .with_no_client_auth();
        let listen = self.listen;
        let seen = tokio::task::spawn_blocking(move || super::peek::certificate(config, listen));
        seen.await.expect("a look").expect("a certificate")
    }

    /// Serves the webhooks, and waits until the API server gets answers.
    pub async fn start(&mut self) {
        self.serve();
        eventually("the webhooks to answer", async || {
            let parts = self.readiness.problems();
            let answered = self.admin().create_with(&tap("probe"), "dryRun=All").await;
            (parts.is_empty() && !matches!(&answered, Err(r) if r.code == 500)).then_some(())
        })
        .await;
    }

    /// Begins to serve the webhooks.
    pub fn serve(&mut self) {
        let certificates = match &self.files {
            Some(directory) => Certificates::Files(directory.clone()),
            None => Certificates::Managed(Settings {
                namespace: self.namespace.clone(),
                secret: "trawl-webhook-tls".into(),
                configuration: configuration(&self.namespace),
                names: vec!["127.0.0.1".into()],
                limits: self.limits,
                look_every: Duration::from_millis(200),
                now: jiff::Timestamp::now,
            }),
        };
        self.readiness = Readiness::waiting_for(&READY);
        let (client, config, readiness) =
            (self.operator.clone(), self.config.clone(), self.readiness.clone());
        let (listen, stop) = (self.listen, CancellationToken::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let stopped = async move { stopped.cancelled().await };
            serve(client, &config, certificates, listen, readiness, drop, stopped)
                .await
                .expect("the webhooks are served");
        });
        self.running = Some((stop, task));
    }

    /// Ends the server, as a stopped operator does.
    pub async fn stop(&mut self) {
        if let Some((stop, task)) = self.running.take() {
            stop.cancel();
            let _ = task.await;
        }
    }

    /// The administrator, in the system namespace.
    pub fn admin(&self) -> User {
        User {
            client: self.admin.clone(),
            namespace: self.namespace.clone(),
        }
    }

    /// Somebody by name, with more groups.
    pub fn user(&self, name: &str, groups: &[&str]) -> User {
        let groups = [EVERYBODY].iter().chain(groups).map(|g| (*g).to_owned());
        let mut config = self.kubeconfig.clone();
        config.auth_info = AuthInfo {
            impersonate: Some(name.into()),
            impersonate_groups: Some(groups.collect()),
            ..config.auth_info
        };
        User {
            client: Client::try_from(config).expect("a client"),
            namespace: self.namespace.clone(),
        }
    }

    pub fn analyst(&self) -> User {
        self.user("alice", &[])
    }

    pub fn worker(&self) -> User {
        self.user(
            &format!("system:serviceaccount:{}:trawl-worker", self.namespace),
            &[],
        )
    }

    pub fn administrator(&self) -> User {
        self.user("ada", &[ADMINISTRATORS])
    }

    /// What the ledger holds about objects of this name.
    pub fn records_of(&self, name: &str) -> Vec<Record> {
        let mut all = self.records();
        all.retain(|r| r.entry.resource.name == name);
        all
    }

    /// What the ledger holds, after it was verified.
    pub fn records(&self) -> Vec<Record> {
        trawl_audit::verify(&self.ledger).expect("the ledger is whole");
        let text = std::fs::read_to_string(&self.ledger).expect("the ledger");
        text.lines()
            .map(|l| serde_json::from_str(l).expect("a record"))
            .collect()
    }

    /// Leaves nothing behind in the cluster. The configurations go first: they would refuse the rest.
    pub async fn end(mut self) {
        for purpose in [Purpose::Mutate, Purpose::Validate] {
            let path = format!("{}/{}", configurations(purpose), configuration(&self.namespace));
            let _ = send(&self.admin, "DELETE", &path, None).await;
        }
        self.stop().await;
        for namespace in [&self.namespace, &self.outside] {
            let api: Api<Namespace> = Api::all(self.admin.clone());
            let _ = api.delete(namespace, &DeleteParams::default()).await;
        }
        forget(&self.admin, &self.namespace).await;
    }
}

impl User {
    /// The same user in another namespace.
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self {
            namespace: namespace.into(),
            ..self.clone()
        }
    }

    fn path(&self, object: &Value) -> String {
        let kind = object["kind"].as_str().expect("a kind");
        let plural = HOOKED
            .iter()
            .find(|h| h.kind.as_str() == kind)
            .expect("one of the four")
            .plural;
        format!(
            "/apis/trawl.cloud/v1alpha1/namespaces/{}/{plural}",
            self.namespace
        )
    }

    fn path_of(&self, object: &Value) -> String {
        format!(
            "{}/{}",
            self.path(object),
            object["metadata"]["name"].as_str().expect("a name")
        )
    }

    pub async fn create(&self, object: &Value) -> Result<Value, Refusal> {
        self.create_with(object, "fieldValidation=Strict").await
    }

    pub async fn create_with(&self, object: &Value, query: &str) -> Result<Value, Refusal> {
        let mut object = object.clone();
        object["metadata"]["namespace"] = self.namespace.as_str().into();
        let path = format!("{}?{query}", self.path(&object));
        send(&self.client, "POST", &path, Some(&object)).await
    }

    pub async fn replace(&self, object: &Value) -> Result<Value, Refusal> {
        let path = format!("{}?fieldValidation=Strict", self.path_of(object));
        send(&self.client, "PUT", &path, Some(object)).await
    }

    /// Writes the status of an object, which no webhook sees.
    pub async fn report(&self, object: &Value, status: Value) -> Value {
        let mut object = self.get(object).await.expect("there");
        object["status"] = status;
        let path = format!("{}/status", self.path_of(&object));
        send(&self.client, "PUT", &path, Some(&object))
            .await
            .expect("a status")
    }

    pub async fn get(&self, object: &Value) -> Result<Value, Refusal> {
        send(&self.client, "GET", &self.path_of(object), None).await
    }

    pub async fn delete(&self, object: &Value) -> Result<Value, Refusal> {
        send(&self.client, "DELETE", &self.path_of(object), None).await
    }
}

fn configurations(purpose: Purpose) -> String {
    let plural = format!("{}s", purpose.configuration_kind().to_lowercase());
    format!("/apis/admissionregistration.k8s.io/v1/{plural}")
}

/// Prints a line that the test harness shows also when the test passes.
pub fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A tap that is in order.
pub fn tap(name: &str) -> Value {
    let mut object = crate::cases::sample("networktap-mirror");
    object["metadata"]["name"] = name.into();
    object
}

/// A sample under another name.
pub fn named(sample: &str, name: &str) -> Value {
    let mut object = crate::cases::sample(sample);
    object["metadata"]["name"] = name.into();
    object
}

fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address")
}

async fn send(client: &Client, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Refusal> {
    let body = body.map(|b| b.to_string().into_bytes()).unwrap_or_default();
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(body)
        .expect("a request");
    match client.request::<Value>(request).await {
        Ok(value) => Ok(value),
        Err(kube::Error::Api(status)) => {
            let causes = status.details.iter().flat_map(|d| &d.causes);
            Err(Refusal {
                code: status.code,
                message: status.message.clone(),
                causes: causes.map(|c| (c.field.clone(), c.message.clone())).collect(),
            })
        }
        Err(other) => panic!("the API server did not answer {method} {path}: {other}"),
    }
}
