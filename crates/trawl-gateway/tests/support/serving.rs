//! The gateway itself: the program where the test has it, otherwise the same code in this process.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use trawl_config::store::StoreConfig;

use super::callers::GatewayIdentity;

/// An authority, and a certificate of it for 127.0.0.1.
pub struct Certificates {
    pub ca: PathBuf,
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Certificates {
    pub fn make(dir: &Path) -> Self {
        let ca_key = KeyPair::generate().expect("key");
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&ca_key).expect("authority");
        let issuer = Issuer::new(params, ca_key);
        let key = KeyPair::generate().expect("key");
        let params =
            CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).expect("parameters");
        let cert = params.signed_by(&key, &issuer).expect("certificate");
        let made = Self {
            ca: dir.join("ca.crt"),
            cert: dir.join("tls.crt"),
            key: dir.join("tls.key"),
        };
        std::fs::write(&made.ca, ca.pem()).expect("ca.crt");
        std::fs::write(&made.cert, cert.pem()).expect("tls.crt");
        std::fs::write(&made.key, key.serialize_pem()).expect("tls.key");
        made
    }

    /// A client that trusts this authority alone and follows no redirect.
    pub fn client(&self) -> reqwest::Client {
        let pem = std::fs::read(&self.ca).expect("ca.crt");
        reqwest::Client::builder()
            .tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem).expect("authority"))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("client")
    }
}

/// A running gateway.
pub struct Gateway {
    pub address: SocketAddr,
    /// Where the program answers the kubelet; `None` in this process.
    pub health: Option<SocketAddr>,
    runs: Runs,
}

enum Runs {
    Program {
        child: Child,
        log: PathBuf,
    },
    Here {
        stop: oneshot::Sender<()>,
        ended: tokio::task::JoinHandle<()>,
    },
}

impl Gateway {
    pub async fn start(
        dir: &Path,
        namespace: &str,
        store: &StoreConfig,
        credentials: &Path,
        identity: &GatewayIdentity,
        certificates: &Certificates,
    ) -> Self {
        let kubeconfig = dir.join("gateway.kubeconfig");
        std::fs::write(&kubeconfig, &identity.kubeconfig).expect("kubeconfig");
        match option_env!("CARGO_BIN_EXE_trawl-gateway") {
            Some(program) => {
                start_program(
                    program,
                    dir,
                    namespace,
                    store,
                    credentials,
                    &kubeconfig,
                    certificates,
                )
                .await
            }
            None => start_here(namespace, store, credentials, &kubeconfig, certificates).await,
        }
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Ends it in good order and returns its log, which is empty when it ran in this process.
    pub async fn stop(self) -> String {
        match self.runs {
            Runs::Here { stop, ended } => {
                let _ = stop.send(());
                ended.await.expect("gateway");
                String::new()
            }
            Runs::Program { mut child, log } => {
                let pid = i32::try_from(child.id()).expect("pid");
                let pid = rustix::process::Pid::from_raw(pid).expect("pid");
                rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("SIGTERM");
                let status = tokio::task::spawn_blocking(move || child.wait())
                    .await
                    .expect("wait")
                    .expect("wait");
                assert!(status.success(), "the gateway ended with {status}");
                std::fs::read_to_string(log).expect("log")
            }
        }
    }
}

async fn start_program(
    program: &str,
    dir: &Path,
    namespace: &str,
    store: &StoreConfig,
    credentials: &Path,
    kubeconfig: &Path,
    certificates: &Certificates,
) -> Gateway {
    let config = json!({
        "apiVersion": "config.trawl.cloud/v1",
        "namespace": namespace,
        "images": {"runner": digest("runner"), "reporter": digest("reporter"), "sensor": digest("sensor")},
        "store": store,
        "secrets": {"runner": "trawl-store-runner"},
    });
    let (config_path, log) = (dir.join("trawl.yaml"), dir.join("gateway.log"));
    std::fs::write(&config_path, config.to_string()).expect("config");
    let health = free_address();
    let mut child = Command::new(program)
        .arg("--config")
        .arg(config_path)
        .arg("--credentials-dir")
        .arg(credentials)
        .arg("--tls-cert")
        .arg(&certificates.cert)
        .arg("--tls-key")
        .arg(&certificates.key)
        .args(["--listen", "127.0.0.1:0", "--log-level", "trace"])
        .arg("--health-listen")
        .arg(health.to_string())
        .env("KUBECONFIG", kubeconfig)
        .env("RUST_LOG", "trace")
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).expect("log"))
        .spawn()
        .expect("start the gateway");
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(address) = listening(&log) {
            return Gateway {
                address,
                health: Some(health),
                runs: Runs::Program { child, log },
            };
        }
        let text = || std::fs::read_to_string(&log).unwrap_or_default();
        assert!(
            child.try_wait().expect("wait").is_none(),
            "the gateway ended: {}",
            text()
        );
        assert!(
            Instant::now() < deadline,
            "the gateway does not listen: {}",
            text()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An address that was free a moment ago.
pub fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("port");
    listener.local_addr().expect("address")
}

fn digest(name: &str) -> String {
    format!("localhost/trawl/{name}@sha256:{}", "0".repeat(64))
}

fn listening(log: &Path) -> Option<SocketAddr> {
    let text = std::fs::read_to_string(log).ok()?;
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let line = lines.into_iter().find(|line| line["message"] == "listening")?;
    line["address"].as_str()?.parse().ok()
}

async fn start_here(
    namespace: &str,
    store: &StoreConfig,
    credentials: &Path,
    kubeconfig: &Path,
    certificates: &Certificates,
) -> Gateway {
    use trawl_gateway::{run, tls};
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).expect("kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
        .await
        .expect("kubeconfig");
    let client = kube::Client::try_from(config).expect("client");
    let opened = trawl_store::Store::open(store, credentials).expect("store");
    let app = run::app(client, opened, namespace, store);
    let files = tls::Files {
        cert: certificates.cert.clone(),
        key: certificates.key.clone(),
    };
    let tls = tls::load(files).await.expect("certificate");
    let (stop, stopped) = oneshot::channel();
    let (tell, told) = oneshot::channel();
    let listen = "127.0.0.1:0".parse().expect("address");
    let ended = tokio::spawn(async move {
        let listening = |address| tell.send(address).expect("told");
        let stop = async { stopped.await.unwrap_or_default() };
        run::serve(app, tls, listen, listening, stop)
            .await
            .expect("serve");
    });
    Gateway {
        address: told.await.expect("address"),
        health: None,
        runs: Runs::Here { stop, ended },
    }
}
