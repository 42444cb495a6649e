//! What the process may do: four capabilities, and nothing that it could win back.

use anyhow::Context;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Packet sockets and AF_XDP; attaching programs and setting up NICs and feeds; programs and maps; locked memory for frames.
const NEEDED: [(CapabilitySet, &str); 4] = [
    (CapabilitySet::NET_RAW, "CAP_NET_RAW"),
    (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
    (CapabilitySet::BPF, "CAP_BPF"),
    (CapabilitySet::IPC_LOCK, "CAP_IPC_LOCK"),
];

/// Gives up every capability but the four, in all sets, and the way to new ones. Threads inherit what their maker has,
/// so this comes before the first thread, and after whatever needs more.
pub(crate) fn keep_needed() -> anyhow::Result<()> {
    let kept: CapabilitySet = NEEDED.iter().map(|(capability, _)| *capability).collect();
    set_no_new_privs(true).context("cannot set no_new_privs")?;
    clear_ambient_capability_set().context("cannot clear the ambient capabilities")?;
    let now = capabilities(None).context("cannot read the own capabilities")?;
    if now.effective.contains(CapabilitySet::SETPCAP) {
        shrink_bounding_set(kept)?;
    }
    let kept = CapabilitySets {
        effective: now.permitted & kept,
        permitted: now.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, kept).context("cannot drop capabilities")
}

/// Without CAP_SETPCAP the bounding set stays as it is; no_new_privs keeps anyone from drawing on it.
fn shrink_bounding_set(kept: CapabilitySet) -> anyhow::Result<()> {
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        match capability_is_in_bounding_set(one) {
            // The kernel knows no capability of this number, nor a higher one.
            Err(_) => break,
            Ok(true) if !kept.contains(one) => {
                remove_capability_from_bounding_set(one).context("cannot shrink the bounding set")?;
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

/// The needed capabilities that this process does not have.
pub(crate) fn missing() -> Vec<&'static str> {
    let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let lacks = |(capability, name): &(CapabilitySet, &'static str)| {
        (!effective.contains(*capability)).then_some(*name)
    };
    NEEDED.iter().filter_map(lacks).collect()
}

/// The end of a sentence that says why opening something failed, perhaps; empty when nothing is missing.
pub(crate) fn lack() -> String {
    match missing() {
        missing if missing.is_empty() => String::new(),
        missing => format!("; this process lacks {}", missing.join(" and ")),
    }
}
