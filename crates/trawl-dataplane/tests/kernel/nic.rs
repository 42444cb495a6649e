//! The self-check against what ethtool and iproute2 print, and repairs that are undone.

use std::collections::HashMap;

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use trawl_control::{NicState, NicVerdict};
use trawl_dataplane::nic::{self, Purpose};
use trawl_dataplane::{InterfaceName, MirrorInterface};

use crate::world::{NEAR, World};

fn name(text: &str) -> InterfaceName {
    text.parse().unwrap()
}

fn near() -> MirrorInterface {
    MirrorInterface(name(NEAR))
}

fn of<'a>(verdicts: &'a [NicVerdict], item: &str) -> &'a NicVerdict {
    let found = verdicts.iter().find(|v| v.item == item);
    found.unwrap_or_else(|| panic!("no {item} in {verdicts:?}"))
}

/// Features as `ethtool -k` prints them, `[fixed]` included.
fn ethtool(world: &World, interface: &str) -> HashMap<String, String> {
    let printed = world.shell(&format!("ethtool -k {interface}"));
    let lines = printed.lines().skip(1).filter_map(|l| l.trim().split_once(": "));
    lines.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

fn is_on(world: &World, interface: &str, feature: &str) -> bool {
    ethtool(world, interface)[feature].starts_with("on")
}

/// One of each kind of interface that this kernel has.
fn zoo(world: &World) -> Vec<&'static str> {
    world.shell("echo 0 > /proc/sys/net/ipv6/conf/default/disable_ipv6");
    for add in [
        "ip link add bridge0 type bridge",
        "ip link add maclan0 link far0 type macvlan",
        "ip tuntap add dev tap0 mode tap",
        "ip link add dummy0 type dummy",
        "ip link add bond0 type bond",
        "ip link add vlan0 link far0 type vlan id 7",
        "ip link add ifb7 numrxqueues 3 numtxqueues 3 type ifb",
    ] {
        world.shell(&format!("{add} 2>/dev/null || true"));
    }
    let there = world.shell("ls /sys/class/net");
    [
        "near0", "far0", "bridge0", "maclan0", "tap0", "dummy0", "bond0", "vlan0", "ifb7",
    ]
    .into_iter()
    .filter(|n| there.lines().any(|line| line == *n))
    .collect()
}

#[test]
fn what_is_found_of_any_kind_of_interface_is_what_ethtool_and_iproute2_print() {
    let world = World::new();
    let kinds = zoo(&world);
    assert!(kinds.len() >= 5, "{kinds:?}");
    for interface in kinds {
        let verdicts = nic::check(&name(interface), Purpose::Mirror);
        let features = ethtool(&world, interface);
        for (item, words) in [
            ("gro", &["generic-receive-offload", "rx-gro-hw"][..]),
            ("lro", &["large-receive-offload"]),
            ("rxVlan", &["rx-vlan-offload", "rx-vlan-stag-hw-parse"]),
        ] {
            let on = words.iter().any(|w| features[*w].starts_with("on"));
            let verdict = of(&verdicts, item);
            assert_eq!(verdict.state == NicState::Good, !on, "{interface} {verdict:?}");
            let can_be_changed = words.iter().any(|w| features[*w] == "on");
            let says_so = !verdict.consequence.contains("does not let it be turned off");
            assert!(!on || can_be_changed == says_so, "{interface} {verdict:?}");
        }
        let link = world.shell(&format!("ip -d link show dev {interface}"));
        let mtu = of(&verdicts, "mtu").found.clone().unwrap();
        assert!(link.contains(&format!(" mtu {mtu} ")), "{interface} {mtu} {link}");
        let promiscuous = of(&verdicts, "promiscuity").found.as_deref() == Some("on");
        assert_eq!(promiscuous, !link.contains("promiscuity 0"), "{interface} {link}");
        let up = of(&verdicts, "link").found.as_deref() == Some("up");
        assert_eq!(
            up,
            link.contains("LOWER_UP") && link.contains(",UP"),
            "{interface} {link}"
        );
        let driver = world.shell(&format!("ethtool -i {interface} 2>&1 | sed -n 's/^driver: //p'"));
        let found = of(&verdicts, "driver").found.clone().unwrap_or_default();
        assert!(found.starts_with(driver.trim()), "{interface} {found} {driver}");
    }
}

