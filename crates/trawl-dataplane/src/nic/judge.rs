//! From facts to verdicts, without a kernel: one function per item.

use trawl_control::{NicState, NicVerdict};

use super::Purpose;
use super::facts::{Facts, is_symmetric};
use super::repair::Attempt;
use crate::ring::ethtool::Feature;

/// Ethernet header and one VLAN tag, which every NIC lets through on top of its MTU.
const HEADERS: u32 = 18;
/// The least MTU of Ethernet.
const ETHERNET_MTU: u32 = 1500;
/// The largest MTU whose frames fit one page together with what XDP needs; longer ones lie in several buffers.
const ONE_BUFFER_MTU: u32 = 3498;
/// Descriptors of a receive ring that hold a burst of some milliseconds.
const RING: u32 = 1024;

pub(super) fn all(facts: &Facts, purpose: Purpose, attempts: &[Attempt]) -> Vec<NicVerdict> {
    let merging = Toggle {
        item: "gro",
        features: &["rx-gro", "rx-gro-hw"],
        harm: "GRO merges packets before they are seen, so captured packets are longer and fewer than those on the wire",
        harmless: "packets are not merged by GRO",
    };
    let lro = Toggle {
        item: "lro",
        features: &["rx-lro"],
        harm: "LRO merges packets in the NIC, so captured packets are longer and fewer than those on the wire, and AF_XDP is refused by many drivers",
        harmless: "packets are not merged by the NIC",
    };
    vec![
        driver(facts),
        queues(facts),
        sockets(facts, purpose),
        rss(facts),
        merging.judge(facts, purpose, attempts),
        lro.judge(facts, purpose, attempts),
        rx_vlan(facts, purpose, attempts),
        vlan_filter(facts, purpose, attempts),
        segmentation(facts, purpose),
        mtu(facts),
        promiscuity(facts, purpose),
        link(facts),
        speed(facts),
        ring(facts),
        clock(facts),
        xdp(facts, purpose),
    ]
}

fn verdict(
    item: &str,
    found: String,
    wanted: Option<&str>,
    state: NicState,
    consequence: impl Into<String>,
) -> NicVerdict {
    NicVerdict {
        item: item.into(),
        found: Some(found),
        wanted: wanted.map(Into::into),
        state,
        consequence: consequence.into(),
    }
}

fn unknown(item: &str, wanted: Option<&str>, why: &str) -> NicVerdict {
    NicVerdict {
        item: item.into(),
        found: None,
        wanted: wanted.map(Into::into),
        state: NicState::Unknown,
        consequence: format!("could not be looked at: {why}"),
    }
}

fn good_if(good: bool) -> NicState {
    if good { NicState::Good } else { NicState::Wrong }
}

fn driver(facts: &Facts) -> NicVerdict {
    match &facts.driver {
        Err(why) => unknown("driver", None, why),
        Ok(d) => {
            let mut found = d.name.clone();
            for (word, value) in [("firmware", &d.firmware), ("bus", &d.bus)] {
                if !value.is_empty() && value != "N/A" {
                    found.push_str(&format!(", {word} {value}"));
                }
            }
            verdict(
                "driver",
                found,
                None,
                NicState::Good,
                "the driver decides which of the other items can be changed",
            )
        }
    }
}

fn queues(facts: &Facts) -> NicVerdict {
    let wanted = facts.cpus.map(|cpus| format!("at most {cpus}, as many as CPUs"));
    match (facts.queues(), facts.cpus) {
        (Err(why), _) => unknown("queues", wanted.as_deref(), &why),
        (Ok((now, max)), cpus) => {
            let found = max.map_or_else(|| now.to_string(), |max| format!("{now} of {max}"));
            let enough = cpus.is_none_or(|cpus| now <= cpus);
            let consequence = if enough {
                "each receive queue is served by a thread of its own".into()
            } else {
                let cpus = cpus.unwrap_or(1);
                format!(
                    "there are more receive queues than CPUs, so that their threads share CPUs and a burst on one delays another; run: ethtool -L {} combined {cpus}",
                    facts.name
                )
            };
            verdict("queues", found, wanted.as_deref(), good_if(enough), consequence)
        }
    }
}

