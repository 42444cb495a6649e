//! Making, marking, moving and deleting the pair.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::claim::PREFIX;
use super::{FeedError, MTU};
use crate::interface::InterfaceName;
use crate::netlink::link::{self, LinkFacts, ifinfo};
use crate::netlink::{Message, Netlink, Refusal};
use crate::ring::ethtool::Ethtool;

const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const SET_LINK: u16 = 19;
const CREATE_EXCLUSIVELY: u16 = 0x600;
const NAME: u16 = 3;
const MTU_OF: u16 = 4;
const INFO: u16 = 18;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;
const ALIAS: u16 = 20;
const FAMILIES: u16 = 26;
const INET6: u16 = libc::AF_INET6 as u16;
const INET6_ADDRESSES: u16 = 8;
const NO_ADDRESSES: u8 = 1;
const NAMESPACE: u16 = 28;

const UP: u32 = libc::IFF_UP as u32;
const QUIET: u32 = libc::IFF_NOARP as u32;
/// No group is joined without it, and no router asked for.
const MULTICAST: u32 = libc::IFF_MULTICAST as u32;

/// The alias of our ends, by which a later daemon knows them.
const MARK: &str = "trawl-captured: copies for ";
/// Off at the sending end: tags stay in the bytes, and nothing is put off for a NIC that will never come.
const OFF_HERE: [&str; 4] = [
    "tx-vlan-hw-insert",
    "tx-vlan-stag-hw-insert",
    "tx-tcp-segmentation",
    "tx-generic-segmentation",
];
/// Off at the reading end: nothing is merged or taken out.
const OFF_THERE: [&str; 5] = [
    "rx-gro",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
    "rx-vlan-hw-parse",
    "rx-vlan-stag-hw-parse",
];

/// Both ends, by index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub near: u32,
    far: u32,
}

impl Pair {
    /// Both ends here, down.
    pub(super) fn make(netlink: &mut Netlink, end: &InterfaceName) -> Result<Self, FeedError> {
        let step = "make a veth pair";
        let far = far_name(end);
        let mtu = MTU.to_ne_bytes();
        let head = ifinfo(0, QUIET, QUIET | MULTICAST);
        let request = Message::new(NEW_LINK, CREATE_EXCLUSIVELY, &head)
            .text(NAME, end.as_str())
            .attribute(MTU_OF, &mtu)
            .nest(INFO, &[], |m| {
                m.text(INFO_KIND, "veth").nest(INFO_DATA, &[], |m| {
                    m.nest(VETH_PEER, &head, |m| m.text(NAME, &far).attribute(MTU_OF, &mtu))
                })
            });
        netlink.ask(request).map_err(|e| FeedError::at(step, e))?;
        let near = link::by_name(netlink, end).map_err(|e| FeedError::at(step, e))?;
        // Both ends are in one namespace now, where each names the other.
        let far = near
            .lower
            .ok_or_else(|| FeedError::at(step, rustix::io::Errno::NODEV))?;
        Ok(Self {
            near: near.index,
            far,
        })
    }
}

/// What the analyzer's end is called until it is where it belongs.
fn far_name(end: &InterfaceName) -> String {
    end.as_str().replacen(PREFIX, "trawlp", 1)
}

/// Marks the near end, moves the far one, and sets both up.
pub(super) fn set_up(
    netlink: &mut Netlink,
    pair: &Pair,
    end: &InterfaceName,
    name: &InterfaceName,
    netns: BorrowedFd<'_>,
) -> Result<(), FeedError> {
    let mark = Message::new(SET_LINK, 0, &ifinfo(pair.near, 0, 0)).text(ALIAS, &format!("{MARK}{name}"));
    netlink
        .ask(mark)
        .map_err(|e| FeedError::at("mark the veth pair", e))?;
    without_addresses(netlink, |m| m, ifinfo(pair.near, 0, 0))
        .map_err(|e| FeedError::at("turn off IPv6 addresses", e))?;
    turn_off(end, &OFF_HERE)?;
    if let Ok(far) = far_name(end).parse() {
        turn_off(&far, &OFF_THERE)?;
    }
    move_there(netlink, pair.far, name, netns)?;
    netlink
        .ask(Message::new(SET_LINK, 0, &ifinfo(pair.near, UP, UP)))
        .map_err(|e| gone(e, name, "set the feed up"))?;
    let near = link::by_index(netlink, pair.near).map_err(|e| gone(e, name, "look at the feed"))?;
    if near.is_up() && near.has_carrier() {
        Ok(())
    } else {
        Err(FeedError::Gone(name.clone()))
    }
}

