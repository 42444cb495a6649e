//! Questions to a driver by the ethtool ioctl (`include/uapi/linux/ethtool.h`). The socket decides whose network
//! namespace is meant, also when another thread asks later.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::device;
use crate::interface::InterfaceName;

const GET_SETTINGS: u32 = 0x01;
const GET_DRIVER: u32 = 0x03;
const GET_RING: u32 = 0x10;
const GET_STRINGS: u32 = 0x1b;
const GET_HASH_FIELDS: u32 = 0x29;
const GET_RECEIVE_RINGS: u32 = 0x2d;
const GET_SET_INFO: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
const GET_CHANNELS: u32 = 0x3c;
const GET_TIME_STAMPING: u32 = 0x41;
const GET_HASH: u32 = 0x46;
const FEATURE_NAMES: u32 = 4;
const NAME: usize = 32;
/// More than any kernel has; bounds what is allocated.
const MANY: u32 = 4096;

/// A socket to ask through.
#[derive(Debug)]
pub(crate) struct Ethtool(OwnedFd);

/// Who drives an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Driver {
    pub name: String,
    pub firmware: String,
    pub bus: String,
}

/// Receive queues: those that have a transmit queue with them, and those that have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Channels {
    pub rx: u32,
    pub combined: u32,
    pub max_rx: u32,
    pub max_combined: u32,
}

/// Descriptors of each receive queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RingSize {
    pub now: u32,
    pub max: u32,
}

/// Something that the driver can do, and whether it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    pub name: String,
    pub on: bool,
    /// It cannot be changed.
    pub fixed: bool,
}

/// How frames are spread over receive queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hash {
    /// `ETH_RSS_HASH_*`.
    pub function: u8,
    /// `RXH_XFRM_*`; absent when the kernel does not know of it.
    pub transform: u8,
    pub key: Vec<u8>,
}

/// Which clocks can stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamping {
    /// `SOF_TIMESTAMPING_*`.
    pub abilities: u32,
    /// Number of the PTP clock.
    pub clock: Option<u32>,
    /// `HWTSTAMP_FILTER_*`, as bits.
    pub filters: u32,
}

impl Ethtool {
    /// Asks in the network namespace of the calling thread.
    pub(crate) fn open() -> io::Result<Self> {
        device::query_socket().map(Self)
    }

    pub(crate) fn driver(&self, name: &InterfaceName) -> io::Result<Driver> {
        let mut words = [0; 49];
        words[0] = GET_DRIVER;
        self.call(name, &mut words)?;
        let bytes = bytes(&words);
        let text = |number: usize| crate::netlink::text(&bytes[4 + number * NAME..][..NAME]);
        Ok(Driver {
            name: text(0),
            firmware: text(2),
            bus: text(3),
        })
    }

    pub(crate) fn channels(&self, name: &InterfaceName) -> io::Result<Channels> {
        let mut words = [0; 9];
        words[0] = GET_CHANNELS;
        self.call(name, &mut words)?;
        Ok(Channels {
            max_rx: words[1],
            max_combined: words[4],
            rx: words[5],
            combined: words[8],
        })
    }

    /// Receive queues in use; `None` when the driver does not tell.
    pub(crate) fn receive_queues(&self, name: &InterfaceName) -> Option<u32> {
        if let Ok(channels) = self.channels(name) {
            return Some(channels.rx + channels.combined);
        }
        // Drivers that spread flows without channels answer this one: `struct ethtool_rxnfc`, and room for all of it.
        let mut words = [0; 64];
        words[0] = GET_RECEIVE_RINGS;
        self.call(name, &mut words).ok()?;
        let rings = bytes(&words)[8..].first_chunk().map(|b| u64::from_ne_bytes(*b))?;
        u32::try_from(rings).ok()
    }

    /// Link speed in bits per second; `None` when the driver does not tell, or there is no link.
    pub(crate) fn speed(&self, name: &InterfaceName) -> Option<u64> {
        let mut words = [0; 11];
        words[0] = GET_SETTINGS;
        self.call(name, &mut words).ok()?;
        let bytes = bytes(&words);
        let half = |at: usize| {
            bytes[at..]
                .first_chunk()
                .map(|b| u32::from(u16::from_ne_bytes(*b)))
        };
        let megabits = (half(28)? << 16) | half(12)?;
        let known = megabits != 0 && megabits != u32::MAX && megabits != u32::from(u16::MAX);
        known.then(|| u64::from(megabits) * 1_000_000)
    }

    pub(crate) fn ring(&self, name: &InterfaceName) -> io::Result<RingSize> {
        let mut words = [0; 9];
        words[0] = GET_RING;
        self.call(name, &mut words)?;
        Ok(RingSize {
            max: words[1],
            now: words[5],
        })
    }

    pub(crate) fn stamping(&self, name: &InterfaceName) -> io::Result<Stamping> {
        let mut words = [0; 11];
        words[0] = GET_TIME_STAMPING;
        self.call(name, &mut words)?;
        Ok(Stamping {
            abilities: words[1],
            clock: u32::try_from(words[2].cast_signed()).ok(),
            filters: words[7],
        })
    }

