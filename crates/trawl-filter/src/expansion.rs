//! What the compiler adds to a filter so that it means what its author meant.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Filter;

/// How a filter is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// Exactly as libpcap reads it: nothing is added.
    pub literal: bool,
    /// Also match the inner packet of VXLAN, GRE and Geneve.
    pub tunnels: bool,
}

/// What was added to a filter, and what was left out and why; goes into the manifest of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expansion {
    /// Sees through up to this many VLAN tags.
    pub vlan_tags: u8,
    /// A test of ports also accepts later fragments, which carry none.
    pub later_fragments: bool,
    /// Sees through IPv6 extension headers.
    pub ip6_extension_headers: bool,
    /// Sees the inner packets of VXLAN, GRE and Geneve.
    pub tunnels: bool,
    /// What would have been added otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// One thing that was not added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeftOut {
    /// What.
    pub layer: Layer,
    /// Why, as the end of a sentence; never repeats a value of the text.
    pub reason: String,
}

/// What can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Layer {
    /// Up to 2 tags, of 0x8100, 0x88a8 or 0x9100.
    VlanTags,
    /// Later fragments for tests of ports.
    LaterFragments,
    /// Hop-by-hop, routing, fragment, destination options, authentication.
    Ip6ExtensionHeaders,
    /// Inner packets.
    Tunnels,
}

impl Layer {
    pub(crate) const ALL: [Self; 4] = [
        Self::VlanTags,
        Self::LaterFragments,
        Self::Ip6ExtensionHeaders,
        Self::Tunnels,
    ];
}

impl Layer {
    /// The word that stands for it in messages and manifests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::VlanTags => "vlanTags",
            Self::LaterFragments => "laterFragments",
            Self::Ip6ExtensionHeaders => "ip6ExtensionHeaders",
            Self::Tunnels => "tunnels",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::VlanTags => "VLAN tags",
            Self::LaterFragments => "later fragments",
            Self::Ip6ExtensionHeaders => "IPv6 extension headers",
            Self::Tunnels => "tunnels",
        })
    }
}

impl Expansion {
    /// One sentence for each thing that was added or left out, for people.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let added = [
            (
                self.vlan_tags > 0,
                format!(
                    "Frames with up to {} VLAN tags are read as if they had none.",
                    self.vlan_tags
                ),
            ),
            (
                self.later_fragments,
                "Tests of ports also accept later fragments of their transport, which carry no ports.".into(),
            ),
            (
                self.ip6_extension_headers,
                "IPv6 packets with extension headers are read as if they had none.".into(),
            ),
            (
                self.tunnels,
                "A frame also matches when the packet inside its VXLAN, GRE or Geneve tunnel does.".into(),
            ),
        ];
        let added = added
            .into_iter()
            .filter_map(|(is_added, text)| is_added.then_some(text));
        let left_out = self.left_out.iter();
        let left_out =
            left_out.map(|out| format!("Nothing is done about {}, because {}.", out.layer, out.reason));
        added.chain(left_out).collect()
    }
}

/// Something legal but surprising about a filter; `Display` says it in one sentence without repeating the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// `(vlan and F) or F` and the like.
    #[error(
        "the filter tests vlan before other tests, which libpcap then reads behind the tag: it cannot see untagged \
         traffic; leave vlan out, or write it last, as in F or (vlan and F)"
    )]
    MissesUntagged,
    /// The same with mpls, pppoes or geneve.
    #[error(
        "the filter tests {0} before other tests, which libpcap then reads behind that header: it cannot see traffic \
         without it; write the test of {0} last, as in F or ({0} and F)"
    )]
    MissesUnencapsulated(&'static str),
    /// `tcp[13]` and the like.
    #[error(
        "the filter reads bytes of the {0} header, which libpcap finds behind IPv4 only: no IPv6 packet passes this test"
    )]
    HeaderBytesOfIp4(&'static str),
    /// `not` together with tunnels.
    #[error(
        "the filter says not, and tunnels are looked into: the outer and the inner packet are each asked, so a frame \
         whose outer packet is excluded is kept when its inner packet is not"
    )]
    NegatedInTunnels,
}

/// A filter that is ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// What captures run.
    pub filter: Filter,
    /// The text with every test written out in full; empty for everything.
    pub normalized: String,
    /// What was added.
    pub expansion: Expansion,
    /// What its author should know.
    pub warnings: Vec<Warning>,
}

impl Compiled {
    pub(crate) fn everything() -> Self {
        Self {
            filter: Filter::Everything,
            normalized: String::new(),
            expansion: Expansion::default(),
            warnings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile_with;

    #[test]
    fn an_expansion_survives_json_and_its_words_are_those_of_messages() {
        let options = Options {
            literal: true,
            tunnels: true,
        };
        let expansion = compile_with("tcp", &options).unwrap().expansion;
        let json = serde_json::to_value(&expansion).unwrap();
        let layers = json["leftOut"].as_array().unwrap();
        for (layer, expected) in layers.iter().zip(Layer::ALL) {
            assert_eq!(layer["layer"], expected.as_str());
        }
        assert_eq!(layers.len(), 4);
        assert_eq!(serde_json::from_value::<Expansion>(json).unwrap(), expansion);
    }

    #[test]
    fn every_addition_and_omission_is_said_in_a_sentence_without_the_text() {
        let options = Options {
            literal: false,
            tunnels: true,
        };
        let all = compile_with("tcp port 443", &options).unwrap().expansion;
        assert_eq!(all.sentences().len(), 4);
        let few = compile_with("vlan 77 and ip6[6] = 0", &options)
            .unwrap()
            .expansion;
        let sentences = few.sentences();
        assert_eq!(sentences.len(), 3, "tunnels, and twice nothing");
        assert!(
            sentences.iter().all(|s| s.ends_with('.') && !s.contains("77")),
            "{sentences:?}"
        );
    }
}
