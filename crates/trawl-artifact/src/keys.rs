//! Object keys, derived from the job's namespace and full UID so that a re-created job never meets old objects.

/// Key of the capture file of a job.
pub fn capture_key(namespace: &str, uid: &str) -> String {
    format!("captures/{namespace}/{uid}/capture.pcapng")
}

/// Key of the manifest of a job.
pub fn manifest_key(namespace: &str, uid: &str) -> String {
    format!("captures/{namespace}/{uid}/manifest.json")
}
