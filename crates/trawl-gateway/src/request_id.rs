//! Request identifiers, made here and never taken from the caller, so that a log line cannot be forged.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
static NEXT: AtomicU64 = AtomicU64::new(1);

/// 16 hex digits of this process, then a count.
pub fn next() -> String {
    format!("{:016x}-{:08x}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_requests_share_an_identifier() {
        let ids: std::collections::HashSet<String> = (0..1000).map(|_| super::next()).collect();
        assert_eq!(ids.len(), 1000);
    }
}