/// Moves the far end, names it, and sets it up: its last message from here, since another namespace cannot be
/// configured without entering it, which takes more privilege than captured has. The near end is still down, so that
/// the far one has no carrier and makes no IPv6 address before the same message, further on, forbids it.
fn move_there(
    netlink: &mut Netlink,
    far: u32,
    name: &InterfaceName,
    netns: BorrowedFd<'_>,
) -> Result<(), FeedError> {
    let target = netns.as_raw_fd().to_ne_bytes();
    let there = |m: Message| m.attribute(NAMESPACE, &target).text(NAME, name.as_str());
    let head = ifinfo(far, UP | QUIET, UP | QUIET | MULTICAST);
    let moved = without_addresses(netlink, there, head);
    moved.map_err(|e| match e.errno {
        libc::EEXIST => FeedError::NameTaken(name.clone()),
        _ => gone(e, name, "move an interface into the analyzer's network namespace"),
    })
}

/// Changes a link and keeps it from making IPv6 addresses, where the kernel has IPv6.
fn without_addresses(
    netlink: &mut Netlink,
    also: impl Fn(Message) -> Message,
    head: [u8; 16],
) -> Result<(), Refusal> {
    let plain = || also(Message::new(SET_LINK, 0, &head));
    let request = plain().nest(FAMILIES, &[], |m| {
        m.nest(INET6, &[], |m| m.attribute(INET6_ADDRESSES, &[NO_ADDRESSES]))
    });
    match netlink.ask(request) {
        Err(e) if e.errno == libc::EAFNOSUPPORT => netlink.ask(plain()).map(drop),
        other => other.map(drop),
    }
}

fn gone(e: Refusal, name: &InterfaceName, step: &'static str) -> FeedError {
    match e.errno {
        libc::ENODEV => FeedError::Gone(name.clone()),
        _ => FeedError::at(step, e),
    }
}

/// Turns features off, as far as the kernel has them, and reads them back.
fn turn_off(name: &InterfaceName, features: &[&str]) -> Result<(), FeedError> {
    let step = "turn off the offloads of the feed";
    let tool = Ethtool::open().map_err(|e| FeedError::at(step, e))?;
    tool.set_features(name, features, false)
        .map_err(|e| FeedError::at(step, e))?;
    let after = tool.features(name).map_err(|e| FeedError::at(step, e))?;
    match after.iter().find(|f| f.on && features.contains(&f.name.as_str())) {
        None => Ok(()),
        Some(still) => Err(FeedError::System {
            step,
            source: Refusal {
                errno: libc::EOPNOTSUPP,
                words: Some(format!("{} stays on", still.name)),
            },
        }),
    }
}

/// Whether this link is an end that we, or another daemon of ours, made.
pub(super) fn is_ours(link: &LinkFacts) -> bool {
    let number = link.name.strip_prefix(PREFIX).unwrap_or_default();
    let named = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    named && link.kind.as_deref() == Some("veth") && link.alias.starts_with(MARK)
}

/// Deletes a near end, and the far one with it.
pub(super) fn delete(netlink: &mut Netlink, index: u32) -> Result<(), Refusal> {
    netlink
        .ask(Message::new(DELETE_LINK, 0, &ifinfo(index, 0, 0)))
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_bears_our_name_kind_and_mark_is_ours() {
        let link = |name: &str, kind: &str, alias: &str| LinkFacts {
            name: name.into(),
            kind: Some(kind.into()),
            alias: alias.into(),
            ..LinkFacts::default()
        };
        let mark = format!("{MARK}mon0");
        assert!(is_ours(&link("trawlf0", "veth", &mark)));
        for other in [
            link("trawlf", "veth", &mark),
            link("trawlfx", "veth", &mark),
            link("veth0", "veth", &mark),
            link("trawlf0", "dummy", &mark),
            link("trawlf0", "veth", ""),
            link("trawlf0", "veth", "somebody's"),
        ] {
            assert!(!is_ours(&other), "{other:?}");
        }
    }
}
