//! Repairs of a mirror interface: offloads that are turned off while it is captured, and turned on again afterwards.

use std::io;

use trawl_control::NicVerdict;

use super::{Purpose, judge, read};
use crate::interface::{InterfaceName, MirrorInterface};
use crate::netlink::{Netlink, Refusal, link};
use crate::ring::ethtool::{Ethtool, Feature};

/// What is turned off, in the kernel's words. Dependent ones first: turning one off may take others with it.
const HARMFUL: [&str; 9] = [
    "rx-gro-hw",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
    "rx-gro",
    "rx-lro",
    "rx-vlan-stag-hw-parse",
    "rx-vlan-hw-parse",
    "rx-vlan-stag-filter",
    "rx-vlan-filter",
];

/// An attempt to turn one feature off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    /// In the kernel's words.
    pub feature: String,
    /// Why it is still on; `None` when it was read back as off.
    pub refused: Option<String>,
}

/// What was set right on a mirror interface. Everything is set back by [`Repairs::undo`], or when this is dropped; also
/// from another thread than the one that made it. A process that is killed leaves its repairs behind.
#[derive(Debug)]
pub struct Repairs {
    name: InterfaceName,
    attempts: Vec<Attempt>,
    /// Everything else needs sockets of the namespace in which the repairs were made.
    way: Option<Way>,
}

#[derive(Debug)]
struct Way {
    index: u32,
    tool: Ethtool,
    netlink: Netlink,
}

impl Way {
    fn open(name: &InterfaceName) -> Result<Self, Refusal> {
        let mut netlink = Netlink::route()?;
        Ok(Self {
            index: link::by_name(&mut netlink, name)?.index,
            tool: Ethtool::open()?,
            netlink,
        })
    }
}

impl Repairs {
    pub(super) fn make(interface: &MirrorInterface) -> Self {
        let name = interface.0.clone();
        let way = Way::open(&name).ok();
        let attempts = way.as_ref().map(|w| turn_off(&w.tool, &name)).unwrap_or_default();
        Self { name, attempts, way }
    }

    /// Looks again: a repair that somebody else has undone is then wrong, not repaired.
    #[must_use]
    pub fn check(&self) -> Vec<NicVerdict> {
        judge::all(&read::facts(&self.name), Purpose::Mirror, &self.attempts)
    }

    /// Sets everything back and reads it back. Returns, in words, what could not be set back.
    #[must_use = "it says what could not be set back"]
    pub fn undo(mut self) -> Vec<String> {
        self.set_back()
    }

    fn set_back(&mut self) -> Vec<String> {
        let attempts = std::mem::take(&mut self.attempts);
        let done = attempts.iter().filter(|a| a.refused.is_none());
        let off: Vec<&str> = done.map(|a| a.feature.as_str()).collect();
        let Some(way) = self.way.as_mut().filter(|_| !off.is_empty()) else {
            return vec![];
        };
        // Another interface of the same name is not ours to change; the same one may have another name by now.
        let found = link::by_index(&mut way.netlink, way.index).map_err(|e| read::words(&e));
        let current = found.and_then(|l| l.name.parse().map_err(|_| "it has no usable name".to_owned()));
        let still_off = match current {
            Ok(name) => turn_on(&way.tool, &name, &off),
            Err(why) => off.iter().map(|f| (*f, why.clone())).collect(),
        };
        let sentence = |(feature, why)| {
            format!(
                "{feature} of {name} could not be turned on again ({why}); if the interface is still there, run: ethtool -K {name} {feature} on",
                name = self.name
            )
        };
        still_off.into_iter().map(sentence).collect()
    }
}

impl Drop for Repairs {
    fn drop(&mut self) {
        self.set_back();
    }
}

/// What there is to turn off.
fn plan(features: &[Feature]) -> Vec<&'static str> {
    let is_on = |name: &&str| features.iter().any(|f| f.name == *name && f.on && !f.fixed);
    HARMFUL.into_iter().filter(is_on).collect()
}

fn turn_off(tool: &Ethtool, name: &InterfaceName) -> Vec<Attempt> {
    let Ok(before) = tool.features(name) else {
        return vec![];
    };
    // One by one, so that what one driver refuses does not keep the others on.
    let try_one = |feature| (feature, tool.set_features(name, &[feature], false));
    let tried: Vec<_> = plan(&before).into_iter().map(try_one).collect();
    let after = tool.features(name);
    let outcome = |(feature, result): (&str, io::Result<()>)| Attempt {
        feature: feature.to_owned(),
        refused: refused(&after, feature, false, result),
    };
    tried.into_iter().map(outcome).collect()
}

fn turn_on<'a>(tool: &Ethtool, name: &InterfaceName, features: &[&'a str]) -> Vec<(&'a str, String)> {
    // Turning one on may turn others off: all together, the kernel sorts them.
    let result = tool.set_features(name, features, true);
    let after = tool.features(name);
    let again = |e: &io::Error| {
        e.raw_os_error()
            .map_or_else(|| io::ErrorKind::Other.into(), io::Error::from_raw_os_error)
    };
    let outcome = |feature: &&'a str| {
        let result = result.as_ref().copied().map_err(again);
        Some((*feature, refused(&after, feature, true, result)?))
    };
    features.iter().filter_map(outcome).collect()
}

/// Why a feature is not as it was asked to be. What was read back decides, whatever the request returned.
fn refused(
    after: &io::Result<Vec<Feature>>,
    feature: &str,
    wanted: bool,
    request: io::Result<()>,
) -> Option<String> {
    match after {
        Ok(after) if after.iter().any(|f| f.name == feature && f.on == wanted) => None,
        Ok(_) => Some(match request {
            Err(e) => e.to_string(),
            Ok(()) => "the driver ignored the request".into(),
        }),
        Err(e) => Some(format!("it could not be read back: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(name: &str, on: bool, fixed: bool) -> Feature {
        Feature {
            name: name.into(),
            on,
            fixed,
        }
    }

    #[test]
    fn only_harmful_features_that_are_on_and_can_be_changed_are_turned_off_and_dependent_ones_first() {
        let features = [
            feature("rx-gro", true, false),
            feature("rx-gro-hw", true, false),
            feature("rx-lro", true, true),
            feature("rx-vlan-filter", false, false),
            feature("rx-checksum", true, false),
            feature("tx-tcp-segmentation", true, false),
        ];
        assert_eq!(plan(&features), ["rx-gro-hw", "rx-gro"]);
    }

    #[test]
    fn a_request_that_succeeded_is_believed_only_when_it_is_read_back() {
        let still_on = Ok(vec![feature("rx-gro", true, false)]);
        let off = Ok(vec![feature("rx-gro", false, false)]);
        let gone = || io::Error::from_raw_os_error(libc::ENODEV);
        assert_eq!(refused(&off, "rx-gro", false, Ok(())), None);
        assert_eq!(refused(&off, "rx-gro", false, Err(gone())), None);
        let ignored = refused(&still_on, "rx-gro", false, Ok(()));
        assert_eq!(ignored.as_deref(), Some("the driver ignored the request"));
        assert!(refused(&Err(gone()), "rx-gro", false, Ok(())).is_some());
    }
}
