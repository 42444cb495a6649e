//! The two requests that the reporter's Role allows: read the job, apply its own fields of the status.

use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use trawl_api::CaptureJob;
use trawl_api::names::REPORTER_FIELD_MANAGER;

use crate::{Arguments, OwnedStatus};

/// Why the status was not written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("CaptureJob {name} has UID {found}, not {expected}: it is another job and is left alone")]
    OtherJob {
        name: String,
        expected: String,
        found: String,
    },
    #[error("CaptureJob {name} does not exist any more")]
    Gone { name: String },
    #[error("the API server did not take the status: {0}")]
    Api(#[source] Box<kube::Error>),
}

impl ReportError {
    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Api(_))
    }

    /// Whether the job was changed between look and patch. A field that belongs to somebody else is a conflict as
    /// well, but one that does not pass by looking again.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self, Self::Api(error) if matches!(&**error, kube::Error::Api(answer)
            if answer.code == 409 && !answer.message.starts_with("Apply failed")))
    }
}

/// What a patch must be tied to.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) generation: i64,
    resource_version: String,
}

/// One CaptureJob, as far as the reporter may touch it.
pub(crate) struct Job {
    api: Api<CaptureJob>,
    name: String,
    uid: String,
}

impl Job {
    pub(crate) fn new(client: Client, arguments: &Arguments) -> Self {
        Self {
            api: Api::namespaced(client, &arguments.namespace),
            name: arguments.job.clone(),
            uid: arguments.job_uid.clone(),
        }
    }

    /// The job as it stands now, if it is the right job.
    pub(crate) async fn look(&self) -> Result<Seen, ReportError> {
        let job = self.api.get_status(&self.name).await.map_err(|e| self.error(e))?;
        let found = job.metadata.uid.unwrap_or_default();
        if found != self.uid {
            let (name, expected) = (self.name.clone(), self.uid.clone());
            return Err(ReportError::OtherJob {
                name,
                expected,
                found,
            });
        }
        Ok(Seen {
            generation: job.metadata.generation.unwrap_or_default(),
            resource_version: job.metadata.resource_version.unwrap_or_default(),
        })
    }

    /// Applies the owned fields without force: a field that somebody else owns is a mistake to be seen. The resource
    /// version ties the patch to the job that was looked at: for the status of a custom resource the API server
    /// ignores a UID in the patch.
    pub(crate) async fn apply(&self, status: &OwnedStatus, seen: &Seen) -> Result<(), ReportError> {
        let patch = serde_json::json!({
            "apiVersion": format!("{}/{}", trawl_api::names::GROUP, trawl_api::names::VERSION),
            "kind": "CaptureJob",
            "metadata": { "name": self.name, "resourceVersion": seen.resource_version },
            "status": status,
        });
        let parameters = PatchParams::apply(REPORTER_FIELD_MANAGER);
        let applied = self
            .api
            .patch_status(&self.name, &parameters, &Patch::Apply(&patch))
            .await;
        applied.map(drop).map_err(|error| self.error(error))
    }

    fn error(&self, error: kube::Error) -> ReportError {
        match error {
            kube::Error::Api(answer) if answer.code == 404 => ReportError::Gone {
                name: self.name.clone(),
            },
            error => ReportError::Api(Box::new(error)),
        }
    }
}
