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

    /// The job's generation, if it is the right job.
    pub(crate) async fn generation(&self) -> Result<i64, ReportError> {
        let job = self.api.get_status(&self.name).await.map_err(|e| self.error(e))?;
        let found = job.metadata.uid.unwrap_or_default();
        if found != self.uid {
            return Err(self.other(found));
        }
        Ok(job.metadata.generation.unwrap_or_default())
    }

    /// Applies the owned fields without force: a field that somebody else owns is a mistake to be seen. The UID in the
    /// patch makes the API server refuse a job of the same name that came later.
    pub(crate) async fn apply(&self, status: &OwnedStatus) -> Result<(), ReportError> {
        let patch = serde_json::json!({
            "apiVersion": format!("{}/{}", trawl_api::names::GROUP, trawl_api::names::VERSION),
            "kind": "CaptureJob",
            "metadata": { "name": self.name, "uid": self.uid },
            "status": status,
        });
        let parameters = PatchParams::apply(REPORTER_FIELD_MANAGER);
        let applied = self
            .api
            .patch_status(&self.name, &parameters, &Patch::Apply(&patch))
            .await;
        match applied {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(answer)) if answer.code == 409 && answer.message.contains("UID") => {
                Err(self.other("unknown".into()))
            }
            Err(error) => Err(self.error(error)),
        }
    }

    fn other(&self, found: String) -> ReportError {
        ReportError::OtherJob {
            name: self.name.clone(),
            expected: self.uid.clone(),
            found,
        }
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
