//! Links, addresses and routes (`rtnetlink(7)`, `include/uapi/linux/if_link.h`).

use super::{Message, Netlink, Refusal, attributes, text, word};
use crate::interface::InterfaceName;

const GET_LINK: u16 = 18;
const GET_ADDRESS: u16 = 22;
const GET_ROUTE: u16 = 26;
const IFINFO: usize = 16;
const RTMSG: usize = 12;
const IFADDR: usize = 8;
const UNICAST: u8 = 1;
const SCOPE_LINK: u8 = 253;
/// There is a carrier now. `IFF_RUNNING` says so a while later.
const LOWER_UP: u32 = 1 << 16;

mod kind {
    pub const ADDRESS_ORIGIN: u16 = 11;
    pub const NAME: u16 = 3;
    pub const MTU: u16 = 4;
    pub const LOWER: u16 = 5;
    pub const MASTER: u16 = 10;
    pub const INFO: u16 = 18;
    pub const INFO_KIND: u16 = 1;
    pub const ALIAS: u16 = 20;
    pub const STATISTICS: u16 = 23;
    pub const PROMISCUITY: u16 = 30;
    pub const RX_QUEUES: u16 = 32;
    pub const LOWER_NAMESPACE: u16 = 37;
    pub const XDP: u16 = 43;
    pub const XDP_PROGRAM: u16 = 4;
    pub const ROUTE_INTERFACE: u16 = 4;
    pub const ROUTE_MULTIPATH: u16 = 9;
}

/// What the kernel says of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkFacts {
    pub index: u32,
    pub name: String,
    /// `IFF_*`.
    pub flags: u32,
    pub mtu: u32,
    /// Index of the bridge, bond, team, VRF or switch that it is a port of.
    pub master: Option<u32>,
    /// Index of the link that it sits on, in this namespace.
    pub lower: Option<u32>,
    /// `veth`, `vlan`, `bond`...; none for hardware.
    pub kind: Option<String>,
    pub alias: String,
    /// How many asked for promiscuous mode; absent when the kernel does not tell.
    pub promiscuity: Option<u32>,
    /// Receive queues that were allocated; the ones in use may be fewer.
    pub rx_queues: Option<u32>,
    /// Frames that were too long or too short.
    pub length_errors: Option<u64>,
    /// Frames that the NIC or its driver lost.
    pub lost: Option<u64>,
    /// Number of the XDP program on it.
    pub xdp_program: Option<u32>,
}

impl LinkFacts {
    pub(crate) fn is_up(&self) -> bool {
        self.flags & libc::IFF_UP as u32 != 0
    }

    pub(crate) fn has_carrier(&self) -> bool {
        self.flags & LOWER_UP != 0
    }
}

/// The structure before the attributes of a link message.
pub(crate) fn ifinfo(index: u32, flags: u32, change: u32) -> [u8; IFINFO] {
    let mut head = [0; IFINFO];
    head[4..8].copy_from_slice(&index.to_ne_bytes());
    head[8..12].copy_from_slice(&flags.to_ne_bytes());
    head[12..].copy_from_slice(&change.to_ne_bytes());
    head
}

/// One link by name.
pub(crate) fn by_name(netlink: &mut Netlink, name: &InterfaceName) -> Result<LinkFacts, Refusal> {
    one(
        netlink,
        Message::new(GET_LINK, 0, &ifinfo(0, 0, 0)).text(kind::NAME, name.as_str()),
    )
}

/// One link by index.
pub(crate) fn by_index(netlink: &mut Netlink, index: u32) -> Result<LinkFacts, Refusal> {
    one(netlink, Message::new(GET_LINK, 0, &ifinfo(index, 0, 0)))
}

fn one(netlink: &mut Netlink, request: Message) -> Result<LinkFacts, Refusal> {
    let answers = netlink.ask(request)?;
    let link = answers.first().and_then(|body| read(body));
    link.ok_or_else(|| rustix::io::Errno::NODEV.into())
}

/// All links of the namespace.
pub(crate) fn all(netlink: &mut Netlink) -> Result<Vec<LinkFacts>, Refusal> {
    let answers = netlink.ask(Message::list(GET_LINK, &ifinfo(0, 0, 0)))?;
    Ok(answers.iter().filter_map(|body| read(body)).collect())
}

fn read(body: &[u8]) -> Option<LinkFacts> {
    let mut link = LinkFacts {
        index: word(body.get(4..)?)?,
        flags: word(body.get(8..)?)?,
        ..LinkFacts::default()
    };
    let mut elsewhere = false;
    for (found, value) in attributes(body.get(IFINFO..)?) {
        match found {
            kind::NAME => link.name = text(value),
            kind::MTU => link.mtu = word(value)?,
            kind::MASTER => link.master = word(value).filter(|m| *m != 0),
            kind::LOWER => link.lower = word(value).filter(|l| *l != 0),
            kind::LOWER_NAMESPACE => elsewhere = true,
            kind::ALIAS => link.alias = text(value),
            kind::PROMISCUITY => link.promiscuity = word(value),
            kind::RX_QUEUES => link.rx_queues = word(value),
            kind::STATISTICS => {
                link.length_errors = counter(value, RX_LENGTH_ERRORS);
                link.lost = lost(value);
            }
            kind::XDP => {
                let mut inside = attributes(value);
                let program = inside.find(|(k, _)| *k == kind::XDP_PROGRAM);
                link.xdp_program = program.and_then(|(_, v)| word(v));
            }
            kind::INFO => {
                let mut inside = attributes(value);
                link.kind = inside.find(|(k, _)| *k == kind::INFO_KIND).map(|(_, v)| text(v));
            }
            _ => {}
        }
    }
    // An index in another namespace would be taken for an unrelated link of this one.
    link.lower = link.lower.filter(|_| !elsewhere);
    Some(link)
}

