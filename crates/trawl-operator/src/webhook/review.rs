//! What the API server asks, and what it is told: `AdmissionReview` of `admission.k8s.io/v1`, as far as we need it.

use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Value, json};
use trawl_api::FieldProblem;
use trawl_api::names::{GROUP, VERSION};
use trawl_api::webhooks::{Hooked, Purpose};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";
/// The API server sends UUIDs.
const MAX_UID_BYTES: usize = 128;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    request: Option<Asked>,
}

/// A request for admission.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// Identity of this request.
    pub uid: String,
    kind: GroupVersionKind,
    resource: GroupVersionResource,
    #[serde(default)]
    sub_resource: Option<String>,
    /// Name of the object; empty while only a generateName is known.
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub namespace: String,
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub operation: String,
    pub user_info: UserInfo,
    #[serde(default)]
    pub object: Option<Value>,
    #[serde(default)]
    pub old_object: Option<Value>,
    #[serde(default)]
    pub dry_run: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
struct GroupVersionKind {
    group: String,
    version: String,
    kind: String,
}

#[derive(Clone, Debug, Deserialize)]
struct GroupVersionResource {
    group: String,
    resource: String,
}

/// Who asks, as the API server authenticated them.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct UserInfo {
    #[serde(default)]
    pub username: String,
    #[serde(default)]
    pub uid: String,
    #[serde(default)]
    pub groups: Option<Vec<String>>,
}

/// A body that is no request for admission; there is no identity to answer to.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

impl Asked {
    /// Reads a body.
    ///
    /// # Errors
    /// It is not an AdmissionReview of version 1 with a request.
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        let no = |why: &str| Malformed(format!("the body must be an {KIND} of {API_VERSION}: {why}"));
        // The parser's words are left out: they may repeat what the body holds.
        let review: Review = serde_json::from_slice(body)
            .map_err(|e| no(&format!("line {} column {} does not fit", e.line(), e.column())))?;
        if review.api_version != API_VERSION || review.kind != KIND {
            return Err(no("apiVersion or kind differs"));
        }
        let asked = review.request.ok_or_else(|| no("request is missing"))?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        if asked.uid.is_empty() || asked.uid.len() > MAX_UID_BYTES || !asked.uid.bytes().all(plain) {
            return Err(no("request.uid must be 1 to 128 letters, digits and '-'"));
        }
        Ok(asked)
    }

    /// Why this request does not belong to the path that it came in by; `None` when it does.
    pub fn misplaced(&self, hooked: &Hooked, purpose: Purpose) -> Option<String> {
        let (kind, resource) = (&self.kind, &self.resource);
        let ours = kind.group == GROUP
            && kind.version == VERSION
            && kind.kind == hooked.kind.as_str()
            && resource.group == GROUP
            && resource.resource == hooked.plural
            && self.sub_resource.as_deref().unwrap_or_default().is_empty();
        let operations: &[&str] = match purpose {
            Purpose::Mutate => &["CREATE", "UPDATE"],
            Purpose::Validate => &["CREATE", "UPDATE", "DELETE"],
        };
        if ours && operations.contains(&self.operation.as_str()) {
            return None;
        }
        Some(format!(
            "{} answers for {GROUP}/{VERSION} {} and {} only; apply the webhook configurations of this version again",
            hooked.path(purpose),
            hooked.kind,
            operations.join(", ")
        ))
    }
}

/// What the API server is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Go on, with these operations of a JSON patch.
    Admitted {
        patch: Vec<Value>,
        warnings: Vec<String>,
    },
    /// No.
    Refused(Refusal),
}

/// A refusal as a `metav1.Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// Reason of the API, for example `Invalid`.
    pub reason: &'static str,
    pub message: String,
    /// Every problem by field.
    pub causes: Vec<FieldProblem>,
    pub warnings: Vec<String>,
}

impl Answer {
    /// The body of the answer to request `uid` about an object of `kind`.
    pub fn to_review(&self, asked: &Asked) -> Value {
        let mut response = match self {
            Self::Admitted { patch, .. } if !patch.is_empty() => {
                let patch = Value::from(patch.clone()).to_string();
                let patch = base64::engine::general_purpose::STANDARD.encode(patch);
                json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
            }
            Self::Admitted { .. } => json!({"allowed": true}),
            Self::Refused(refusal) => json!({"allowed": false, "status": refusal.status(asked)}),
        };
        response["uid"] = asked.uid.as_str().into();
        let (Self::Admitted { warnings, .. } | Self::Refused(Refusal { warnings, .. })) = self;
        if !warnings.is_empty() {
            response["warnings"] = warnings.clone().into();
        }
        json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
    }
}

impl Refusal {
    fn status(&self, asked: &Asked) -> Value {
        let cause =
            |p: &FieldProblem| json!({"reason": "FieldValueInvalid", "field": p.field, "message": p.message});
        let causes: Vec<_> = self.causes.iter().map(cause).collect();
        json!({
            "status": "Failure",
            "code": self.code,
            "reason": self.reason,
            "message": self.message,
            "details": {"group": GROUP, "kind": asked.kind.kind, "name": asked.name, "causes": causes},
        })
    }
}
