//! What can arrive at all, and when it is said to have.

use trawl_control::{NicState, NicVerdict};

use super::{good_if, unknown, verdict};
use crate::nic::Purpose;
use crate::nic::facts::Facts;

/// Ethernet header and one VLAN tag, which every NIC lets through on top of its MTU.
const HEADERS: u32 = 18;
/// The least MTU of Ethernet.
const ETHERNET_MTU: u32 = 1500;

pub(super) fn mtu(facts: &Facts, purpose: Purpose) -> NicVerdict {
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
        _ if link.mtu < ETHERNET_MTU && purpose == Purpose::Mirror => verdict(
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

pub(super) fn promiscuity(facts: &Facts, purpose: Purpose) -> NicVerdict {
    let wanted = (purpose == Purpose::Mirror).then_some("on while it is captured");
    let count = match &facts.link {
        Err(why) => return unknown("promiscuity", wanted, why),
        Ok(link) => link.promiscuity,
    };
    let Some(count) = count else {
        return unknown("promiscuity", wanted, "this kernel does not tell");
    };
    let alone = format!(
        "only frames for this node's own address are let through, and a program that is not captured has it open; end that program, or run: ip link set {} promisc on",
        facts.name
    );
    let (state, consequence) = match (count, purpose, facts.is_open()) {
        (1.., ..) => (NicState::Good, "frames for all stations are let through"),
        (0, Purpose::Node, _) => (
            NicState::Good,
            "only frames for this node are let through, unless a capture asks for promiscuous mode",
        ),
        (0, Purpose::Mirror, Some(true)) => (NicState::Wrong, &*alone),
        (0, Purpose::Mirror, None) => (
            NicState::Unknown,
            "only frames for this node's own address are let through now; whether the interface is attached, when this would be wrong, the kernel does not tell",
        ),
        (0, Purpose::Mirror, Some(false)) => (
            NicState::Good,
            "captured turns it on while the interface is attached; until then only frames for this node's own address are let through",
        ),
    };
    let found = if count > 0 { "on" } else { "off" };
    verdict("promiscuity", found.into(), wanted, state, consequence)
}

pub(super) fn link(facts: &Facts) -> NicVerdict {
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

pub(super) fn speed(facts: &Facts) -> NicVerdict {
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

pub(super) fn clock(facts: &Facts) -> NicVerdict {
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