#[test]
fn several_queues_are_counted_as_ethtool_counts_them_and_their_order_is_not_promised() {
    let queues = ["numrxqueues", "4", "numtxqueues", "4"];
    let world = World::with(&queues, &queues);
    world.shell("ethtool -L near0 rx 2 tx 2; ip link set near0 promisc on");
    let printed = world.shell("ethtool -l near0");
    let rx: Vec<&str> = printed
        .lines()
        .filter_map(|l| l.strip_prefix("RX:"))
        .map(str::trim)
        .collect();
    let verdicts = nic::check(&near().0, Purpose::Mirror);
    assert_eq!(
        of(&verdicts, "queues").found,
        Some(format!("{} of {}", rx[1], rx[0]))
    );
    assert_eq!(of(&verdicts, "rss").state, NicState::Unknown);
    assert_eq!(of(&verdicts, "promiscuity").found.as_deref(), Some("on"));
    assert_eq!(of(&verdicts, "sockets").found.as_deref(), Some("0 of 2 queues"));
}

#[test]
fn the_sockets_that_are_open_on_the_queues_are_counted_by_the_kernel() {
    let _world = World::new();
    let opened = crate::world::mirror(&crate::world::history(0));
    let verdicts = nic::check(&near().0, Purpose::Mirror);
    let sockets = of(&verdicts, "sockets");
    assert_eq!(sockets.found.as_deref(), Some("1 of 1 queues"), "{sockets:?}");
    assert_eq!(sockets.state, NicState::Good);
    assert_eq!(of(&verdicts, "promiscuity").state, NicState::Good);
    drop(opened);
}

#[test]
fn xdp_features_are_those_of_the_driver() {
    let world = World::new();
    let verdict = of(&nic::check(&near().0, Purpose::Mirror), "xdp").clone();
    assert_eq!(verdict.state, NicState::Good, "{verdict:?}");
    assert!(verdict.found.unwrap().starts_with("basic, redirect"));
    world.ip(&["link", "add", "bridge0", "type", "bridge"]);
    let none = of(&nic::check(&name("bridge0"), Purpose::Mirror), "xdp").clone();
    assert_eq!(none.state, NicState::Wrong, "{none:?}");
}

#[test]
fn a_repaired_offload_is_off_by_ethtools_word_and_on_again_after_the_interface_is_given_back() {
    let world = World::new();
    world.shell("ethtool -K near0 gro on rx-gro-list on rxvlan on >/dev/null");
    let before = ethtool(&world, NEAR);
    let (verdicts, repairs) = nic::prepare(&near());
    for (item, feature) in [("gro", "generic-receive-offload"), ("rxVlan", "rx-vlan-offload")] {
        assert_eq!(of(&verdicts, item).state, NicState::Repaired, "{verdicts:?}");
        assert!(!is_on(&world, NEAR, feature));
    }
    // A later look still tells what was repaired, and tells when somebody undid it.
    assert_eq!(of(&repairs.check(), "gro").state, NicState::Repaired);
    world.shell("ethtool -K near0 gro on");
    assert_eq!(of(&repairs.check(), "gro").state, NicState::Wrong);
    assert_eq!(repairs.undo(), Vec::<String>::new());
    assert_eq!(ethtool(&world, NEAR), before);
}

