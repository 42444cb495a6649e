//! What the NIC or the kernel does to frames before they are seen.

use trawl_control::{NicState, NicVerdict};

use super::{unknown, verdict};
use crate::nic::Purpose;
use crate::nic::facts::Facts;
use crate::nic::repair::Attempt;
use crate::ring::ethtool::Feature;

/// A feature that must be off.
struct Toggle {
    item: &'static str,
    features: &'static [&'static str],
    harm: &'static str,
    harmless: &'static str,
}

impl Toggle {
    fn judge(&self, facts: &Facts, purpose: Purpose, attempts: &[Attempt]) -> NicVerdict {
        let found: Result<Vec<_>, _> = self.features.iter().map(|f| facts.feature(f)).collect();
        let found: Vec<&Feature> = match found {
            Err(why) => return unknown(self.item, Some("off"), &why),
            Ok(found) => found.into_iter().flatten().collect(),
        };
        if found.is_empty() {
            return unknown(self.item, Some("off"), "this kernel does not know of it");
        }
        let on: Vec<&Feature> = found.iter().filter(|f| f.on).copied().collect();
        if on.is_empty() {
            return self.off(&found, attempts);
        }
        let names = on.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(", ");
        let consequence = format!("{}; {}", self.harm, why_on(facts, &on, purpose, attempts));
        verdict(
            self.item,
            format!("on ({names})"),
            Some("off"),
            NicState::Wrong,
            consequence,
        )
    }

    fn off(&self, found: &[&Feature], attempts: &[Attempt]) -> NicVerdict {
        let ours = |f: &&&Feature| {
            attempts
                .iter()
                .any(|a| a.feature == f.name && a.refused.is_none())
        };
        let repaired: Vec<&str> = found.iter().filter(ours).map(|f| f.name.as_str()).collect();
        if repaired.is_empty() {
            return verdict(
                self.item,
                "off".into(),
                Some("off"),
                NicState::Good,
                self.harmless,
            );
        }
        let consequence = format!(
            "{}, since captured has turned off {} until detach",
            self.harmless,
            repaired.join(" and ")
        );
        verdict(
            self.item,
            "on".into(),
            Some("off"),
            NicState::Repaired,
            consequence,
        )
    }
}

/// Why features that should be off are on, and what can be done.
fn why_on(facts: &Facts, on: &[&Feature], purpose: Purpose, attempts: &[Attempt]) -> String {
    let changeable: Vec<&str> = on.iter().filter(|f| !f.fixed).map(|f| f.name.as_str()).collect();
    if changeable.is_empty() {
        return "the driver does not let it be turned off".into();
    }
    let command = format!("ethtool -K {} {} off", facts.name, changeable.join(" off "));
    let tried: Vec<&Attempt> = attempts
        .iter()
        .filter(|a| changeable.contains(&a.feature.as_str()))
        .collect();
    match (tried.iter().find_map(|a| a.refused.as_ref()), purpose) {
        (Some(why), _) => format!("it could not be turned off ({why}); by hand: {command}"),
        (None, _) if !tried.is_empty() => {
            format!("it was turned off, and somebody turned it on again; run: {command}")
        }
        (None, Purpose::Node) => format!(
            "it is left alone, since the node itself lives on this interface; to change it, run: {command}"
        ),
        (None, Purpose::Mirror) => {
            format!("captured turns it off when it attaches the interface; by hand: {command}")
        }
    }
}

pub(super) fn gro(facts: &Facts, purpose: Purpose, attempts: &[Attempt]) -> NicVerdict {
    let toggle = Toggle {
        item: "gro",
        features: &["rx-gro", "rx-gro-hw"],
        harm: "GRO merges packets before they are seen, so captured packets are longer and fewer than those on the wire",
        harmless: "packets are not merged by GRO",
    };
    toggle.judge(facts, purpose, attempts)
}

pub(super) fn lro(facts: &Facts, purpose: Purpose, attempts: &[Attempt]) -> NicVerdict {
    let toggle = Toggle {
        item: "lro",
        features: &["rx-lro"],
        harm: "LRO merges packets in the NIC, so captured packets are longer and fewer than those on the wire, and AF_XDP is refused by many drivers",
        harmless: "packets are not merged by the NIC",
    };
    toggle.judge(facts, purpose, attempts)
}

pub(super) fn rx_vlan(facts: &Facts, purpose: Purpose, attempts: &[Attempt]) -> NicVerdict {
    let features = &["rx-vlan-hw-parse", "rx-vlan-stag-hw-parse"];
    if purpose == Purpose::Node {
        let on = |f: &&str| facts.feature(f).map(|f| f.is_some_and(|f| f.on));
        let found: Result<Vec<bool>, _> = features.iter().map(on).collect();
        return match found {
            Err(why) => unknown("rxVlan", None, &why),
            Ok(on) => {
                let found = if on.contains(&true) { "on" } else { "off" };
                verdict(
                    "rxVlan",
                    found.into(),
                    None,
                    NicState::Good,
                    "AF_PACKET hands over the tags that the NIC takes out, and they are put back",
                )
            }
        };
    }
    let toggle = Toggle {
        item: "rxVlan",
        features,
        harm: "VLAN tags are taken out of the frames before AF_XDP sees them, so captured packets have none",
        harmless: "VLAN tags stay in the frames",
    };
    toggle.judge(facts, purpose, attempts)
}

pub(super) fn vlan_filter(facts: &Facts, purpose: Purpose, attempts: &[Attempt]) -> NicVerdict {
    let toggle = Toggle {
        item: "vlanFilter",
        features: &["rx-vlan-filter", "rx-vlan-stag-filter"],
        harm: "the NIC drops frames of VLANs that this host does not use, so they are not captured",
        harmless: "frames of all VLANs are let through",
    };
    let mut judged = toggle.judge(facts, purpose, attempts);
    let promiscuity = facts.link.as_ref().ok().and_then(|l| l.promiscuity);
    let passes = match (promiscuity, purpose) {
        (Some(1..), _) => Some("the filter is on, and promiscuous mode lets frames of all VLANs through"),
        (Some(0), Purpose::Mirror) if facts.is_open() == Some(false) => Some(
            "the filter is on, and promiscuous mode, which captured turns on while the interface is attached, lets frames of all VLANs through",
        ),
        _ => None,
    };
    if let Some(passes) = passes.filter(|_| judged.state == NicState::Wrong) {
        judged.state = NicState::Good;
        judged.wanted = Some("off, or promiscuous".into());
        judged.consequence = passes.into();
    } else if judged.state == NicState::Wrong && purpose == Purpose::Node {
        judged.state = NicState::Good;
        judged.wanted = None;
        judged.consequence = "frames of the VLANs that this node uses are let through; those of others are seen in promiscuous mode only".into();
    }
    judged
}

/// What the node sends, which only AF_PACKET sees.
pub(super) fn segmentation(facts: &Facts, purpose: Purpose) -> NicVerdict {
    if purpose == Purpose::Mirror {
        return verdict(
            "segmentation",
            "nothing is sent".into(),
            None,
            NicState::Good,
            "a mirror interface only receives",
        );
    }
    let toggle = Toggle {
        item: "segmentation",
        features: &[
            "tx-tcp-segmentation",
            "tx-tcp6-segmentation",
            "tx-generic-segmentation",
            "tx-udp-segmentation",
        ],
        harm: "what the node sends is captured before the NIC cuts it up, so captured packets are longer and fewer than those on the wire",
        harmless: "what the node sends is captured as it goes out",
    };
    toggle.judge(facts, purpose, &[])
}
