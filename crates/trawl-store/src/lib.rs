//! Artifact storage: object_store behind one small trait, on S3 and on a local directory.
