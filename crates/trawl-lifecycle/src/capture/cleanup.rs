//! Deletion: the Job first, then the objects, then the finalizer.

use super::facts::{Action, CaptureFacts, Decision, ObjectsFact};

/// What to do next for an object that is being deleted. Its status is left as it is.
pub(super) fn decide(f: &CaptureFacts<'_>) -> Decision {
    if !f.finalizer {
        return Decision::default();
    }
    if f.cleanup.job {
        return Decision {
            actions: vec![Action::DeleteJob],
            requeue: Some(f.limits.cleanup_requeue),
            ..Decision::default()
        };
    }
    // A runner that is still ending may yet upload what it has.
    if f.cleanup.pods {
        return Decision { requeue: Some(f.limits.cleanup_requeue), ..Decision::default() };
    }
    match f.cleanup.objects {
        ObjectsFact::NotLooked => Decision { actions: vec![Action::DeleteObjects], ..Decision::default() },
        ObjectsFact::Unreachable => Decision { requeue: Some(f.limits.job_requeue), ..Decision::default() },
        ObjectsFact::Gone => Decision { actions: vec![Action::RemoveFinalizer], ..Decision::default() },
    }
}
