//! The Secret and the two webhook configurations on the API server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use trawl_api::names::OPERATOR_FIELD_MANAGER;
use trawl_api::webhooks::Purpose;
use trawl_kube::apply::is_not_found;

use super::kept::Kept;
use crate::error::{Error, Step};

/// Where certificate and bundles are kept.
pub struct Cluster {
    secrets: Api<Secret>,
    secret: String,
    configurations: [(Purpose, Api<DynamicObject>); 2],
    configuration: String,
}

/// The Secret as it was read.
pub struct Read {
    object: Secret,
    pub kept: Kept,
}

/// One configuration as it was read.
pub struct Configured {
    version: String,
    /// The bundle of each webhook.
    bundles: Vec<String>,
}

impl Cluster {
    pub fn new(client: &Client, namespace: &str, secret: &str, configuration: &str) -> Self {
        let api = |purpose: Purpose| {
            let kind = purpose.configuration_kind();
            let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
            let plural = format!("{}s", kind.to_lowercase());
            let resource = ApiResource::from_gvk_with_plural(&gvk, &plural);
            (purpose, Api::all_with(client.clone(), &resource))
        };
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            secret: secret.into(),
            configurations: [Purpose::Mutate, Purpose::Validate].map(api),
            configuration: configuration.into(),
        }
    }

    pub async fn read(&self) -> Result<Read, Error> {
        let object = self
            .secrets
            .get(&self.secret)
            .await
            .map_err(|e| self.explained(e, &self.secret))?;
        let kept = object.data.as_ref().map(Kept::from_data).unwrap_or_default();
        Ok(Read { object, kept })
    }

    /// Replaces the Secret, unless somebody else did meanwhile.
    pub async fn write(&self, read: Read, kept: &Kept) -> Result<(), Error> {
        let mut object = read.object;
        object.data = Some(kept.to_data());
        let params = PostParams {
            field_manager: Some(OPERATOR_FIELD_MANAGER.into()),
            ..PostParams::default()
        };
        let written = self.secrets.replace(&self.secret, &params, &object).await;
        written.map(drop).step("keep the webhooks' certificate")
    }

    /// Both configurations, in the order of `self.configurations`.
    pub async fn configured(&self) -> Result<Vec<Configured>, Error> {
        let mut all = Vec::new();
        for (purpose, api) in &self.configurations {
            let object = api.get(&self.configuration).await;
            let object = object.map_err(|e| self.explained(e, purpose.configuration_kind()))?;
            let webhooks = object.data["webhooks"].as_array().into_iter().flatten();
            let bundle = |w: &serde_json::Value| {
                let bundle = w["clientConfig"]["caBundle"].as_str().unwrap_or_default();
                let bundle = STANDARD.decode(bundle).unwrap_or_default();
                String::from_utf8_lossy(&bundle).into_owned()
            };
            all.push(Configured {
                bundles: webhooks.map(bundle).collect(),
                version: object.metadata.resource_version.unwrap_or_default(),
            });
        }
        Ok(all)
    }

    /// Puts the bundle into every webhook that has another one, unless somebody else changed the configuration
    /// meanwhile.
    pub async fn trust(&self, configured: &[Configured], bundle: &str) -> Result<(), Error> {
        let value = STANDARD.encode(bundle);
        for ((_, api), known) in self.configurations.iter().zip(configured) {
            let other = known.bundles.iter().enumerate().filter(|(_, old)| *old != bundle);
            let mut operations: Vec<_> = other
                .map(|(n, _)| json!({"op": "add", "path": format!("/webhooks/{n}/clientConfig/caBundle"), "value": value}))
                .collect();
            if operations.is_empty() {
                continue;
            }
            operations
                .push(json!({"op": "add", "path": "/metadata/resourceVersion", "value": known.version}));
            let patch = serde_json::from_value(operations.into()).map_err(|source| Error::Encode {
                what: "a bundle of authorities",
                source,
            })?;
            let params = PatchParams {
                field_manager: Some(OPERATOR_FIELD_MANAGER.into()),
                ..PatchParams::default()
            };
            api.patch(&self.configuration, &params, &Patch::<()>::Json(patch))
                .await
                .step("put the authority into the webhook configurations")?;
        }
        Ok(())
    }

    fn explained(&self, error: kube::Error, what: &str) -> Error {
        if is_not_found(&error) {
            let what = if what == self.secret {
                format!("Secret {what}")
            } else {
                format!("{what} {}", self.configuration)
            };
            return Error::NotInstalled { what };
        }
        Error::Api {
            step: "read what the webhooks' certificate depends on",
            source: Box::new(error),
        }
    }
}

/// The bundle of every single webhook.
pub fn bundles(configured: &[Configured]) -> Vec<String> {
    configured.iter().flat_map(|c| c.bundles.clone()).collect()
}
