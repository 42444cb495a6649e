//! `trawlctl capture`: jobs in the cluster.

mod create;
mod describe;
mod list;
mod watch;

pub use create::create;
pub use describe::describe;
pub use list::list;
pub use watch::watch;

use kube::{Api, Client};
use trawl_api::CaptureJob;

use crate::{Failure, connect::api_failure};

/// Kind and group before the name, as `kubectl -o name` writes them.
const NAME_PREFIX: &str = "capturejob.trawl.cloud";

/// Reads one job.
pub async fn get(client: &Client, namespace: &str, name: &str) -> Result<CaptureJob, Failure> {
    let jobs: Api<CaptureJob> = Api::namespaced(client.clone(), namespace);
    match jobs.get_opt(name).await {
        Ok(Some(job)) => Ok(job),
        Ok(None) => Err(
            Failure::new(format!("there is no capture \"{name}\" in namespace {namespace}"))
                .hint(format!("see what there is: trawlctl -n {namespace} capture list")),
        ),
        Err(error) => Err(api_failure("cannot read the capture", namespace, &error)),
    }
}
