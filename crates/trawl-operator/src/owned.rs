//! Objects that belong to one CaptureJob or NetworkTap: names, labels, owner, and never taking over a stranger's.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use trawl_api::names::OPERATOR_FIELD_MANAGER;
use trawl_kube::apply::apply;

use crate::context::Context;
use crate::error::{Error, Step};

/// Name of the owner on pods, whose owner reference names only the workload.
pub const OWNER_ANNOTATION: &str = "trawl.cloud/owner-name";

/// Whether `object` is controlled by the object with this UID.
pub fn is_owned(object: &impl ResourceExt, uid: &str) -> bool {
    object.owner_references().iter().any(|o| o.uid == uid && o.controller == Some(true))
}

/// Metadata of a part: name, owner, and the label by which parts are watched.
pub fn metadata(name: &str, namespace: &str, owner: OwnerReference, labels: BTreeMap<String, String>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        namespace: Some(namespace.into()),
        owner_references: Some(vec![owner]),
        labels: Some(labels),
        ..ObjectMeta::default()
    }
}

/// The standard labels of a part.
pub fn labels(component: &str, uid_label: &str, uid: &str) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", component),
        ("app.kubernetes.io/part-of", "trawl"),
        ("app.kubernetes.io/managed-by", OPERATOR_FIELD_MANAGER),
        (uid_label, uid),
    ]
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .into()
}

/// Applies a part, unless something of that name belongs to somebody else.
pub async fn ensure<K>(ctx: &Context, uid: &str, object: &K) -> Result<(), Error>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug,
{
    let api = ctx.api::<K>();
    let name = object.name_any();
    if let Some(found) = api.get_metadata_opt(&name).await.step("look for an owned object")?
        && !is_owned(&found, uid)
    {
        return Err(Error::Foreign { kind: K::kind(&()).into_owned(), name });
    }
    apply(&api, OPERATOR_FIELD_MANAGER, &name, object).await.step("apply an owned object")?;
    Ok(())
}

/// The identity under which a part's pod talks to the API: an account, what it may do, and the binding.
pub fn identity(meta: &ObjectMeta, rules: Vec<PolicyRule>) -> (ServiceAccount, Role, RoleBinding) {
    let name = meta.name.clone().unwrap_or_default();
    let account = ServiceAccount {
        metadata: meta.clone(),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    };
    let role = Role { metadata: meta.clone(), rules: Some(rules) };
    let binding = RoleBinding {
        metadata: meta.clone(),
        role_ref: RoleRef { api_group: "rbac.authorization.k8s.io".into(), kind: "Role".into(), name: name.clone() },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".into(),
            name,
            namespace: meta.namespace.clone(),
            ..Subject::default()
        }]),
    };
    (account, role, binding)
}

/// One rule on one named object.
pub fn rule(group: &str, resource: &str, name: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(vec![resource.into()]),
        resource_names: Some(vec![name.into()]),
        verbs: verbs.iter().map(|v| (*v).to_owned()).collect(),
        ..PolicyRule::default()
    }
}
