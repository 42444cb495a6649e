//! A client of the real API server, the definitions installed, and a namespace for each test.

use std::{
    future::Future,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use http::{Method, Request};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

/// A namespace on the API server.
#[derive(Clone)]
pub struct Api {
    client: Client,
    pub namespace: String,
}

/// What the API server answers when it refuses.
#[derive(Debug)]
pub struct Refusal {
    pub code: u16,
    pub message: String,
    /// Field and message of each problem.
    pub causes: Vec<(String, String)>,
}

/// Runs `body` in a namespace of its own and removes the namespace whatever happens.
pub async fn in_namespace<F: Future<Output = ()> + Send + 'static>(body: impl FnOnce(Api) -> F) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let client = connect().await;
    install(&client).await;
    let namespace = format!(
        "trawl-api-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let api = Api { client, namespace };
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": api.namespace}});
    api.send(Method::POST, "/api/v1/namespaces", Some(&object))
        .await
        .expect("a namespace");
    let outcome = tokio::spawn(body(api.clone())).await;
    let path = format!("/api/v1/namespaces/{}", api.namespace);
    let removed = api.send(Method::DELETE, &path, None).await;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic.into_panic());
    }
    removed.expect("the namespace can be removed");
}

async fn connect() -> Client {
    let path = std::env::var("TRAWL_TEST_KUBECONFIG")
        .expect("TRAWL_TEST_KUBECONFIG must name the kubeconfig of a test API server: run dev/test api");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(&path).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a usable kubeconfig")).expect("a client")
}

/// Installs the definitions. That they install at all is the proof that every rule is within the cost budget.
async fn install(client: &Client) {
    let api = Api {
        client: client.clone(),
        namespace: String::new(),
    };
    for definition in trawl_api::crds::all().expect("definitions") {
        let path = format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}",
            definition.name
        );
        // By force: on a control plane that is kept, earlier definitions may belong to other tests.
        api.apply_to(
            &format!("{path}?fieldManager=trawl-api-tests&force=true&fieldValidation=Strict"),
            &definition.value,
        )
        .await
        .expect("the definition installs");
        for attempt in 0.. {
            let crd = api
                .send(Method::GET, &path, None)
                .await
                .expect("the definition is there");
            let conditions = crd["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            if let Some(bad) = conditions
                .iter()
                .find(|c| c["type"] == "NonStructuralSchema" && c["status"] == "True")
            {
                panic!("{} is not structural: {bad}", definition.name);
            }
            if conditions
                .iter()
                .any(|c| c["type"] == "Established" && c["status"] == "True")
            {
                break;
            }
            assert!(
                attempt < 200,
                "{} was not established: {conditions:?}",
                definition.name
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Plural of the kind of `object`.
pub fn plural(object: &Value) -> &'static str {
    match object["kind"].as_str().expect("kind") {
        "NetworkTap" => "networktaps",
        "CapturePolicy" => "capturepolicies",
        "CaptureJob" => "capturejobs",
        "PortMirror" => "portmirrors",
        other => panic!("unknown kind {other}"),
    }
}

/// Whether `stored` holds all that was sent; it may hold defaults besides.
pub fn holds(stored: &Value, sent: &Value) -> bool {
    match (stored, sent) {
        (Value::Object(stored), Value::Object(sent)) => sent
            .iter()
            .all(|(key, sent)| stored.get(key).is_some_and(|stored| holds(stored, sent))),
        _ => stored == sent,
    }
}

impl Api {
    fn collection(&self, plural: &str) -> String {
        format!(
            "/apis/trawl.cloud/v1alpha1/namespaces/{}/{plural}",
            self.namespace
        )
    }

    /// Path of `object`.
    pub fn path(&self, object: &Value) -> String {
        let name = object["metadata"]["name"].as_str().expect("name");
        format!("{}/{name}", self.collection(plural(object)))
    }

    /// Creates `object` in this namespace, strictly.
    pub async fn create(&self, object: &Value) -> Result<Value, Refusal> {
        self.create_with(object, "Strict").await
    }

    /// Creates `object` with a `fieldValidation` of Strict, Warn or Ignore.
    pub async fn create_with(&self, object: &Value, validation: &str) -> Result<Value, Refusal> {
        let mut object = object.clone();
        object["metadata"]["namespace"] = self.namespace.as_str().into();
        let path = format!(
            "{}?fieldValidation={validation}",
            self.collection(plural(&object))
        );
        self.send(Method::POST, &path, Some(&object)).await
    }

    /// Replaces `object`, which carries its resource version.
    pub async fn replace(&self, object: &Value) -> Result<Value, Refusal> {
        let path = format!("{}?fieldValidation=Strict", self.path(object));
        self.send(Method::PUT, &path, Some(object)).await
    }

    /// Server-side apply as `manager`, without force.
    pub async fn apply(&self, path: &str, manager: &str, object: &Value) -> Result<Value, Refusal> {
        self.apply_to(
            &format!("{path}?fieldManager={manager}&fieldValidation=Strict"),
            object,
        )
        .await
    }

    async fn apply_to(&self, path: &str, object: &Value) -> Result<Value, Refusal> {
        let body = object.to_string().into_bytes();
        let request = Request::patch(path)
            .header("content-type", "application/apply-patch+yaml")
            .body(body);
        self.answer(request.expect("a request")).await
    }

    /// Posts `object` to `path`.
    pub async fn post(&self, path: &str, object: &Value) -> Result<Value, Refusal> {
        self.send(Method::POST, path, Some(object)).await
    }

    /// Replaces what is at `path`, strictly.
    pub async fn put(&self, path: &str, object: &Value) -> Result<Value, Refusal> {
        let path = format!("{path}?fieldValidation=Strict");
        self.send(Method::PUT, &path, Some(object)).await
    }

    /// Reads what is at `path`.
    pub async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, None)
            .await
            .unwrap_or_else(|e| panic!("{path}: {e:?}"))
    }

    /// Reads the collection of a kind as the table that kubectl prints.
    pub async fn table(&self, plural: &str) -> Value {
        let request = Request::get(self.collection(plural))
            .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(vec![]);
        self.answer(request.expect("a request")).await.expect("a table")
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Refusal> {
        let bytes = body.map(|b| b.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json");
        self.answer(request.body(bytes).expect("a request")).await
    }

    async fn answer(&self, request: Request<Vec<u8>>) -> Result<Value, Refusal> {
        match self.client.request::<Value>(request).await {
            Ok(value) => Ok(value),
            Err(kube::Error::Api(status)) => {
                let causes = status.details.iter().flat_map(|d| &d.causes);
                let causes = causes.map(|c| (c.field.clone(), c.message.clone())).collect();
                Err(Refusal {
                    code: status.code,
                    message: status.message.clone(),
                    causes,
                })
            }
            Err(other) => panic!("the API server did not answer: {other}"),
        }
    }
}
