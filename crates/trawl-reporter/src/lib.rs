//! The capture Job's sidecar: progress records become status.
