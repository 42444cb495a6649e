//! What the Secret keeps: the pair that is served, the one that will be, and the authorities of earlier ones.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;

use super::pair::{Pair, validity};

const END: &str = "-----END CERTIFICATE-----";

/// The keys of the Secret, parsed. What cannot be used counts as not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub serving: Option<Pair>,
    pub next: Option<Next>,
    pub retired: Vec<Retired>,
}

/// A pair that is not served yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    pub pair: Pair,
    /// Since when API servers can know its authority.
    pub trusted_since: Option<Timestamp>,
}

/// An authority whose certificate another operator may still serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retired {
    pub authority: String,
    pub not_after: Timestamp,
}

impl Kept {
    /// Reads the data of the Secret.
    pub fn from_data(data: &BTreeMap<String, ByteString>) -> Self {
        let text = |key: &str| std::str::from_utf8(&data.get(key)?.0).ok();
        let pair = |prefix: &str| {
            let part = |name: &str| text(&format!("{prefix}{name}"));
            Pair::parse(part("ca.crt")?, part("tls.crt")?, part("tls.key")?).ok()
        };
        let next = pair("next-").map(|pair| Next {
            pair,
            trusted_since: text("next-trusted-since").and_then(|t| t.parse().ok()),
        });
        let retired = text("retired-ca.crt")
            .unwrap_or_default()
            .split_inclusive(END)
            .filter_map(|pem| {
                let authority = format!("{}\n", pem.trim());
                let not_after = validity(&authority).ok()?.1;
                Some(Retired { authority, not_after })
            });
        Self {
            serving: pair(""),
            next,
            retired: retired.collect(),
        }
    }

    /// Without pairs that are for other names, as a Secret from another installation has them: no API server would
    /// accept them here.
    #[must_use]
    pub fn only_for(mut self, names: &[String]) -> Self {
        self.serving = self.serving.filter(|pair| pair.is_for(names));
        self.next = self.next.filter(|next| next.pair.is_for(names));
        self
    }

    /// The data of the Secret, whole.
    pub fn to_data(&self) -> BTreeMap<String, ByteString> {
        let mut data = BTreeMap::new();
        let mut put = |key: String, text: &str| data.insert(key, ByteString(text.as_bytes().to_vec()));
        let pairs = [
            ("", self.serving.as_ref()),
            ("next-", self.next.as_ref().map(|n| &n.pair)),
        ];
        for (prefix, pair) in pairs {
            let Some(pair) = pair else { continue };
            for (name, text) in [
                ("ca.crt", &pair.authority),
                ("tls.crt", &pair.certificate),
                ("tls.key", &pair.key),
            ] {
                put(format!("{prefix}{name}"), text);
            }
        }
        if let Some(since) = self.next.as_ref().and_then(|n| n.trusted_since) {
            put("next-trusted-since".into(), &since.to_string());
        }
        if !self.retired.is_empty() {
            let all: String = self.retired.iter().map(|r| r.authority.as_str()).collect();
            put("retired-ca.crt".into(), &all);
        }
        data
    }

    /// The bundle that API servers must have at `now`.
    pub fn bundle(&self, now: Timestamp) -> String {
        let pairs = [self.serving.as_ref(), self.next.as_ref().map(|n| &n.pair)];
        let pairs = pairs.into_iter().flatten().map(|p| p.authority.as_str());
        let retired = self.retired.iter().filter(|r| r.not_after > now);
        pairs.chain(retired.map(|r| r.authority.as_str())).collect()
    }
}
