//! Which interfaces are not for AF_XDP to take.

use super::read::words;
use crate::interface::InterfaceName;
use crate::netlink::link::{self, Address, LinkFacts};
use crate::netlink::{Netlink, Refusal};

/// Kinds of link that sit on another one and live from its frames. A veth also names its other end as the one below
/// it, and does not sit on it.
const RIDERS: [&str; 8] = [
    "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec", "hsr", "bareudp",
];
/// Kinds of link that collect the frames of others.
const MASTERS: [&str; 5] = ["bridge", "bond", "team", "openvswitch", "vrf"];

pub(super) fn refusal(name: &InterfaceName) -> Option<String> {
    match look(name) {
        Ok(around) => judge(&around?),
        Err(e) => Some(format!(
            "whether {name} is free to be taken as a mirror interface could not be found out: {}",
            words(&e)
        )),
    }
}

/// A link, and what is around it.
#[derive(Clone, Debug, Default)]
struct Around {
    link: LinkFacts,
    all: Vec<LinkFacts>,
    address: Address,
    default_route: bool,
}

fn look(name: &InterfaceName) -> Result<Option<Around>, Refusal> {
    let mut netlink = Netlink::route()?;
    let link = match link::by_name(&mut netlink, name) {
        Ok(link) => link,
        Err(e) if e.errno == libc::ENODEV => return Ok(None),
        Err(e) => return Err(e),
    };
    Ok(Some(Around {
        all: link::all(&mut netlink)?,
        address: link::address(&mut netlink, link.index)?,
        default_route: link::has_default_route(&mut netlink, link.index)?,
        link,
    }))
}

fn judge(around: &Around) -> Option<String> {
    let (link, all) = (&around.link, &around.all);
    let name = &link.name;
    let instead = "tap it as a node interface instead, or name an interface that only receives copies";
    if link.flags & libc::IFF_LOOPBACK as u32 != 0 {
        return Some(format!(
            "{name} is the loopback and carries the node's own traffic; tap it as a node interface instead"
        ));
    }
    if around.address == Address::Advertised {
        return Some(format!(
            "{name} has made itself an IPv6 address from a router advertisement, maybe a mirrored one; if the node does not live on it run: sysctl -w net.ipv6.conf.{name}.disable_ipv6=1, otherwise tap it as a node interface instead"
        ));
    }
    if around.address == Address::Given {
        return Some(format!(
            "{name} has an IP address: the node would lose the traffic of it; {instead}"
        ));
    }
    if around.default_route {
        return Some(format!(
            "{name} is where the default route of the node leads; {instead}"
        ));
    }
    if let Some(index) = link.master {
        let master = all.iter().find(|l| l.index == index);
        let (of, kind) = master.map_or(("another interface", "device"), |m| {
            (&*m.name, m.kind.as_deref().unwrap_or("switch"))
        });
        return Some(format!(
            "{name} is a port of {of} ({kind}), which would receive nothing more from it; run: ip link set {name} nomaster, or tap it as a node interface instead"
        ));
    }
    if let Some(rider) = rider(link, all) {
        return Some(format!(
            "{rider} sits on {name} and would receive nothing more; delete it, or tap {name} as a node interface instead"
        ));
    }
    let ports: Vec<&str> = all
        .iter()
        .filter(|l| l.master == Some(link.index))
        .map(|l| &*l.name)
        .collect();
    let kind = link.kind.as_deref().filter(|k| MASTERS.contains(k))?;
    (!ports.is_empty()).then(|| {
        format!(
            "{name} is a {kind}: what its ports receive does not all come through it; take the ports ({}) out of it and name each of them as a mirror interface",
            ports.join(", ")
        )
    })
}

fn rider<'a>(link: &LinkFacts, all: &'a [LinkFacts]) -> Option<&'a str> {
    let rides = |l: &&LinkFacts| {
        l.lower == Some(link.index) && l.kind.as_deref().is_some_and(|k| RIDERS.contains(&k))
    };
    all.iter().find(rides).map(|l| &*l.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, kind: Option<&str>) -> LinkFacts {
        LinkFacts {
            index,
            name: name.into(),
            kind: kind.map(Into::into),
            ..LinkFacts::default()
        }
    }

    fn free() -> Around {
        let link = link(2, "eth1", None);
        Around {
            all: vec![link.clone()],
            link,
            ..Around::default()
        }
    }

    #[test]
    fn an_interface_that_nobody_lives_on_is_not_refused() {
        assert_eq!(judge(&free()), None);
        let mut veth = free();
        veth.all.push(LinkFacts {
            lower: Some(2),
            ..link(3, "far0", Some("veth"))
        });
        assert_eq!(judge(&veth), None);
        let mut empty_bond = free();
        empty_bond.link.kind = Some("bond".into());
        assert_eq!(judge(&empty_bond), None);
    }

    #[test]
    fn an_interface_that_somebody_lives_on_is_refused_with_who_it_is() {
        let with = |change: &dyn Fn(&mut Around)| {
            let mut around = free();
            change(&mut around);
            judge(&around).unwrap_or_else(|| panic!("{around:?}"))
        };
        let said = [
            (with(&|a| a.link.flags = libc::IFF_LOOPBACK as u32), "loopback"),
            (with(&|a| a.address = Address::Given), "IP address"),
            (with(&|a| a.address = Address::Advertised), "router advertisement"),
            (with(&|a| a.default_route = true), "default route"),
            (
                with(&|a| {
                    a.link.master = Some(9);
                    a.all.push(link(9, "br0", Some("bridge")));
                }),
                "port of br0 (bridge)",
            ),
            (
                with(&|a| {
                    a.link.master = Some(9);
                    a.all.push(link(9, "ovs-system", None));
                }),
                "port of ovs-system (switch)",
            ),
            (with(&|a| a.link.master = Some(9)), "port of another interface"),
            (
                with(&|a| {
                    a.all.push(LinkFacts {
                        lower: Some(2),
                        ..link(3, "eth1.7", Some("vlan"))
                    })
                }),
                "eth1.7 sits on eth1",
            ),
            (
                with(&|a| {
                    a.link.kind = Some("bond".into());
                    a.all.push(LinkFacts {
                        master: Some(2),
                        ..link(3, "eth2", None)
                    });
                }),
                "(eth2)",
            ),
        ];
        for (sentence, wanted) in said {
            assert!(sentence.contains(wanted), "{sentence}");
        }
    }
}
