//! Where artifacts live. Holds no secret: credentials are files in a directory given to each program.

use serde::{Deserialize, Serialize};

/// File names inside a credentials directory.
pub const ACCESS_KEY_ID_FILE: &str = "access-key-id";
pub const SECRET_ACCESS_KEY_FILE: &str = "secret-access-key";

/// One artifact store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoreConfig {
    /// Name recorded in `status.artifact.profile`.
    pub profile: String,
    pub backend: StoreBackend,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum StoreBackend {
    S3(S3Config),
    Directory(DirectoryConfig),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct S3Config {
    /// `https://host:port`; `http://` only with `allowHttp`.
    pub endpoint: String,
    pub bucket: String,
    pub region: String,
    #[serde(default = "yes")]
    pub path_style: bool,
    #[serde(default)]
    pub allow_http: bool,
    /// PEM bundle, inline, trusted besides nothing else; absent means the public roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_pem: Option<String>,
}

/// A directory on the one node that runs everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DirectoryConfig {
    /// Absolute path on the host; mounted at the same path into the programs that use it.
    pub path: String,
}

fn yes() -> bool {
    true
}
