//! Which stable keys the file holds, and where: bounded, so that the ledger's memory is too.

use std::collections::{HashMap, VecDeque};

use sha2::{Digest, Sha256};

/// Keys that are remembered, the newest. One takes about 80 bytes. A retry comes within seconds of the first try;
/// one that came after this many other records would be recorded a second time.
pub const MAX_KEYS: usize = 100_000;

/// Half a SHA-256: no two keys share it, whatever a caller chooses.
type KeyHash = [u8; 16];

/// Where a line stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub offset: u64,
    /// Length in bytes, without the end of the line.
    pub length: u32,
}

#[derive(Default)]
pub struct Index {
    places: HashMap<KeyHash, Place>,
    order: VecDeque<KeyHash>,
}

impl Index {
    pub fn get(&self, key: &str) -> Option<Place> {
        self.places.get(&hash(key)).copied()
    }

    pub fn insert(&mut self, key: &str, place: Place) {
        let hash = hash(key);
        if self.places.insert(hash, place).is_none() {
            self.order.push_back(hash);
        }
        if self.order.len() > MAX_KEYS
            && let Some(oldest) = self.order.pop_front()
        {
            self.places.remove(&oldest);
        }
    }
}

fn hash(key: &str) -> KeyHash {
    let whole = Sha256::digest(key.as_bytes());
    std::array::from_fn(|i| whole[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_key_is_forgotten_when_there_are_too_many() {
        let mut index = Index::default();
        let place = |offset| Place { offset, length: 1 };
        for n in 0..=MAX_KEYS as u64 {
            index.insert(&n.to_string(), place(n));
        }
        assert_eq!(index.get("0"), None);
        assert_eq!(index.get("1"), Some(place(1)));
        assert_eq!(index.places.len(), MAX_KEYS);
    }
}
