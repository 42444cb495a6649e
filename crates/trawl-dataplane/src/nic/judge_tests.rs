use super::*;
use crate::netlink::driver::{QueueFacts, XdpFacts};
use crate::netlink::link::LinkFacts;
use crate::ring::ethtool::{Channels, Driver, Feature, Hash, RingSize, Stamping};

const UP: u32 = libc::IFF_UP as u32 | 1 << 16;

fn feature(name: &str, on: bool, fixed: bool) -> Feature {
    Feature {
        name: name.into(),
        on,
        fixed,
    }
}

/// A NIC with nothing wrong.
fn fine() -> Facts {
    let off = [
        "rx-gro",
        "rx-gro-hw",
        "rx-lro",
        "rx-vlan-hw-parse",
        "rx-vlan-filter",
        "tx-tcp-segmentation",
    ];
    Facts {
        name: "eth1".into(),
        link: Ok(LinkFacts {
            name: "eth1".into(),
            flags: UP,
            mtu: 1500,
            promiscuity: Some(1),
            ..LinkFacts::default()
        }),
        driver: Ok(Driver {
            name: "ice".into(),
            firmware: "4.2".into(),
            bus: "0000:01:00.0".into(),
        }),
        channels: Ok(Channels {
            combined: 1,
            max_combined: 8,
            ..Channels::default()
        }),
        queues: Ok(QueueFacts {
            queues: 1,
            sockets: Some(1),
        }),
        hash: Ok(Hash {
            function: 1,
            ..Hash::default()
        }),
        fields: Ok(vec![("TCP/IPv4", 0xf0)]),
        features: Ok(off.map(|name| feature(name, false, false)).to_vec()),
        ring: Ok(RingSize { now: 2048, max: 4096 }),
        stamping: Ok(Stamping::default()),
        xdp: Ok(XdpFacts {
            features: 0b1011,
            ..XdpFacts::default()
        }),
        speed: Some(10_000_000_000),
        cpus: Some(4),
    }
}

fn blind() -> Facts {
    let why = || "no permission".to_owned();
    Facts {
        name: "eth1".into(),
        link: Err(why()),
        driver: Err(why()),
        channels: Err(why()),
        queues: Err(why()),
        hash: Err(why()),
        fields: Err(why()),
        features: Err(why()),
        ring: Err(why()),
        stamping: Err(why()),
        xdp: Err(why()),
        speed: None,
        cpus: None,
    }
}

fn of(item: &str, facts: &Facts, purpose: Purpose, attempts: &[Attempt]) -> NicVerdict {
    let found = all(facts, purpose, attempts).into_iter().find(|v| v.item == item);
    found.unwrap_or_else(|| panic!("no {item}"))
}

#[test]
fn a_nic_with_nothing_wrong_is_good_in_every_item() {
    for purpose in [Purpose::Mirror, Purpose::Node] {
        for verdict in all(&fine(), purpose, &[]) {
            assert_eq!(verdict.state, NicState::Good, "{verdict:?}");
            assert!(verdict.found.is_some(), "{verdict:?}");
        }
    }
}

#[test]
fn what_could_not_be_read_is_unknown_with_the_reason_and_never_good() {
    for verdict in all(&blind(), Purpose::Mirror, &[]) {
        if verdict.item == "segmentation" {
            continue; // Nothing is read for it.
        }
        assert_eq!(
            (verdict.state, &verdict.found),
            (NicState::Unknown, &None),
            "{verdict:?}"
        );
        assert!(
            verdict.consequence.contains("could not be looked at"),
            "{verdict:?}"
        );
    }
}

#[test]
fn both_purposes_have_the_same_items_in_the_same_order_each_once() {
    let items = |purpose| {
        all(&fine(), purpose, &[])
            .into_iter()
            .map(|v| v.item)
            .collect::<Vec<_>>()
    };
    let mut once = items(Purpose::Mirror);
    assert_eq!(once, items(Purpose::Node));
    let count = once.len();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), count);
}

/// A change to a fine NIC, and what it makes of an item of a mirror interface and of a node's.
type Case = (&'static str, fn(&mut Facts), NicState, NicState, &'static str);

