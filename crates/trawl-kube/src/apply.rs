//! Server-side apply. The field manager says who owns what; conflicts between managers are a mistake of ours and are
//! settled by force, never by dropping the request.

use std::fmt::Debug;

use kube::api::{Api, Patch, PatchParams};
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Applies `object`, which must carry its name, and returns what is stored now.
pub async fn apply<K>(api: &Api<K>, manager: &str, name: &str, object: &(impl Serialize + Debug)) -> kube::Result<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    api.patch(name, &params(manager), &Patch::Apply(object)).await
}

/// Applies the `status` subresource: exactly the given fields belong to `manager` afterwards. With `uid` the request
/// fails on an object that was re-created under the same name.
pub async fn apply_status<K>(
    api: &Api<K>,
    manager: &str,
    name: &str,
    uid: Option<&str>,
    status: &impl Serialize,
) -> kube::Result<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let mut metadata = serde_json::json!({"name": name});
    if let Some(uid) = uid {
        metadata["uid"] = uid.into();
    }
    let body = serde_json::json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": metadata,
        "status": status,
    });
    api.patch_status(name, &params(manager), &Patch::Apply(body)).await
}

fn params(manager: &str) -> PatchParams {
    PatchParams::apply(manager).force()
}

/// Whether the API server says that the object does not exist.
pub fn is_not_found(error: &kube::Error) -> bool {
    has_code(error, 404)
}

/// Whether the API server refuses because something else is there or was changed meanwhile.
pub fn is_conflict(error: &kube::Error) -> bool {
    has_code(error, 409)
}

fn has_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}
