//! Whether a capture file is what its manifest says: one pass that hashes, walks and counts.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::manifest::Manifest;
use crate::pcapng::{Summary, WalkError, Walker};

/// Takes a capture file in pieces of any size and measures it. Memory use does not depend on the file.
#[derive(Debug, Default)]
pub struct Verifier {
    hash: Sha256,
    walker: Walker,
    bytes: u64,
}

/// What a file is, whatever anybody claims of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Lower-case hex.
    pub sha256: String,
    pub size_bytes: u64,
    /// What lies in the blocks, or why they cannot be read.
    pub walk: Result<Summary, WalkError>,
    /// Whole blocks and packets at the start of the file: equal to `walk` when that is `Ok`.
    pub salvageable: Summary,
}

impl Verifier {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes. A file that is no pcapng is still hashed to its end.
    pub fn push(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        // The walker keeps its error until `measure` asks for it.
        let _ = self.walker.push(bytes);
    }

    /// Ends the pass with what was found, without a claim to compare it with.
    pub fn measure(self) -> Measured {
        let salvageable = self.walker.summary().clone();
        Measured {
            sha256: hex(&self.hash.finalize()),
            size_bytes: self.bytes,
            walk: self.walker.finish(),
            salvageable,
        }
    }

    /// Ends the pass and compares with `manifest`.
    pub fn finish(self, manifest: &Manifest) -> Result<VerifyReport, VerifyError> {
        compare(manifest, self.measure())
    }
}

/// A file that agrees with its manifest in everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    pub sha256: String,
    pub size_bytes: u64,
    pub packet_count: u64,
    /// Sections, interfaces, stamps and comments found in the file.
    pub file: Summary,
}

/// Every point in which file and manifest disagree; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .disagreements.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct VerifyError {
    pub disagreements: Vec<Disagreement>,
}

/// One point in which a file is not what its manifest says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    #[error("sha256: the manifest says {manifest}, the file has {file}")]
    Sha256 { manifest: String, file: String },
    #[error("sizeBytes: the manifest says {manifest}, the file has {file}")]
    Size { manifest: u64, file: u64 },
    #[error("packetCount: the manifest says {manifest}, the file holds {file}")]
    Packets { manifest: u64, file: u64 },
    #[error("truncatedPackets: the manifest says {manifest}, the file holds {file}")]
    TruncatedPackets { manifest: u64, file: u64 },
    #[error("firstPacket: the manifest says {}, the file says {}", stamp(.manifest), stamp(.file))]
    FirstPacket {
        manifest: Option<Timestamp>,
        file: Option<Timestamp>,
    },
    #[error("lastPacket: the manifest says {}, the file says {}", stamp(.manifest), stamp(.file))]
    LastPacket {
        manifest: Option<Timestamp>,
        file: Option<Timestamp>,
    },
    #[error("the file cannot be read as pcapng: {0}")]
    Unreadable(WalkError),
}

/// Compares what was measured with what `manifest` claims.
pub fn compare(manifest: &Manifest, measured: Measured) -> Result<VerifyReport, VerifyError> {
    use Disagreement as D;
    let mut found = Vec::new();
    if manifest.sha256 != measured.sha256 {
        found.push(D::Sha256 {
            manifest: manifest.sha256.clone(),
            file: measured.sha256.clone(),
        });
    }
    if manifest.size_bytes != measured.size_bytes {
        found.push(D::Size {
            manifest: manifest.size_bytes,
            file: measured.size_bytes,
        });
    }
    let file = match measured.walk {
        Ok(file) => {
            found.extend(compare_packets(manifest, &file));
            file
        }
        Err(error) => {
            found.push(D::Unreadable(error));
            return Err(VerifyError { disagreements: found });
        }
    };
    if !found.is_empty() {
        return Err(VerifyError { disagreements: found });
    }
    Ok(VerifyReport {
        sha256: measured.sha256,
        size_bytes: measured.size_bytes,
        packet_count: file.packets,
        file,
    })
}

fn compare_packets(manifest: &Manifest, file: &Summary) -> Vec<Disagreement> {
    use Disagreement as D;
    let mut found = Vec::new();
    if manifest.packet_count != file.packets {
        found.push(D::Packets {
            manifest: manifest.packet_count,
            file: file.packets,
        });
    }
    if manifest.truncated_packets != file.truncated_packets {
        let (manifest, file) = (manifest.truncated_packets, file.truncated_packets);
        found.push(D::TruncatedPackets { manifest, file });
    }
    let first = file.first_packet_ns.and_then(timestamp);
    if manifest.first_packet != first {
        found.push(D::FirstPacket {
            manifest: manifest.first_packet,
            file: first,
        });
    }
    let last = file.last_packet_ns.and_then(timestamp);
    if manifest.last_packet != last {
        found.push(D::LastPacket {
            manifest: manifest.last_packet,
            file: last,
        });
    }
    found
}

/// The moment `ns` nanoseconds after the epoch.
pub fn timestamp(ns: u64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(ns)).ok()
}

/// Lower-case hex of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
            // Writing to a String cannot fail.
            let _ = write!(out, "{byte:02x}");
            out
        })
}

fn stamp(value: &Option<Timestamp>) -> String {
    value.map_or_else(|| "none".into(), |t| t.to_string())
}
