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

/// One wrong value of a configuration: which field, what is wrong with it and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Problem {
    /// Dotted path of the field.
    pub field: String,
    pub problem: String,
}

impl StoreConfig {
    /// Everything that is wrong with this section; `at` is its own path, for example `store`.
    pub fn problems(&self, at: &str) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut refuse = |field: &str, problem: &str| {
            found.push(Problem {
                field: format!("{at}.{field}"),
                problem: problem.into(),
            });
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if self.profile.is_empty() || self.profile.len() > 63 || !self.profile.bytes().all(plain) {
            refuse("profile", "must be 1 to 63 letters, digits, '-', '_' or '.'");
        }
        match &self.backend {
            StoreBackend::S3(s3) => s3.check(&mut refuse),
            StoreBackend::Directory(directory) => directory.check(&mut refuse),
        }
        found
    }
}

impl S3Config {
    fn check(&self, refuse: &mut impl FnMut(&str, &str)) {
        let field = "backend.s3.endpoint";
        let rest = match self.endpoint.split_once("://") {
            Some(("https", rest)) => rest,
            Some(("http", rest)) => {
                if !self.allow_http {
                    refuse(
                        field,
                        "uses http: use https, or set allowHttp where nobody else can listen",
                    );
                }
                rest
            }
            _ => {
                refuse(field, "must be https://host[:port]");
                ""
            }
        };
        let host = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains('@') {
            refuse(
                field,
                "must not hold a credential: put it into the credentials Secret",
            );
        } else if !rest.is_empty() && (host.is_empty() || host.contains(['/', '?', '#', ' '])) {
            refuse(field, "must be scheme://host[:port] without path or query");
        }
        if !(3..=63).contains(&self.bucket.len()) || !self.bucket.bytes().all(is_bucket_byte) {
            refuse(
                "backend.s3.bucket",
                "must be 3 to 63 lower-case letters, digits, '-' or '.'",
            );
        }
        if self.region.is_empty() || self.region.len() > 64 || !self.region.bytes().all(is_region_byte) {
            refuse(
                "backend.s3.region",
                "must be 1 to 64 letters, digits or '-', for example us-east-1",
            );
        }
        if self
            .ca_pem
            .as_ref()
            .is_some_and(|pem| !pem.contains("-----BEGIN CERTIFICATE-----"))
        {
            refuse("backend.s3.caPem", "must be a PEM bundle of certificates");
        }
    }
}

impl DirectoryConfig {
    fn check(&self, refuse: &mut impl FnMut(&str, &str)) {
        let path = std::path::Path::new(&self.path);
        if !path.is_absolute() || path.components().any(|c| c == std::path::Component::ParentDir) {
            refuse("backend.directory.path", "must be an absolute path without '..'");
        } else if path == std::path::Path::new("/") {
            refuse("backend.directory.path", "must not be the root directory");
        }
    }
}

fn is_bucket_byte(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.'
}

fn is_region_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'-'
}

fn yes() -> bool {
    true
}