#[test]
fn each_setting_has_its_verdict_for_both_purposes_and_says_what_it_means() {
    use NicState::{Good, Unknown, Wrong};
    fn on(facts: &mut Facts, name: &str, fixed: bool) {
        let features = facts.features.as_mut().unwrap();
        features.retain(|f| f.name != name);
        features.push(feature(name, true, fixed));
    }
    let cases: [Case; 32] = [
        (
            "gro",
            |f| on(f, "rx-gro", false),
            Wrong,
            Wrong,
            "GRO merges packets",
        ),
        (
            "gro",
            |f| on(f, "rx-gro-hw", false),
            Wrong,
            Wrong,
            "rx-gro-hw off",
        ),
        (
            "gro",
            |f| on(f, "rx-gro", true),
            Wrong,
            Wrong,
            "does not let it be turned off",
        ),
        (
            "gro",
            |f| f.features = Ok(vec![]),
            Unknown,
            Unknown,
            "does not know",
        ),
        ("lro", |f| on(f, "rx-lro", false), Wrong, Wrong, "LRO merges"),
        (
            "rxVlan",
            |f| on(f, "rx-vlan-hw-parse", false),
            Wrong,
            Good,
            "tags",
        ),
        (
            "vlanFilter",
            |f| on(f, "rx-vlan-filter", true),
            Good,
            Good,
            "promiscuous mode",
        ),
        (
            "vlanFilter",
            |f| {
                on(f, "rx-vlan-filter", false);
                f.link.as_mut().unwrap().promiscuity = Some(0);
            },
            Wrong,
            Good,
            "VLANs",
        ),
        (
            "vlanFilter",
            |f| {
                on(f, "rx-vlan-filter", true);
                f.link.as_mut().unwrap().promiscuity = Some(0);
                f.queues = Ok(QueueFacts {
                    queues: 1,
                    sockets: Some(0),
                });
            },
            Good,
            Good,
            "promiscuous mode",
        ),
        (
            "segmentation",
            |f| on(f, "tx-tcp-segmentation", false),
            Good,
            Wrong,
            "",
        ),
        (
            "queues",
            |f| f.channels.as_mut().unwrap().combined = 8,
            Wrong,
            Wrong,
            "ethtool -L eth1 combined 4",
        ),
        (
            "queues",
            |f| {
                f.channels = Err("no".into());
                f.queues = Err("no".into());
            },
            Unknown,
            Unknown,
            "does not tell",
        ),
        (
            "queues",
            |f| {
                f.channels = Err("no".into());
                f.queues = Err("no".into());
                f.link.as_mut().unwrap().rx_queues = Some(1);
            },
            Good,
            Good,
            "thread",
        ),
        ("queues", |f| f.channels = Err("no".into()), Good, Good, "thread"),
        (
            "sockets",
            |f| {
                f.queues = Ok(QueueFacts {
                    queues: 2,
                    sockets: Some(1),
                })
            },
            Wrong,
            Good,
            "",
        ),
        (
            "sockets",
            |f| {
                f.queues = Ok(QueueFacts {
                    queues: 2,
                    sockets: Some(0),
                })
            },
            Good,
            Good,
            "",
        ),
        (
            "sockets",
            |f| {
                f.queues = Ok(QueueFacts {
                    queues: 0,
                    sockets: Some(0),
                })
            },
            Unknown,
            Good,
            "",
        ),
        (
            "sockets",
            |f| {
                f.queues = Ok(QueueFacts {
                    queues: 2,
                    sockets: None,
                });
            },
            Unknown,
            Good,
            "",
        ),
        (
            "rss",
            |f| f.channels.as_mut().unwrap().combined = 2,
            Wrong,
            Wrong,
            "symmetric-xor",
        ),
        (
            "rss",
            |f| {
                f.channels.as_mut().unwrap().combined = 2;
                f.hash = Ok(Hash {
                    transform: 1,
                    ..Hash::default()
                });
            },
            Good,
            Good,
            "same queue",
        ),
        (
            "rss",
            |f| {
                f.channels.as_mut().unwrap().combined = 2;
                f.hash = Err("no".into());
            },
            Unknown,
            Unknown,
            "by their stamps",
        ),
        (
            "mtu",
            |f| f.link.as_mut().unwrap().mtu = 1280,
            Wrong,
            Good,
            "1298 bytes",
        ),
        (
            "mtu",
            |f| f.link.as_mut().unwrap().length_errors = Some(3),
            Wrong,
            Wrong,
            "which has happened",
        ),
        (
            "mtu",
            |f| f.link.as_mut().unwrap().length_errors = Some(0),
            Good,
            Good,
            "1518 bytes",
        ),
        (
            "promiscuity",
            |f| f.link.as_mut().unwrap().promiscuity = Some(0),
            Wrong,
            Good,
            "only frames for this node",
        ),
        (
            "promiscuity",
            |f| {
                f.link.as_mut().unwrap().promiscuity = Some(0);
                f.queues = Err("no".into());
            },
            Unknown,
            Good,
            "only frames for this node",
        ),
        (
            "promiscuity",
            |f| f.link.as_mut().unwrap().promiscuity = None,
            Unknown,
            Unknown,
            "does not tell",
        ),
        (
            "link",
            |f| f.link.as_mut().unwrap().flags = 0,
            Wrong,
            Wrong,
            "ip link set eth1 up",
        ),
        (
            "link",
            |f| f.link.as_mut().unwrap().flags = libc::IFF_UP as u32,
            Wrong,
            Wrong,
            "cable",
        ),
        ("speed", |f| f.speed = None, Unknown, Unknown, "does not tell"),
        (
            "ring",
            |f| f.ring = Ok(RingSize { now: 256, max: 4096 }),
            Wrong,
            Wrong,
            "ethtool -G eth1 rx 1024",
        ),
        (
            "ring",
            |f| f.ring = Ok(RingSize { now: 256, max: 256 }),
            Good,
            Good,
            "burst",
        ),
    ];
    for (item, change, mirror, node, words) in cases {
        let mut facts = fine();
        change(&mut facts);
        for (purpose, wanted) in [(Purpose::Mirror, mirror), (Purpose::Node, node)] {
            let verdict = of(item, &facts, purpose, &[]);
            assert_eq!(verdict.state, wanted, "{purpose:?} {verdict:?}");
            assert!(verdict.consequence.contains(words), "{purpose:?} {verdict:?}");
        }
    }
}

