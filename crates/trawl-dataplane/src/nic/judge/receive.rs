//! Drivers, queues and rings: how frames come in.

use trawl_control::{NicState, NicVerdict};

use super::{good_if, unknown, verdict};
use crate::netlink::driver::QueueFacts;
use crate::nic::Purpose;
use crate::nic::facts::{Facts, is_symmetric};

/// The largest MTU whose frames fit one page together with what XDP needs; longer ones lie in several buffers.
const ONE_BUFFER_MTU: u32 = 3498;
/// Descriptors of a receive ring that hold a burst of some milliseconds.
const RING: u32 = 1024;

pub(super) fn driver(facts: &Facts) -> NicVerdict {
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

pub(super) fn queues(facts: &Facts) -> NicVerdict {
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
                    "there are more receive queues than CPUs, so that their threads share CPUs and a burst on one delays another; run: ethtool -L {} {} {cpus}",
                    facts.name,
                    facts.queue_word()
                )
            };
            verdict("queues", found, wanted.as_deref(), good_if(enough), consequence)
        }
    }
}

pub(super) fn sockets(facts: &Facts, purpose: Purpose) -> NicVerdict {
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
        Ok(QueueFacts { sockets: None, .. }) => unknown(
            "sockets",
            Some(wanted),
            "kernels before 6.15 do not tell which queues have an AF_XDP socket",
        ),
        Ok(QueueFacts {
            queues,
            sockets: Some(sockets),
        }) => {
            let found = format!("{sockets} of {queues} queues");
            let consequence = match sockets {
                0 => "no AF_XDP socket is open on it now; captured opens one per receive queue",
                n if n == queues => "every receive queue is captured",
                _ => {
                    "frames that come to a queue without a socket are not captured; attach it again, and see whether another program holds the other queues"
                }
            };
            let good = *sockets == 0 || sockets == queues;
            verdict("sockets", found, Some(wanted), good_if(good), consequence)
        }
    }
}

pub(super) fn rss(facts: &Facts) -> NicVerdict {
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
                "both directions of a connection may come to different queues, whose packets are ordered by their stamps alone; run: ethtool -X {name} xfrm symmetric-xor, or use one queue: ethtool -L {name} {word} 1",
                name = facts.name,
                word = facts.queue_word()
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

pub(super) fn ring(facts: &Facts) -> NicVerdict {
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

pub(super) fn xdp(facts: &Facts, purpose: Purpose) -> NicVerdict {
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