fn sockets(facts: &Facts, purpose: Purpose) -> NicVerdict {
    let wanted = "one per receive queue, or none while it is not captured";
    if purpose == Purpose::Node {
        return verdict(
            "sockets",
            "not by AF_XDP".into(),
            None,
            NicState::Good,
            "AF_PACKET receives from all queues at once",
        );
    }
    match &facts.queues {
        Err(why) => unknown("sockets", Some(wanted), why),
        Ok(q) if q.queues == 0 => unknown(
            "sockets",
            Some(wanted),
            "an interface that is down has no queues in use",
        ),
        Ok(q) => {
            let found = format!("{} on {} queues", q.sockets, q.queues);
            let consequence = match q.sockets {
                0 => "no AF_XDP socket is open on it now; captured opens one per receive queue",
                n if n == q.queues => "every receive queue is captured",
                _ => {
                    "frames that come to a queue without a socket are not captured; attach it again, and see whether another program holds the other queues"
                }
            };
            let good = q.sockets == 0 || q.sockets == q.queues;
            verdict("sockets", found, Some(wanted), good_if(good), consequence)
        }
    }
}

fn rss(facts: &Facts) -> NicVerdict {
    let wanted = Some("symmetric, when there are several queues");
    let queues = match facts.queues() {
        Err(why) => return unknown("rss", wanted, &why),
        Ok((queues, _)) => queues,
    };
    if queues <= 1 {
        return verdict(
            "rss",
            "one queue".into(),
            wanted,
            NicState::Good,
            "all packets come in the order of the wire",
        );
    }
    match (&facts.hash, &facts.fields) {
        (Err(why), _) | (_, Err(why)) => {
            let why = format!(
                "{why}; both directions of a connection may come to different queues, whose packets are ordered by their stamps alone"
            );
            unknown("rss", wanted, &why)
        }
        (Ok(hash), Ok(fields)) if is_symmetric(hash, fields) => verdict(
            "rss",
            "symmetric".into(),
            wanted,
            NicState::Good,
            "both directions of a connection come to the same queue",
        ),
        _ => {
            let consequence = format!(
                "both directions of a connection come to different queues, whose packets are ordered by their stamps alone; run: ethtool -X {name} xfrm symmetric-xor, or use one queue: ethtool -L {name} combined 1",
                name = facts.name
            );
            verdict(
                "rss",
                "not symmetric".into(),
                wanted,
                NicState::Wrong,
                consequence,
            )
        }
    }
}

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
        let names = on
            .iter()
            .map(|f| f.name.as_str())
            .collect::<Vec<_>>()
            .join(" and ");
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
            "{}: {} was turned off, and is turned on again at detach",
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

/// Why a feature that should be off is on, and what can be done.
fn why_on(facts: &Facts, on: &[&Feature], purpose: Purpose, attempts: &[Attempt]) -> String {
    let Some(feature) = on.iter().find(|f| !f.fixed) else {
        return "the driver does not let it be turned off".into();
    };
    let command = format!("ethtool -K {} {} off", facts.name, feature.name);
    match attempts.iter().find(|a| a.feature == feature.name) {
        Some(Attempt {
            refused: Some(why), ..
        }) => format!("it could not be turned off ({why}); run: {command}"),
        Some(_) => format!("it was turned off, and somebody turned it on again; run: {command}"),
        None if purpose == Purpose::Node => format!(
            "it is left alone, since the node itself lives on this interface; to change it, run: {command}"
        ),
        None => format!("captured turns it off when it attaches the interface; by hand: {command}"),
    }
}