#[test]
fn xdp_is_judged_by_what_the_driver_takes_at_this_mtu() {
    let judged = |features, mtu| {
        let mut facts = fine();
        facts.xdp.as_mut().unwrap().features = features;
        facts.link.as_mut().unwrap().mtu = mtu;
        let verdict = of("xdp", &facts, Purpose::Mirror, &[]);
        (verdict.state, verdict.found.unwrap())
    };
    assert_eq!(judged(0, 1500), (NicState::Wrong, "none".into()));
    assert_eq!(judged(0b1, 1500), (NicState::Wrong, "basic".into()));
    assert_eq!(judged(0b11, 1500), (NicState::Good, "basic, redirect".into()));
    assert_eq!(
        judged(0b1011, 9000),
        (NicState::Wrong, "basic, redirect, xsk-zerocopy".into())
    );
    assert_eq!(judged(0b10_1011, 9000).0, NicState::Good);
}

#[test]
fn a_repair_is_reported_as_one_only_while_it_holds() {
    let attempt = |refused: Option<&str>| Attempt {
        feature: "rx-gro".into(),
        refused: refused.map(Into::into),
    };
    let repaired = of("gro", &fine(), Purpose::Mirror, &[attempt(None)]);
    assert_eq!(repaired.state, NicState::Repaired);
    assert_eq!(repaired.found.as_deref(), Some("on"));
    let mut on = fine();
    on.features.as_mut().unwrap()[0].on = true;
    let undone = of("gro", &on, Purpose::Mirror, &[attempt(None)]);
    assert_eq!(undone.state, NicState::Wrong);
    assert!(
        undone.consequence.contains("somebody turned it on again"),
        "{undone:?}"
    );
    let refused = of(
        "gro",
        &on,
        Purpose::Mirror,
        &[attempt(Some("Device or resource busy"))],
    );
    assert_eq!(refused.state, NicState::Wrong);
    assert!(
        refused.consequence.contains("Device or resource busy"),
        "{refused:?}"
    );
}

#[test]
fn the_clock_names_the_ptp_clock_that_could_stamp() {
    let mut facts = fine();
    facts.stamping = Ok(Stamping {
        abilities: 1 << 2,
        clock: Some(3),
        filters: 0b11,
    });
    let verdict = of("clock", &facts, Purpose::Mirror, &[]);
    assert!(verdict.found.unwrap().contains("/dev/ptp3"));
}

#[test]
fn the_command_by_hand_names_every_feature_that_is_on_and_can_be_changed() {
    let said = |gro_is_fixed, purpose| {
        let mut facts = fine();
        let gro = feature("rx-gro", true, gro_is_fixed);
        facts.features = Ok(vec![gro, feature("rx-gro-hw", true, false)]);
        of("gro", &facts, purpose, &[]).consequence
    };
    let both = said(false, Purpose::Mirror);
    assert!(
        both.ends_with("ethtool -K eth1 rx-gro off rx-gro-hw off"),
        "{both}"
    );
    let one = said(true, Purpose::Node);
    assert!(one.ends_with("ethtool -K eth1 rx-gro-hw off"), "{one}");
}

#[test]
fn a_driver_without_combined_channels_is_told_in_its_own_word() {
    let mut facts = fine();
    facts.channels = Ok(Channels {
        rx: 8,
        max_rx: 8,
        ..Channels::default()
    });
    let consequence = of("queues", &facts, Purpose::Mirror, &[]).consequence;
    assert!(consequence.ends_with("ethtool -L eth1 rx 4"), "{consequence}");
}
