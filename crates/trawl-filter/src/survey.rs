//! What a filter looks at itself, and therefore must be shown unchanged.

use crate::expansion::{Layer, LeftOut, Warning};
use crate::program::Views;
use crate::tree::{Access, Head, Node, Polarity, Test, What, number};
use crate::words::Word;

/// IPv6 extension headers that are seen through, by protocol number.
const EXTENSIONS: [u32; 5] = [0, 43, 44, 51, 60];
const TAG_TYPES: [u32; 3] = [0x8100, 0x88a8, 0x9100];
/// Protocols of both families whose header bytes libpcap finds in one.
const OF_IP4: [&str; 3] = ["tcp", "udp", "sctp"];

/// Which views a filter gets, and which not and why.
pub(crate) fn views(tree: &Node<'_>, tunnels: bool) -> (Views, Vec<LeftOut>) {
    let mut left_out: Vec<LeftOut> = Vec::new();
    for (test, _) in tree.tests() {
        for (layer, reason) in mentions(test) {
            let wanted = layer != Layer::Tunnels || tunnels;
            if wanted && left_out.iter().all(|known| known.layer != layer) {
                left_out.push(LeftOut {
                    layer,
                    reason: reason.into(),
                });
            }
        }
    }
    let keeps = |layer| left_out.iter().all(|out| out.layer != layer);
    let views = Views {
        tags: keeps(Layer::VlanTags),
        extensions: keeps(Layer::Ip6ExtensionHeaders),
        tunnels: tunnels && keeps(Layer::Tunnels),
    };
    (views, left_out)
}

fn mentions(test: &Test<'_>) -> Vec<(Layer, &'static str)> {
    use Layer::{Ip6ExtensionHeaders, Tunnels, VlanTags};
    match &test.what {
        What::Shift(word, _) => match *word {
            "vlan" => vec![(VlanTags, "the filter tests vlan itself")],
            "mpls" => vec![(
                VlanTags,
                "the filter tests mpls, which counts from the outermost header",
            )],
            "geneve" => {
                let reason = "the filter looks into geneve itself";
                vec![
                    (VlanTags, reason),
                    (Ip6ExtensionHeaders, reason),
                    (Tunnels, reason),
                ]
            }
            _ => vec![(
                VlanTags,
                "the filter tests PPPoE, which counts from the outermost header",
            )],
        },
        What::Protocol("ah") => vec![(Ip6ExtensionHeaders, "the filter tests ah, which is such a header")],
        What::Value(head, value) => numbers_a_header(head, value).into_iter().collect(),
        What::Relation(_, fields) => fields.iter().flat_map(|field| reads(*field)).collect(),
        _ => Vec::new(),
    }
}

/// `ether proto 0x8100` and `ip6 proto 44`.
fn numbers_a_header(head: &Head<'_>, value: &[Word<'_>]) -> Option<(Layer, &'static str)> {
    let number = value.first().and_then(|word| number(word.text))?;
    match (head.kind?, head.protocol) {
        ("proto", Some("ether" | "link")) if TAG_TYPES.contains(&number) => {
            Some((Layer::VlanTags, "the filter tests the type of a tag itself"))
        }
        ("proto", None | Some("ip6")) if EXTENSIONS.contains(&number) => Some((
            Layer::Ip6ExtensionHeaders,
            "the filter tests the protocol number of such a header itself",
        )),
        _ => None,
    }
}

