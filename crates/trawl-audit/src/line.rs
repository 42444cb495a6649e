//! One line of a local ledger: a record as JSON, and its place in the chain.

use sha2::{Digest, Sha256};
use trawl_artifact::{
    sanitize::sanitize,
    text::{MAX_MESSAGE_BYTES, clean},
};

use crate::{Entry, Record, SCHEMA};

/// Longest line in bytes, without its end. A caller in very many groups comes nowhere near it.
pub const MAX_LINE_BYTES: usize = 1 << 20;
/// Longest reason in bytes.
const MAX_REASON_BYTES: usize = 64;
/// Longest stable key, request identity and program name in bytes.
const MAX_KEY_BYTES: usize = 256;

/// The entry as it is kept: no secret, no control character, nothing longer than its limit. Names and groups of the
/// actor stay whole, because a name that was cut would be somebody else's.
pub fn tidy(mut entry: Entry) -> Entry {
    entry.message = clean(&sanitize(&entry.message), MAX_MESSAGE_BYTES);
    entry.reason = clean(&entry.reason, MAX_REASON_BYTES);
    for text in [
        &mut entry.stable_key,
        &mut entry.request_id,
        &mut entry.initiated_by,
    ] {
        *text = clean(text, MAX_KEY_BYTES);
    }
    entry
}

/// Whether two entries tell the same act; when it was decided does not count.
pub fn same(a: &Entry, b: &Entry) -> bool {
    let timeless = Entry {
        recorded_at: b.recorded_at,
        ..a.clone()
    };
    timeless == *b
}

/// SHA-256 of a line in lower-case hex: what the next record names as the one before it.
pub fn link(line: &[u8]) -> String {
    Sha256::digest(line).iter().map(|b| format!("{b:02x}")).collect()
}

/// Reads a line without its end.
pub fn parse(line: &[u8]) -> Result<Record, String> {
    if line.len() > MAX_LINE_BYTES {
        return Err(format!("longer than {MAX_LINE_BYTES} bytes"));
    }
    let record: Record = serde_json::from_slice(line).map_err(|e| format!("not a record: {e}"))?;
    if record.schema != SCHEMA {
        return Err(format!("its schema is not {SCHEMA}"));
    }
    Ok(record)
}
