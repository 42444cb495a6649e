//! The self-check of a NIC: which of its settings make captures untrue, lossy or slow, and setting them right.
//!
//! [`check`] only reads. [`prepare`] also repairs, and takes a [`MirrorInterface`]: nothing here can change a node's
//! own interface. What cannot be read is reported as unknown with the reason, never as good.

mod facts;
mod judge;
mod read;
mod refuse;
mod repair;

use trawl_control::NicVerdict;

use crate::interface::{InterfaceName, MirrorInterface};
use crate::netlink::{Netlink, link};

pub use repair::Repairs;

/// What an interface is to be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Receives copies of traffic and carries none of the node's own; opened by AF_XDP.
    Mirror,
    /// The node lives on it; opened by AF_PACKET, and never changed.
    Node,
}

/// Looks at an interface and changes nothing. One verdict per item, always all items, in a fixed order.
#[must_use]
pub fn check(name: &InterfaceName, purpose: Purpose) -> Vec<NicVerdict> {
    judge::all(&read::facts(name), purpose, &[])
}

/// Looks at a mirror interface, sets right what can be set right, and looks again. Needs CAP_NET_ADMIN; without it
/// nothing is changed and the verdicts say so. Call it before the interface is opened.
#[must_use]
pub fn prepare(interface: &MirrorInterface) -> (Vec<NicVerdict>, Repairs) {
    let repairs = Repairs::make(interface);
    (repairs.check(), repairs)
}

/// Why a mirror interface must not be taken: AF_XDP takes every frame away from whoever else lives on it. `None` when
/// nothing speaks against it, also when there is no such interface, which opening it will say.
#[must_use]
pub fn refusal(name: &InterfaceName) -> Option<String> {
    refuse::refusal(name)
}

/// Number of the XDP program that is on an interface, whoever put it there; `None` also when it cannot be looked at.
#[must_use]
pub fn xdp_program(name: &InterfaceName) -> Option<u32> {
    let mut netlink = Netlink::route().ok()?;
    link::by_name(&mut netlink, name).ok()?.xdp_program
}
