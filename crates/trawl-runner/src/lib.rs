//! The capture Job: asks captured, hashes, uploads, writes the manifest.