    /// Which fields of a kind of flow (`TCP_V4_FLOW`...) are hashed: `RXH_*`.
    pub(crate) fn hash_fields(&self, name: &InterfaceName, flow: u32) -> io::Result<u64> {
        let mut words = [GET_HASH_FIELDS, flow, 0, 0];
        self.call(name, &mut words)?;
        Ok(u64::from_ne_bytes(
            *bytes(&words)[8..].first_chunk().unwrap_or(&[0; 8]),
        ))
    }

    pub(crate) fn hash(&self, name: &InterfaceName) -> io::Result<Hash> {
        const HEAD: usize = 6;
        let mut sizes = [0; HEAD];
        sizes[0] = GET_HASH;
        self.call(name, &mut sizes)?;
        let (table, key) = (sizes[2].min(1 << 16), sizes[3].min(MANY));
        // The kernel wants both sizes as it said them, and fills the table and the key behind the head.
        let mut words = vec![0; HEAD + table as usize + key.div_ceil(4) as usize];
        words[0] = GET_HASH;
        words[2] = table;
        words[3] = key;
        self.call(name, &mut words)?;
        let all = bytes(&words);
        Ok(Hash {
            function: all[16],
            transform: all[17],
            key: all[(HEAD + table as usize) * 4..][..key as usize].to_vec(),
        })
    }

    /// Everything that can be turned on and off.
    pub(crate) fn features(&self, name: &InterfaceName) -> io::Result<Vec<Feature>> {
        let names = self.feature_names(name)?;
        let blocks = names.len().div_ceil(32);
        let mut words = vec![0; 2 + blocks * 4];
        words[0] = GET_FEATURES;
        words[1] = blocks as u32;
        self.call(name, &mut words)?;
        let feature = |(number, name): (usize, String)| {
            let block = &words[2 + number / 32 * 4..][..4];
            let bit = |word: u32| word >> (number % 32) & 1 != 0;
            Feature {
                name,
                on: bit(block[2]),
                fixed: bit(block[3]) || !bit(block[0]),
            }
        };
        Ok(names.into_iter().enumerate().map(feature).collect())
    }

    /// Asks for these features to be on or off. What became of it must be read back.
    pub(crate) fn set_features(&self, name: &InterfaceName, wanted: &[&str], on: bool) -> io::Result<()> {
        let names = self.feature_names(name)?;
        let blocks = names.len().div_ceil(32);
        let mut words = vec![0; 2 + blocks * 2];
        words[0] = SET_FEATURES;
        words[1] = blocks as u32;
        for (number, _) in names
            .iter()
            .enumerate()
            .filter(|(_, n)| wanted.contains(&n.as_str()))
        {
            let (at, bit) = (2 + number / 32 * 2, 1 << (number % 32));
            words[at] |= bit;
            words[at + 1] |= if on { bit } else { 0 };
        }
        self.call(name, &mut words)
    }

    /// Makes the NIC leave VLAN tags in the frames. `Ok` when they are there afterwards, as far as the driver tells.
    pub(crate) fn keep_vlan_tags(&self, name: &InterfaceName) -> io::Result<()> {
        const STRIP: [&str; 2] = ["rx-vlan-hw-parse", "rx-vlan-stag-hw-parse"];
        let strips = || {
            let features = self.features(name).unwrap_or_default();
            features.iter().any(|f| f.on && STRIP.contains(&f.name.as_str()))
        };
        if !strips() {
            return Ok(());
        }
        self.set_features(name, &STRIP, false)?;
        match strips() {
            true => Err(io::Error::other("the driver ignored the request")),
            false => Ok(()),
        }
    }

    fn feature_names(&self, name: &InterfaceName) -> io::Result<Vec<String>> {
        // command, reserved, mask of sets (64 bits), length of the one set asked for.
        let mut count = [GET_SET_INFO, 0, 1 << FEATURE_NAMES, 0, 0];
        self.call(name, &mut count)?;
        let count = count[4];
        if count > MANY {
            return Err(io::Error::other(
                "the driver names more features than there can be",
            ));
        }
        let mut words = vec![0; 3 + count as usize * NAME / 4];
        words[..3].copy_from_slice(&[GET_STRINGS, FEATURE_NAMES, count]);
        self.call(name, &mut words)?;
        let all = bytes(&words);
        Ok(all[12..].chunks_exact(NAME).map(crate::netlink::text).collect())
    }

    /// The first word is the command; the slice must be as long as that command's structure, with the arrays whose
    /// lengths it announces.
    fn call(&self, name: &InterfaceName, words: &mut [u32]) -> io::Result<()> {
        let mut request = device::request(name);
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: the request is an ifreq whose data pointer is to `words`, and both live through the call. Every
        // caller above sizes `words` for its command, so the kernel writes inside of it; any words are valid.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
