//! `config.trawl.cloud/v1`: the one configuration file of an installation, read by operator and gateway.

use serde::{Deserialize, Serialize};

use crate::store::StoreConfig;

/// The only accepted value of [`Installation::api_version`].
pub const API_VERSION: &str = "config.trawl.cloud/v1";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Installation {
    pub api_version: String,
    /// The one namespace that Trawl watches.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    pub images: Images,
    #[serde(default)]
    pub captured: Captured,
    pub store: StoreConfig,
    pub secrets: StoreSecrets,
}

/// Image references of the pods that the operator makes, pinned by digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Images {
    pub runner: String,
    pub reporter: String,
    pub sensor: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Captured {
    /// Host directory that holds `captured.sock`; mounted into runner and sensor pods at `/run/trawl`.
    #[serde(default = "default_socket_dir")]
    pub socket_dir: String,
}

impl Default for Captured {
    fn default() -> Self {
        Self {
            socket_dir: default_socket_dir(),
        }
    }
}

/// Names of Secrets in the system namespace; keys as in [`crate::store`]. Ignored by the directory store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoreSecrets {
    /// Credential that may only create objects; mounted into the runner alone.
    pub runner: String,
}

fn default_namespace() -> String {
    "trawl-system".into()
}

fn default_socket_dir() -> String {
    "/run/trawl".into()
}
