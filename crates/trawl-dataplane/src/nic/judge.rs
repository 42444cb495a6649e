//! From facts to verdicts, without a kernel: one function per item.

mod offload;
mod receive;
mod wire;

use trawl_control::{NicState, NicVerdict};

use super::Purpose;
use super::facts::Facts;
use super::repair::Attempt;

pub(super) fn all(facts: &Facts, purpose: Purpose, attempts: &[Attempt]) -> Vec<NicVerdict> {
    vec![
        receive::driver(facts),
        receive::queues(facts),
        receive::sockets(facts, purpose),
        receive::rss(facts),
        offload::gro(facts, purpose, attempts),
        offload::lro(facts, purpose, attempts),
        offload::rx_vlan(facts, purpose, attempts),
        offload::vlan_filter(facts, purpose, attempts),
        offload::segmentation(facts, purpose),
        wire::mtu(facts, purpose),
        wire::promiscuity(facts, purpose),
        wire::link(facts),
        wire::speed(facts),
        receive::ring(facts),
        wire::clock(facts),
        receive::xdp(facts, purpose),
    ]
}

fn verdict(
    item: &str,
    found: String,
    wanted: Option<&str>,
    state: NicState,
    consequence: impl Into<String>,
) -> NicVerdict {
    NicVerdict {
        item: item.into(),
        found: Some(found),
        wanted: wanted.map(Into::into),
        state,
        consequence: consequence.into(),
    }
}

fn unknown(item: &str, wanted: Option<&str>, why: &str) -> NicVerdict {
    NicVerdict {
        item: item.into(),
        found: None,
        wanted: wanted.map(Into::into),
        state: NicState::Unknown,
        consequence: format!("could not be looked at: {why}"),
    }
}

fn good_if(good: bool) -> NicState {
    if good { NicState::Good } else { NicState::Wrong }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
