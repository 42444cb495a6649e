//! `config.trawl.cloud/v1`: the one configuration file of an installation, read by operator and gateway.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::admission::{Audit, Retention, Worker};
use crate::names::{is_dns_label, is_dns_subdomain};
use crate::shape;
use crate::store::{Problem, StoreConfig};

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
    #[serde(default)]
    pub capture: CaptureDefaults,
    pub store: StoreConfig,
    pub secrets: StoreSecrets,
    #[serde(default)]
    pub audit: Audit,
    #[serde(default)]
    pub retention: Retention,
    #[serde(default)]
    pub worker: Worker,
}

/// Largest configuration file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why a configuration file is not used. All that is wrong is listed at once.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{path}: {source}")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{path}: larger than 1 MiB")]
    TooLarge { path: PathBuf },
    #[error("not YAML: {0}")]
    Syntax(String),
    #[error("{} problem{} in the configuration:\n{}", .0.len(), if .0.len() == 1 { "" } else { "s" }, .0.iter().map(|p| format!("  {p}")).collect::<Vec<_>>().join("\n"))]
    Invalid(Vec<Problem>),
}

impl Installation {
    /// User name of the event worker.
    pub fn worker_username(&self) -> String {
        self.worker.username(&self.namespace)
    }

    /// Reads and validates a file.
    ///
    /// # Errors
    /// Unreadable, not YAML, or every problem by field.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let failed = |source| ConfigError::Read {
            path: path.into(),
            source,
        };
        if std::fs::metadata(path).map_err(failed)?.len() > MAX_FILE_BYTES {
            return Err(ConfigError::TooLarge { path: path.into() });
        }
        Self::from_yaml(&std::fs::read_to_string(path).map_err(failed)?)
    }

    /// Parses and validates the text of a file.
    ///
    /// # Errors
    /// Not YAML, or every problem by field.
    pub fn from_yaml(text: &str) -> Result<Self, ConfigError> {
        let value: serde_json::Value =
            serde_saphyr::from_str(text).map_err(|e| ConfigError::Syntax(first_line(&e.to_string())))?;
        let mut found = Vec::new();
        shape::check(&value, shape::INSTALLATION, "", &mut found);
        if !found.is_empty() {
            return Err(ConfigError::Invalid(found));
        }
        let config: Self = serde_json::from_value(value).map_err(|e| ConfigError::Syntax(e.to_string()))?;
        match config.problems() {
            found if found.is_empty() => Ok(config),
            found => Err(ConfigError::Invalid(found)),
        }
    }

    /// Every value that is wrong.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut rule = |ok: bool, field: &str, problem: &str| {
            if !ok {
                found.push(Problem {
                    field: field.into(),
                    problem: problem.into(),
                });
            }
        };
        rule(
            self.api_version == API_VERSION,
            "apiVersion",
            "must be config.trawl.cloud/v1",
        );
        rule(
            is_dns_label(&self.namespace),
            "namespace",
            "must be a Kubernetes namespace: 1 to 63 of a-z, 0-9, '-'",
        );
        let images = &self.images;
        for (field, image) in [
            ("runner", &images.runner),
            ("reporter", &images.reporter),
            ("sensor", &images.sensor),
        ] {
            let problem = "must be pinned by digest: repository@sha256:<64 hex digits>";
            rule(is_pinned(image), &format!("images.{field}"), problem);
        }
        rule(
            is_plain_path(&self.captured.socket_dir),
            "captured.socketDir",
            "must be an absolute path without '..', and not the root directory",
        );
        rule(
            is_dns_subdomain(&self.secrets.runner),
            "secrets.runner",
            "must be the name of a Secret: up to 253 of a-z, 0-9, '-', '.'",
        );
        found.extend(self.store.problems("store"));
        found.extend(self.audit.problems());
        found.extend(self.retention.problems());
        found.extend(self.worker.problems());
        found
    }
}

/// Absolute, not the root, and without a way up.
pub(crate) fn is_plain_path(text: &str) -> bool {
    let path = Path::new(text);
    path.is_absolute() && path != Path::new("/") && !text.contains("..")
}

/// The parser's message without the excerpt of the file that it may add: that may hold what nobody should log.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().into()
}

