//! One look at one NetworkTap.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use kube::ResourceExt;
use kube::runtime::controller::Action;
use trawl_api::NetworkTap;
use trawl_lifecycle::tap::{WorkloadAction, decide};

use super::carry::{apply, remove, write_status};
use super::gather::gather;
use crate::context::Context;
use crate::error::Error;

/// Which generation of each tap this operator has applied since it started. Forgetting it costs one needless apply.
#[derive(Debug, Default)]
pub struct Applied(Mutex<HashMap<String, i64>>);

impl Applied {
    pub(super) fn is(&self, uid: &str, generation: i64) -> bool {
        self.map().get(uid) == Some(&generation)
    }

    pub(super) fn set(&self, uid: &str, generation: i64) {
        self.map().insert(uid.into(), generation);
    }

    pub(super) fn forget(&self, uid: &str) {
        self.map().remove(uid);
    }

    fn map(&self) -> std::sync::MutexGuard<'_, HashMap<String, i64>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Brings one NetworkTap as far as it can go now.
///
/// # Errors
/// The step that failed; the next look continues there.
pub async fn reconcile(tap: Arc<NetworkTap>, ctx: Arc<Context>, applied: Arc<Applied>) -> Result<Action, Error> {
    let (name, uid) = (tap.name_any(), tap.uid().unwrap_or_default());
    let Some(seen) = gather(&ctx, &name, &uid).await? else {
        applied.forget(&uid);
        return Ok(Action::await_change());
    };
    let decision = decide(&seen.facts(&ctx, (ctx.now)()));
    let carried = match decision.workload {
        WorkloadAction::Apply => apply(&ctx, &seen, &applied).await,
        WorkloadAction::Remove => remove(&ctx, &seen, &applied).await,
        WorkloadAction::Leave => Ok(()),
    };
    if let Some(status) = &decision.status {
        write_status(&ctx, &seen, status).await?;
    }
    carried?;
    Ok(decision.requeue.map_or_else(Action::await_change, Action::requeue))
}