/// Bytes that a view would change or move.
fn reads(field: Access<'_>) -> Vec<(Layer, &'static str)> {
    let end = |(at, size): (u32, u32)| at.saturating_add(size);
    let covers = |byte: u32, range: (u32, u32)| range.0 <= byte && byte < end(range);
    let mut found = Vec::new();
    match field.protocol {
        "ether" | "link" => {
            if field.range.is_none_or(|range| end(range) > 12) {
                found.push((
                    Layer::VlanTags,
                    "the filter reads bytes at or behind the EtherType by their offset",
                ));
            }
            if field
                .range
                .is_none_or(|range| end(range) > 54 || covers(20, range))
            {
                found.push((
                    Layer::Ip6ExtensionHeaders,
                    "the filter reads bytes behind the Ethernet header by their offset",
                ));
            }
        }
        "ip6"
            if field
                .range
                .is_none_or(|range| end(range) > 40 || covers(6, range)) =>
        {
            found.push((
                Layer::Ip6ExtensionHeaders,
                "the filter reads the next header or bytes behind the IPv6 header by their offset",
            ));
        }
        _ => {}
    }
    found
}

/// What the author of a filter should know.
pub(crate) fn warnings(tree: &Node<'_>, views: Views) -> Vec<Warning> {
    let mut shifts = Shifts {
        seen: Vec::new(),
        found: Vec::new(),
    };
    shifts.walk(tree, &[]);
    for (test, _) in tree.tests() {
        let What::Relation(_, fields) = &test.what else {
            continue;
        };
        let of_ip4 = |field: &Access<'_>| OF_IP4.into_iter().find(|known| *known == field.protocol);
        if let Some(protocol) = fields.iter().find_map(of_ip4) {
            let warning = Warning::HeaderBytesOfIp4(protocol);
            if !shifts.found.contains(&warning) {
                shifts.found.push(warning);
            }
        }
    }
    let negated = tree
        .tests()
        .iter()
        .any(|(_, polarity)| *polarity == Polarity::Negative);
    if views.tunnels && negated {
        shifts.found.push(Warning::NegatedInTunnels);
    }
    shifts.found
}

/// libpcap reads every test that is written behind `vlan` as if the tag were there, also where it need not be.
struct Shifts {
    seen: Vec<&'static str>,
    found: Vec<Warning>,
}

impl Shifts {
    /// `guards` are the shifts that hold wherever `node` decides; returns those that hold when it does.
    fn walk(&mut self, node: &Node<'_>, guards: &[usize]) -> Vec<usize> {
        match node {
            Node::Both(a, b) => {
                let mut held = self.walk(a, guards);
                let both = [guards, &held].concat();
                held.extend(self.walk(b, &both));
                held
            }
            Node::Either(a, b) => {
                self.walk(a, guards);
                self.walk(b, guards);
                Vec::new()
            }
            Node::Not(inner) => {
                self.walk(inner, guards);
                Vec::new()
            }
            Node::Test(test) => self.test(test, guards),
        }
    }

    fn test(&mut self, test: &Test<'_>, guards: &[usize]) -> Vec<usize> {
        if is_moved(test) {
            for (_, word) in self.seen.iter().enumerate().filter(|(i, _)| !guards.contains(i)) {
                let warning = match *word {
                    "vlan" => Warning::MissesUntagged,
                    word => Warning::MissesUnencapsulated(word),
                };
                if !self.found.contains(&warning) {
                    self.found.push(warning);
                }
            }
        }
        let word = match test.what {
            What::Shift("vlan", _) => "vlan",
            What::Shift("mpls", _) => "mpls",
            What::Shift("pppoes", _) => "pppoes",
            What::Shift("geneve", _) => "geneve",
            _ => return Vec::new(),
        };
        self.seen.push(word);
        vec![self.seen.len() - 1]
    }
}

/// Whether the offsets of a test depend on what was written before it.
fn is_moved(test: &Test<'_>) -> bool {
    match &test.what {
        What::Value(head, _) => {
            !matches!(head.protocol, Some("ether" | "link")) || head.kind == Some("proto")
        }
        What::Cast(protocol, _) => !matches!(protocol, None | Some("ether" | "link")),
        What::Length(..) => false,
        What::Relation(_, fields) => fields.iter().any(|f| !matches!(f.protocol, "ether" | "link")),
        What::Protocol(_) | What::Shift(..) => true,
    }
}