fn is_pinned(image: &str) -> bool {
    image.split_once("@sha256:").is_some_and(|(name, digest)| {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        !name.is_empty() && !name.contains([' ', '@']) && digest.len() == 64 && digest.bytes().all(hex)
    })
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

/// How captures are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaptureDefaults {
    /// Filters are also asked about the packets inside VXLAN, GRE and Geneve.
    #[serde(default)]
    pub filter_tunnels: bool,
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

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn yaml() -> String {
        format!(
            "apiVersion: config.trawl.cloud/v1
namespace: trawl-system
images:
  runner: localhost/trawl/runner@sha256:{DIGEST}
  reporter: localhost/trawl/reporter@sha256:{DIGEST}
  sensor: localhost/trawl/sensor@sha256:{DIGEST}
captured: {{socketDir: /run/trawl}}
store:
  profile: local
  backend:
    s3: {{endpoint: 'https://s3:7070', bucket: captures, region: us-east-1, pathStyle: true, allowHttp: false,
         caPem: '-----BEGIN CERTIFICATE-----'}}
secrets: {{runner: trawl-store-runner}}
"
        )
    }

    fn fields(text: &str) -> Vec<String> {
        match Installation::from_yaml(text) {
            Err(ConfigError::Invalid(found)) => found.into_iter().map(|p| p.field).collect(),
            other => panic!("wanted problems, got {other:?}"),
        }
    }

    #[test]
    fn a_complete_file_is_accepted() {
        let config = Installation::from_yaml(&yaml()).unwrap();
        assert_eq!(config.captured.socket_dir, "/run/trawl");
        assert_eq!(config.audit.directory, "/var/lib/trawl/audit");
        assert_eq!(config.retention.ceiling().as_secs(), 30 * 24 * 3600);
        assert_eq!(
            config.retention.administrators,
            ["trawl:retention-administrators"]
        );
        assert_eq!(
            config.worker_username(),
            "system:serviceaccount:trawl-system:trawl-worker"
        );
        assert!(!config.capture.filter_tunnels, "off unless it is asked for");
        let config = Installation::from_yaml(&(yaml() + "capture: {filterTunnels: true}\n")).unwrap();
        assert!(config.capture.filter_tunnels);
    }

    #[test]
    fn every_wrong_value_of_what_admission_needs_is_listed_at_once() {
        let wrong = "audit: {directory: var/lib}
retention: {ceiling: 31d, administrators: ['']}
worker: {serviceAccount: Worker}
";
        let wanted = [
            "audit.directory",
            "retention.ceiling",
            "retention.administrators",
            "worker.serviceAccount",
        ];
        assert_eq!(fields(&(yaml() + wrong)), wanted);
        let mistyped = "retention: {administrators: [1], floor: 1h}\n";
        assert_eq!(
            fields(&(yaml() + mistyped)),
            ["retention.floor", "retention.administrators"]
        );
    }

    #[test]
    fn every_unknown_missing_and_mistyped_field_is_listed_at_once() {
        let text = yaml()
            .replace("profile: local", "profil: local")
            .replace("pathStyle: true", "pathStyle: often")
            .replace("captured: {socketDir: /run/trawl}", "telemetry: on");
        assert_eq!(
            fields(&text),
            [
                "telemetry",
                "store.profil",
                "store.profile",
                "store.backend.s3.pathStyle"
            ]
        );
    }

    #[test]
    fn every_wrong_value_is_listed_at_once() {
        let text = yaml()
            .replace("config.trawl.cloud/v1", "v1")
            .replace(&format!("sensor@sha256:{DIGEST}"), "sensor:latest")
            .replace("/run/trawl", "run")
            .replace("https://s3:7070", "s3:7070");
        assert_eq!(
            fields(&text),
            [
                "apiVersion",
                "images.sensor",
                "captured.socketDir",
                "store.backend.s3.endpoint"
            ]
        );
    }

    #[test]
    fn two_backends_or_none_are_refused() {
        assert_eq!(
            fields(&yaml().replace("    s3: {", "    directory: {path: /x}\n    s3: {")),
            ["store.backend"]
        );
        assert_eq!(
            fields(&yaml().replace("    s3: {", "    tape: {")),
            ["store.backend.tape", "store.backend"]
        );
    }

    #[test]
    fn text_that_is_not_yaml_is_an_error_without_an_excerpt() {
        let error = Installation::from_yaml("secret: [hunter2")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("not YAML") && !error.contains("hunter2"),
            "{error}"
        );
    }

    /// The table of shapes and the decoder must not drift apart.
    #[test]
    fn the_shape_names_exactly_the_fields_that_the_decoder_knows() {
        fn names(fields: &[shape::Field], value: &serde_json::Value) {
            let mut ours: Vec<_> = fields.iter().map(|f| f.name).collect();
            let mut theirs: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
            ours.sort_unstable();
            theirs.sort_unstable();
            assert_eq!(ours, theirs);
            for field in fields {
                match &field.shape {
                    shape::Shape::Object(inner) => names(inner, &value[field.name]),
                    shape::Shape::OneOf(inner) => {
                        let shape::Shape::Object(s3) = &inner[0].shape else {
                            panic!("s3 is an object")
                        };
                        names(s3, &value[field.name]["s3"]);
                    }
                    _ => {}
                }
            }
        }
        let value = serde_json::to_value(Installation::from_yaml(&yaml()).unwrap()).unwrap();
        names(shape::INSTALLATION, &value);
    }
}