// Fields of `struct rtnl_link_stats64`, each a u64.
const RX_LENGTH_ERRORS: usize = 10;
const RX_OVER_ERRORS: usize = 11;
const RX_FIFO_ERRORS: usize = 14;
const RX_MISSED_ERRORS: usize = 15;

fn counter(statistics: &[u8], field: usize) -> Option<u64> {
    let bytes = statistics.get(8 * field..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

/// Missed by the NIC, or over its buffers.
fn lost(statistics: &[u8]) -> Option<u64> {
    // Some drivers show one event as both, so that their sum would count it twice.
    let overrun = counter(statistics, RX_FIFO_ERRORS)?.max(counter(statistics, RX_OVER_ERRORS)?);
    counter(statistics, RX_MISSED_ERRORS)?.checked_add(overrun)
}

/// Who gave a link an address: of IPv4, or one of IPv6 that is not merely link-local. The greatest counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Address {
    /// It has none.
    #[default]
    None,
    /// The kernel, from a router advertisement (told since Linux 5.18), which may have been a mirrored one.
    Advertised,
    /// Somebody.
    Given,
}

/// The address of a link.
pub(crate) fn address(netlink: &mut Netlink, index: u32) -> Result<Address, Refusal> {
    let answers = netlink.ask(Message::list(GET_ADDRESS, &[0; IFADDR]))?;
    let each = answers.iter().map(|body| address_in(body, index));
    Ok(each.max().unwrap_or_default())
}

fn address_in(body: &[u8], index: u32) -> Address {
    /// `IFAPROT_KERNEL_RA`.
    const ADVERTISED: u8 = 2;
    let (Some([family, _, _, scope]), Some(of)) = (body.first_chunk(), body.get(4..).and_then(word)) else {
        return Address::None;
    };
    let counts = *family == libc::AF_INET as u8 || (*family == libc::AF_INET6 as u8 && *scope != SCOPE_LINK);
    if of != index || !counts {
        return Address::None;
    }
    let mut more = attributes(body.get(IFADDR..).unwrap_or_default());
    match more.any(|(found, value)| found == kind::ADDRESS_ORIGIN && value == [ADVERTISED]) {
        true => Address::Advertised,
        false => Address::Given,
    }
}

/// Whether a default route of the main table, of IPv4 or IPv6, leads out of this link.
pub(crate) fn has_default_route(netlink: &mut Netlink, index: u32) -> Result<bool, Refusal> {
    let answers = netlink.ask(Message::list(GET_ROUTE, &[0; RTMSG]))?;
    Ok(answers.iter().any(|body| is_default_route(body, index)))
}

fn is_default_route(body: &[u8], index: u32) -> bool {
    let Some(head) = body.first_chunk::<RTMSG>() else {
        return false;
    };
    let (prefix, table, sort) = (head[1], head[4], head[7]);
    if prefix != 0 || table != libc::RT_TABLE_MAIN || sort != UNICAST {
        return false;
    }
    attributes(&body[RTMSG..]).any(|(found, value)| match found {
        kind::ROUTE_INTERFACE => word(value) == Some(index),
        kind::ROUTE_MULTIPATH => hops(value).any(|hop| hop == index),
        _ => false,
    })
}

/// The interfaces of the `rtnexthop` structures of a route with several.
fn hops(mut bytes: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let index = word(bytes.get(4..)?)?;
        bytes = bytes.get(length.max(8).next_multiple_of(4)..).unwrap_or_default();
        Some(index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of netlink, before what the kernel says of the link.
    const HEADER: usize = 16;

    /// What a link with these counters answers, behind its name.
    fn lost_in(missed: u64, fifo: u64, over: u64, fields: usize) -> Option<u64> {
        let mut counters = [0; 25];
        counters[RX_MISSED_ERRORS] = missed;
        counters[RX_FIFO_ERRORS] = fifo;
        counters[RX_OVER_ERRORS] = over;
        let counters: Vec<u8> = counters.iter().flat_map(|n: &u64| n.to_ne_bytes()).collect();
        let message = Message::new(GET_LINK, 0, &ifinfo(7, 0, 0)).text(kind::NAME, "eth0");
        let message = message.attribute(kind::STATISTICS, &counters[..8 * fields]);
        read(&message.finish()[HEADER..]).unwrap().lost
    }

    #[test]
    fn what_a_driver_shows_twice_is_counted_once() {
        assert_eq!(lost_in(5, 3, 3, 25), Some(8));
        assert_eq!(lost_in(0, 0, 7, 25), Some(7));
    }

    #[test]
    fn counters_that_are_not_there_are_unknown_and_not_zero() {
        assert_eq!(lost_in(5, 3, 3, 15), None);
        let silent = Message::new(GET_LINK, 0, &ifinfo(7, 0, 0)).finish();
        assert_eq!(read(&silent[HEADER..]).unwrap().lost, None);
    }
}