fn rx_vlan(facts: &Facts, purpose: Purpose, attempts: &[Attempt]) -> NicVerdict {
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

fn vlan_filter(facts: &Facts, purpose: Purpose, attempts: &[Attempt]) -> NicVerdict {
    let toggle = Toggle {
        item: "vlanFilter",
        features: &["rx-vlan-filter", "rx-vlan-stag-filter"],
        harm: "the NIC drops frames of VLANs that this host does not use, so they are not captured",
        harmless: "frames of all VLANs are let through",
    };
    let mut judged = toggle.judge(facts, purpose, attempts);
    let promiscuous = facts
        .link
        .as_ref()
        .is_ok_and(|l| l.promiscuity.is_some_and(|p| p > 0));
    if judged.state == NicState::Wrong && promiscuous {
        judged.state = NicState::Good;
        judged.wanted = Some("off, or promiscuous".into());
        judged.consequence = "the filter is on, and promiscuous mode lets frames of all VLANs through".into();
    } else if judged.state == NicState::Wrong && purpose == Purpose::Node {
        judged.state = NicState::Good;
        judged.wanted = None;
        judged.consequence = "frames of the VLANs that this node uses are let through; those of others are seen in promiscuous mode only".into();
    }
    judged
}

/// What the node sends, which only AF_PACKET sees.
fn segmentation(facts: &Facts, purpose: Purpose) -> NicVerdict {
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

fn mtu(facts: &Facts) -> NicVerdict {
    let link = match &facts.link {
        Err(why) => return unknown("mtu", None, why),
        Ok(link) => link,
    };
    let lets_through = format!(
        "frames of up to {} bytes are let through, and longer ones are dropped by most NICs",
        link.mtu + HEADERS
    );
    let raise = format!("for longer ones run: ip link set {} mtu 9216", facts.name);
    match link.length_errors {
        Some(errors) if errors > 0 => verdict(
            "mtu",
            format!("{}, {errors} frames of a wrong length so far", link.mtu),
            Some("no frames of a wrong length"),
            NicState::Wrong,
            format!("{lets_through}, which has happened; {raise}"),
        ),
        _ if link.mtu < ETHERNET_MTU => verdict(
            "mtu",
            link.mtu.to_string(),
            Some("at least 1500"),
            NicState::Wrong,
            format!("{lets_through}; {raise}"),
        ),
        _ => verdict(
            "mtu",
            link.mtu.to_string(),
            None,
            NicState::Good,
            format!("{lets_through}; {raise}"),
        ),
    }
}

fn promiscuity(facts: &Facts, purpose: Purpose) -> NicVerdict {
    let wanted = (purpose == Purpose::Mirror).then_some("on while it is captured");
    let count = match &facts.link {
        Err(why) => return unknown("promiscuity", wanted, why),
        Ok(link) => link.promiscuity,
    };
    let Some(count) = count else {
        return unknown("promiscuity", wanted, "this kernel does not tell");
    };
    let captured = facts.queues.as_ref().is_ok_and(|q| q.sockets > 0);
    let (state, consequence) = match (count, purpose) {
        (1.., _) => (NicState::Good, "frames for all stations are let through"),
        (0, Purpose::Node) => (
            NicState::Good,
            "only frames for this node are let through, unless a capture asks for promiscuous mode",
        ),
        (0, Purpose::Mirror) if captured => (
            NicState::Wrong,
            "only frames for this node's own address are let through; attach it with promiscuous: true",
        ),
        (0, Purpose::Mirror) => (
            NicState::Good,
            "captured turns it on while the interface is attached; until then only frames for this node's own address are let through",
        ),
    };
    let found = if count > 0 { "on" } else { "off" };
    verdict("promiscuity", found.into(), wanted, state, consequence)
}

fn link(facts: &Facts) -> NicVerdict {
    let link = match &facts.link {
        Err(why) => return unknown("link", Some("up"), why),
        Ok(link) => link,
    };
    let (found, consequence) = match (link.is_up(), link.has_carrier()) {
        (true, true) => ("up", "frames can arrive".to_owned()),
        (true, false) => (
            "no carrier",
            "nothing arrives until the cable, or the other end, is there".to_owned(),
        ),
        (false, _) => (
            "down",
            format!("nothing arrives; run: ip link set {} up", facts.name),
        ),
    };
    verdict(
        "link",
        found.into(),
        Some("up"),
        good_if(found == "up"),
        consequence,
    )
}

fn speed(facts: &Facts) -> NicVerdict {
    match facts.speed {
        Some(bits) => verdict(
            "speed",
            format!("{} Mbit/s", bits / 1_000_000),
            None,
            NicState::Good,
            "more than this cannot arrive; a mirror of a faster port, or of both directions of one as fast, loses packets at the switch",
        ),
        None => unknown("speed", None, "the driver does not tell, or there is no link"),
    }
}

fn ring(facts: &Facts) -> NicVerdict {
    let ring = match &facts.ring {
        Err(why) => return unknown("ring", None, why),
        Ok(ring) => ring,
    };
    let wanted = ring.max.min(RING);
    let good = ring.now >= wanted;
    let consequence = if good {
        "the NIC's receive rings hold a burst".to_owned()
    } else {
        format!(
            "a burst that outruns the receive ring is lost in the NIC; larger rings are not set by captured since that resets the link; run: ethtool -G {} rx {wanted}",
            facts.name
        )
    };
    let wanted = format!("at least {wanted}");
    verdict(
        "ring",
        format!("{} of {}", ring.now, ring.max),
        Some(&wanted),
        good_if(good),
        consequence,
    )
}

fn clock(facts: &Facts) -> NicVerdict {
    /// `SOF_TIMESTAMPING_RX_HARDWARE`.
    const RX_HARDWARE: u32 = 1 << 2;
    /// `HWTSTAMP_FILTER_ALL`, as a bit.
    const ALL_PACKETS: u32 = 1 << 1;
    match &facts.stamping {
        Err(why) => unknown("clock", None, why),
        Ok(s) => {
            let hardware = s.abilities & RX_HARDWARE != 0;
            let found = match (s.clock, hardware, s.filters & ALL_PACKETS != 0) {
                (Some(n), true, true) => format!("kernel; the NIC could stamp all packets by /dev/ptp{n}"),
                (Some(n), true, false) => format!("kernel; the NIC stamps only PTP packets, by /dev/ptp{n}"),
                _ => "kernel; no stamps by the NIC".into(),
            };
            verdict(
                "clock",
                found,
                None,
                NicState::Good,
                "packets are stamped by the kernel's clock when it takes them from the NIC, which is some microseconds after they were on the wire; stamps by the NIC are not used",
            )
        }
    }
}

fn xdp(facts: &Facts, purpose: Purpose) -> NicVerdict {
    if purpose == Purpose::Node {
        return verdict(
            "xdp",
            "not used".into(),
            None,
            NicState::Good,
            "node interfaces are opened by AF_PACKET alone",
        );
    }
    let wanted = Some("basic, redirect, xsk-zerocopy");
    match &facts.xdp {
        Err(why) => unknown("xdp", wanted, why),
        Ok(x) => {
            let words = xdp_words(x.features);
            let has = |word| words.contains(&word);
            let mut found = if words.is_empty() {
                "none".to_owned()
            } else {
                words.join(", ")
            };
            if let Some(segments) = x.segments.filter(|s| *s > 1) {
                found.push_str(&format!(", {segments} buffers per frame"));
            }
            let long = facts.link.as_ref().is_ok_and(|l| l.mtu > ONE_BUFFER_MTU);
            let (state, consequence) = match () {
                () if !has("basic") || !has("redirect") => (
                    NicState::Wrong,
                    "the driver has no XDP of its own; frames come in generic mode, which is slower and after the kernel has copied them",
                ),
                () if long && !has("rx-sg") => (
                    NicState::Wrong,
                    "the driver refuses XDP with this MTU, since it takes no frames of several buffers; frames come in generic mode, which is slower",
                ),
                () if !has("xsk-zerocopy") => (
                    NicState::Good,
                    "the driver runs XDP, and the kernel copies each frame once; there is no zero-copy",
                ),
                () => (
                    NicState::Good,
                    "the driver can put frames straight into captured's memory",
                ),
            };
            verdict("xdp", found, wanted, state, consequence)
        }
    }
}

fn xdp_words(features: u64) -> Vec<&'static str> {
    let words = [
        "basic",
        "redirect",
        "ndo-xmit",
        "xsk-zerocopy",
        "hw-offload",
        "rx-sg",
        "ndo-xmit-sg",
    ];
    let set = |number: &usize| features >> number & 1 != 0;
    (0..words.len()).filter(set).map(|n| words[n]).collect()
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