#[test]
fn repairs_are_undone_when_they_are_dropped_by_a_thread_of_another_network_namespace() {
    let world = World::new();
    world.shell("ethtool -K near0 gro on >/dev/null");
    let before = ethtool(&world, NEAR);
    let (_, repairs) = nic::prepare(&near());
    assert_ne!(ethtool(&world, NEAR), before);
    let elsewhere = World::new();
    drop(repairs);
    drop(elsewhere);
    assert_eq!(ethtool(&world, NEAR), before);
}

#[test]
fn an_interface_with_nothing_to_repair_is_left_as_it_is() {
    let world = World::new();
    world.shell("ethtool -K near0 gro off rxvlan off rx-vlan-stag-hw-parse off >/dev/null");
    let before = ethtool(&world, NEAR);
    let (verdicts, repairs) = nic::prepare(&near());
    assert!(
        verdicts.iter().all(|v| v.state != NicState::Repaired),
        "{verdicts:?}"
    );
    assert_eq!(ethtool(&world, NEAR), before);
    // What somebody turns on meanwhile is theirs, and stays on.
    world.shell("ethtool -K near0 gro on");
    assert!(repairs.undo().is_empty());
    assert!(is_on(&world, NEAR, "generic-receive-offload"));
}

#[test]
fn an_interface_that_vanishes_while_repairs_stand_is_reported_and_its_successor_is_not_touched() {
    let world = World::new();
    world.shell("ethtool -K near0 gro on >/dev/null");
    let (_, repairs) = nic::prepare(&near());
    world.ip(&["link", "del", NEAR]);
    assert!(
        repairs
            .check()
            .iter()
            .all(|v| v.state == NicState::Unknown || v.item == "segmentation")
    );
    world.ip(&["link", "add", NEAR, "type", "veth", "peer", "name", "far0"]);
    let before = ethtool(&world, NEAR);
    let left = repairs.undo();
    assert!(
        left.iter()
            .any(|l| l.contains("rx-gro of near0 could not be turned on again")),
        "{left:?}"
    );
    assert_eq!(ethtool(&world, NEAR), before);
}

#[test]
fn a_renamed_interface_gets_its_offloads_back() {
    let world = World::new();
    world.shell("ethtool -K near0 gro on >/dev/null");
    let (_, repairs) = nic::prepare(&near());
    world.shell("ip link set near0 down && ip link set near0 name other0");
    assert_eq!(repairs.undo(), Vec::<String>::new());
    assert!(is_on(&world, "other0", "generic-receive-offload"));
}

#[test]
fn a_node_interface_is_looked_at_and_never_changed() {
    let world = World::new();
    world.shell("ethtool -K near0 gro on rxvlan on >/dev/null");
    let state = || world.shell("ethtool -k near0; ethtool -l near0; ip -d link show near0");
    let before = state();
    let verdicts = nic::check(&near().0, Purpose::Node);
    assert_eq!(state(), before);
    let gro = of(&verdicts, "gro");
    assert_eq!(gro.state, NicState::Wrong);
    assert!(gro.consequence.contains("left alone"), "{gro:?}");
    assert_eq!(of(&verdicts, "rxVlan").state, NicState::Good);
    assert_eq!(of(&verdicts, "xdp").found.as_deref(), Some("not used"));
}

#[test]
fn without_permission_nothing_is_called_repaired_and_the_reason_is_given() {
    let world = World::new();
    world.shell("ethtool -K near0 gro on >/dev/null");
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    // Capabilities belong to the thread, and it inherits the namespace.
    let verdicts = std::thread::spawn(move || {
        set_capabilities(None, none).unwrap();
        nic::prepare(&near()).0
    });
    let verdicts = verdicts.join().unwrap();
    let gro = of(&verdicts, "gro");
    assert_eq!(gro.state, NicState::Wrong, "{gro:?}");
    assert!(gro.consequence.contains("Operation not permitted"), "{gro:?}");
    assert!(is_on(&world, NEAR, "generic-receive-offload"));
}

