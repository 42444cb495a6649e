//! Server-side apply. The field manager says who owns what; conflicts between managers are a mistake of ours and are
//! settled by force, never by dropping the request.

use std::fmt::Debug;

use kube::Resource;
use kube::api::{Api, Patch, PatchParams};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Applies `object`, which must carry its name, and returns what is stored now.
pub async fn apply<K>(
    api: &Api<K>,
    manager: &str,
    name: &str,
    object: &(impl Serialize + Debug),
) -> kube::Result<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    api.patch(name, &params(manager), &Patch::Apply(object)).await
}

/// Applies the `status` subresource: exactly the given fields belong to `manager` afterwards.
///
/// With `uid` an object that was re-created under the same name is left alone and the answer is a conflict. The API
/// server ignores `metadata.uid` in an apply of a custom resource's status, so the UID is read and the resource
/// version that was read with it is the precondition.
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
    let mut body = serde_json::json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": {"name": name},
        "status": status,
    });
    let Some(uid) = uid else {
        return api
            .patch_status(name, &params(manager), &Patch::Apply(&body))
            .await;
    };
    let mut attempt = 1;
    loop {
        let now = api.get_metadata(name).await?.metadata;
        if now.uid.as_deref() != Some(uid) {
            return Err(recreated(name));
        }
        body["metadata"]["resourceVersion"] = now.resource_version.into();
        match api
            .patch_status(name, &params(manager), &Patch::Apply(&body))
            .await
        {
            // Somebody else wrote between the two requests.
            Err(error) if is_conflict(&error) && attempt < STATUS_ATTEMPTS => attempt += 1,
            answer => return answer,
        }
    }
}

/// How often a status write is tried while others write to the same object.
const STATUS_ATTEMPTS: u32 = 5;

fn recreated(name: &str) -> kube::Error {
    let message = format!("{name} was re-created under the same name; its status belongs to another object");
    kube::Error::Api(
        kube::core::Status::failure(&message, "Conflict")
            .with_code(409)
            .boxed(),
    )
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
