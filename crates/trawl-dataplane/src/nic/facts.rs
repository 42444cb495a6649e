//! What was read of an interface, before anybody judges it.

use crate::netlink::driver::{QueueFacts, XdpFacts};
use crate::netlink::link::LinkFacts;
use crate::ring::ethtool::{Channels, Driver, Feature, Hash, RingSize, Stamping};

/// A fact, or why it could not be had.
pub(super) type Reading<T> = Result<T, String>;

/// Everything that the verdicts rest on.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub name: String,
    pub link: Reading<LinkFacts>,
    pub driver: Reading<Driver>,
    pub channels: Reading<Channels>,
    pub queues: Reading<QueueFacts>,
    pub hash: Reading<Hash>,
    /// Flow name and hashed fields.
    pub fields: Reading<Vec<(&'static str, u64)>>,
    pub features: Reading<Vec<Feature>>,
    pub ring: Reading<RingSize>,
    pub stamping: Reading<Stamping>,
    pub xdp: Reading<XdpFacts>,
    /// Bits per second; `None` when the driver does not tell.
    pub speed: Option<u64>,
    /// CPUs that this process may use.
    pub cpus: Option<u32>,
}

impl Facts {
    /// Receive queues in use, and how many there can be as far as that is known.
    pub(super) fn queues(&self) -> Reading<(u32, Option<u32>)> {
        if let Ok(c) = &self.channels {
            let max = if c.max_combined > 0 {
                c.max_combined
            } else {
                c.max_rx
            };
            return Ok((c.rx + c.combined, Some(max)));
        }
        match (&self.queues, &self.link) {
            (Ok(q), _) if q.queues > 0 => Ok((q.queues, None)),
            // One that was allocated is one that is in use.
            (_, Ok(link)) if link.rx_queues == Some(1) => Ok((1, Some(1))),
            (_, Err(why)) => Err(why.clone()),
            _ => Err("the driver does not tell how many receive queues are in use".into()),
        }
    }

    /// Whether it is captured by AF_XDP now.
    pub(super) fn is_open(&self) -> Option<bool> {
        let sockets = self.queues.as_ref().ok()?.sockets?;
        Some(sockets > 0)
    }

    /// What `ethtool -L` calls them.
    pub(super) fn queue_word(&self) -> &'static str {
        match &self.channels {
            Ok(c) if c.max_combined == 0 => "rx",
            _ => "combined",
        }
    }

    pub(super) fn feature(&self, name: &str) -> Reading<Option<&Feature>> {
        let all = self.features.as_ref().map_err(Clone::clone)?;
        Ok(all.iter().find(|f| f.name == name))
    }
}

/// Whether both directions of a flow come to the same queue.
pub(super) fn is_symmetric(hash: &Hash, fields: &[(&'static str, u64)]) -> bool {
    const XOR: u8 = 1 << 1;
    const TRANSFORMS: u8 = 0b11;
    let mixed = hash.function & XOR != 0 || hash.transform & TRANSFORMS != 0 || has_period_of_two(&hash.key);
    mixed && fields.iter().all(|(_, bits)| both_or_neither(*bits))
}

/// A Toeplitz key that repeats every 16 bits gives the same result when addresses, and ports, change places.
fn has_period_of_two(key: &[u8]) -> bool {
    key.len() > 2 && key.iter().any(|b| *b != 0) && key.iter().zip(&key[2..]).all(|(a, b)| a == b)
}

fn both_or_neither(bits: u64) -> bool {
    const ADDRESSES: u64 = 0b11 << 4;
    const PORTS: u64 = 0b11 << 6;
    [ADDRESSES, PORTS]
        .iter()
        .all(|pair| bits & pair == 0 || bits & pair == *pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_symmetric_by_its_function_its_transform_or_its_key_and_only_with_both_ends_of_a_flow() {
        let toeplitz = |key: &[u8], transform| Hash {
            function: 1,
            transform,
            key: key.to_vec(),
        };
        let (repeating, random) = ([0x6d, 0x5a].repeat(20), (0..40).collect::<Vec<u8>>());
        let both = [("tcp4", 0xf0), ("udp4", 0x30)];
        let cases = [
            (toeplitz(&random, 0), &both, false),
            (toeplitz(&repeating, 0), &both, true),
            (toeplitz(&random, 1), &both, true),
            (toeplitz(&random, 2), &both, true),
            (toeplitz(&[0; 40], 0), &both, false),
            (toeplitz(&[], 0), &both, false),
            (toeplitz(&repeating, 0), &[("tcp4", 0x10), ("udp4", 0x30)], false),
            (toeplitz(&repeating, 0), &[("tcp4", 0x70), ("udp4", 0x30)], false),
        ];
        for (hash, fields, wanted) in cases {
            assert_eq!(is_symmetric(&hash, fields), wanted, "{hash:?} {fields:?}");
        }
        let xor = Hash {
            function: 2,
            ..Hash::default()
        };
        assert!(is_symmetric(&xor, &both));
    }
}