#[test]
fn an_interface_that_does_not_exist_is_unknown_in_every_item() {
    let _world = World::new();
    let verdicts = nic::check(&name("nowhere0"), Purpose::Mirror);
    for verdict in verdicts.iter().filter(|v| v.item != "segmentation") {
        assert_eq!(verdict.state, NicState::Unknown, "{verdict:?}");
    }
    assert!(
        of(&verdicts, "link")
            .consequence
            .contains("no interface of this name")
    );
    assert_eq!(nic::refusal(&name("nowhere0")), None);
}

#[test]
fn an_interface_that_others_live_on_is_refused_as_a_mirror_interface() {
    let world = World::new();
    assert_eq!(nic::refusal(&near().0), None);
    let refused = |interface: &str, words: &str| {
        let why = nic::refusal(&name(interface));
        assert!(
            why.as_ref().is_some_and(|w| w.contains(words)),
            "{interface}: {why:?}"
        );
    };
    refused("lo", "loopback");
    world.shell("ip link add bridge0 type bridge; ip link set near0 master bridge0");
    refused(NEAR, "port of bridge0 (bridge)");
    refused("bridge0", "(near0)");
    world.shell("ip link set near0 nomaster");
    assert_eq!(nic::refusal(&near().0), None);
    assert_eq!(nic::refusal(&name("bridge0")), None);
    world.shell("ip link add maclan0 link near0 type macvlan");
    refused(NEAR, "maclan0 sits on near0");
    world.shell("ip link del maclan0; ip route add default dev near0");
    refused(NEAR, "default route");
    world.shell("ip route replace default nexthop dev far0 nexthop dev near0");
    refused(NEAR, "default route");
    world.shell("ip route del default; ip addr add 192.0.2.1/24 dev near0");
    refused(NEAR, "IP address");
    world.shell("ip addr flush dev near0; echo 0 > /proc/sys/net/ipv6/conf/near0/disable_ipv6");
    world.shell("ip -6 addr add fe80::5/64 dev near0 nodad");
    assert_eq!(nic::refusal(&near().0), None);
    world.shell("ip -6 addr add 2001:db8::1/64 dev near0 nodad");
    refused(NEAR, "IP address");
}

/// A router advertisement of the prefix 2001:db8:7::/64, to all nodes.
fn router_advertisement() -> Vec<u8> {
    let mut icmp = vec![134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    icmp.extend([3, 4, 64, 0xc0, 0, 0, 14, 16, 0, 0, 14, 16, 0, 0, 0, 0]);
    icmp.extend([0x20, 0x01, 0x0d, 0xb8, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let length = icmp.len() as u8;
    let from = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    let to = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let summed = [&from[..], &to, &[0, 0, 0, length, 0, 0, 0, 58], &icmp].concat();
    let mut sum: u32 = summed
        .chunks(2)
        .map(|c| u32::from(c[0]) << 8 | u32::from(c[1]))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    icmp[2..4].copy_from_slice(&(!sum as u16).to_be_bytes());
    let ethernet = [0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
    [
        &ethernet[..],
        &[0x60, 0, 0, 0, 0, length, 58, 255],
        &from,
        &to,
        &icmp,
    ]
    .concat()
}

#[test]
fn an_address_made_from_a_mirrored_router_advertisement_is_refused_with_what_helps() {
    let world = World::new();
    // Link-local addresses are made when the interface comes up.
    world.shell("sysctl -qw net.ipv6.conf.near0.accept_ra=2 net.ipv6.conf.near0.disable_ipv6=0");
    world.shell("ip link set near0 down; ip link set near0 up");
    let far = world.far();
    crate::world::wait_until("there is an address", || {
        far.send(&router_advertisement()).unwrap();
        world.shell("ip -6 addr show dev near0").contains("2001:db8:7:")
    });
    let why = nic::refusal(&near().0).unwrap();
    assert!(why.contains("router advertisement"), "{why}");
    world.shell("sysctl -qw net.ipv6.conf.near0.disable_ipv6=1");
    assert_eq!(nic::refusal(&near().0), None);
}
