//! A running Trawl installation, found through the environment that `dev/test cluster` sets.

use std::{env, path::PathBuf};

use anyhow::{Context, Result};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// Handles on the cluster, the world outside it, and the tools.
pub struct Line {
    pub client: Client,
    pub kubeconfig: PathBuf,
    pub node: String,
    pub node_netns: String,
    /// Interface inside the node that sees mirrored traffic.
    pub mirror_iface: String,
    /// Its far end, in this network namespace.
    pub mirror_peer: String,
    pub gateway_url: String,
    pub gateway_ca: PathBuf,
    pub trawlctl: PathBuf,
    /// `s3` or `directory`.
    pub store: String,
}

/// Reads one variable of the test environment.
pub fn var(name: &str) -> Result<String> {
    env::var(name).with_context(|| format!("{name} is not set: run these tests with `dev/test cluster`"))
}

impl Line {
    pub async fn from_env() -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kubeconfig = PathBuf::from(var("TRAWL_TEST_KUBECONFIG")?);
        let config = Config::from_custom_kubeconfig(
            Kubeconfig::read_from(&kubeconfig)?,
            &KubeConfigOptions::default(),
        )
        .await?;
        Ok(Self {
            client: Client::try_from(config)?,
            kubeconfig,
            node: var("NODE_NAME")?,
            node_netns: var("NODE_NETNS")?,
            mirror_iface: var("MIRROR_IFACE")?,
            mirror_peer: var("MIRROR_PEER")?,
            gateway_url: var("TRAWL_GATEWAY_URL")?,
            gateway_ca: var("TRAWL_GATEWAY_CA")?.into(),
            trawlctl: var("TRAWLCTL")?.into(),
            store: var("TRAWL_STORE")?,
        })
    }
}
