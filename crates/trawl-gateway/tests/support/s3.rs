//! A site whose gateway hands out links of a real S3 server.

use std::path::PathBuf;

use trawl_config::store::{S3Config, StoreBackend, StoreConfig};
use trawl_store::Store;

use super::{PROFILE, Site};

/// The S3 server of `dev/s3 env`; without one the test fails.
pub struct S3 {
    pub config: StoreConfig,
    pub ca_pem: String,
    credentials: PathBuf,
}

impl S3 {
    /// From the environment. `endpoint` replaces the one given there: a path to the same server.
    pub fn from_env(endpoint: Option<String>) -> Self {
        let get = |name: &str| {
            std::env::var(name).unwrap_or_else(|_| {
                panic!(
                    "{name} is not set: this test needs an S3 server and an API server; run dev/test store"
                )
            })
        };
        let ca_pem = std::fs::read_to_string(get("S3_CA")).expect("S3_CA");
        let s3 = S3Config {
            endpoint: endpoint.unwrap_or_else(|| get("S3_ENDPOINT")),
            bucket: get("S3_BUCKET"),
            region: get("S3_REGION"),
            path_style: true,
            allow_http: false,
            ca_pem: Some(ca_pem.clone()),
        };
        let config = StoreConfig {
            profile: PROFILE.into(),
            backend: StoreBackend::S3(s3),
        };
        Self {
            config,
            ca_pem,
            credentials: get("S3_CREDENTIALS").into(),
        }
    }

    /// Host and port of the server.
    pub fn address() -> std::net::SocketAddr {
        let endpoint = std::env::var("S3_ENDPOINT").expect("S3_ENDPOINT is not set: run dev/test store");
        endpoint
            .trim_start_matches("https://")
            .trim_end_matches('/')
            .parse()
            .expect("S3_ENDPOINT as IP:PORT")
    }

    /// Directory with the credential of `duty`.
    pub fn credentials(&self, duty: &str) -> PathBuf {
        self.credentials.join(duty)
    }

    /// A site whose gateway has the gateway's own credential.
    pub async fn site(&self) -> Site {
        let dir = tempfile::tempdir().expect("directory");
        let site = Site::on(dir, self.config.clone(), &self.credentials("gateway"), None).await;
        // Links lead to another server than the gateway: whoever follows them trusts both authorities.
        let mut bundle = std::fs::read_to_string(&site.certificates.ca).expect("ca.crt");
        bundle.push_str(&self.ca_pem);
        std::fs::write(&site.certificates.ca, bundle).expect("ca.crt");
        site
    }

    /// Stores `content` as the runner does, and completes job `name`. Returns its UID.
    pub async fn ready(&self, site: &Site, name: &str, content: &[u8]) -> String {
        let uid = site.job(name).await;
        site.status(name, site.completed(&uid, content)).await;
        let store = Store::open(&self.config, &self.credentials("runner")).expect("store");
        let key = trawl_artifact::keys::capture_key(&site.namespace, &uid);
        store
            .put_if_absent(&key, content.to_vec().into())
            .await
            .expect("put");
        uid
    }
}
