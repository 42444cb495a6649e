//! Reading the facts. Everything comes through sockets of the calling thread's network namespace, never from `/sys`,
//! which may show another one.

use std::io;

use super::facts::{Facts, Reading};
use crate::interface::InterfaceName;
use crate::netlink::{Netlink, Refusal, driver, link};
use crate::ring::device;
use crate::ring::ethtool::Ethtool;

/// `TCP_V4_FLOW` and its like.
const FLOWS: [(&str, u32); 4] = [("TCP/IPv4", 1), ("UDP/IPv4", 2), ("TCP/IPv6", 5), ("UDP/IPv6", 6)];

pub(super) fn facts(name: &InterfaceName) -> Facts {
    let link = Netlink::route().and_then(|mut n| link::by_name(&mut n, name));
    let index = link.as_ref().map(|l| l.index).map_err(Clone::clone);
    let generic = |ask: fn(&mut Netlink, u32) -> _| ask(&mut Netlink::generic()?, index.clone()?);
    let queues = |ask: fn(&mut Netlink, u32) -> _| ask(&mut Netlink::generic()?, index.clone()?);
    let tool = Ethtool::open();
    let mut facts = Facts {
        name: name.to_string(),
        driver: ask(&tool, |t| t.driver(name)),
        channels: ask(&tool, |t| t.channels(name)),
        queues: queues(driver::queues).map_err(|e| netdev_words(&e)),
        hash: ask(&tool, |t| t.hash(name)),
        fields: ask(&tool, |t| {
            let fields = |(word, flow)| t.hash_fields(name, flow).map(|bits| (word, bits));
            FLOWS.into_iter().map(fields).collect()
        }),
        features: ask(&tool, |t| t.features(name)),
        ring: ask(&tool, |t| t.ring(name)),
        stamping: ask(&tool, |t| t.stamping(name)),
        xdp: generic(driver::xdp).map_err(|e| netdev_words(&e)),
        speed: device::speed(name),
        cpus: std::thread::available_parallelism().ok().map(|n| n.get() as u32),
        link: link.map_err(|e| words(&e)),
    };
    // Drivers answer with zeros where they have nothing to say.
    if facts.ring.as_ref().is_ok_and(|r| r.max == 0) {
        facts.ring = Err(SILENT.into());
    }
    facts
}

const SILENT: &str = "the driver does not tell";

fn ask<T>(tool: &io::Result<Ethtool>, question: impl FnOnce(&Ethtool) -> io::Result<T>) -> Reading<T> {
    let answer = match tool {
        Ok(tool) => question(tool).map_err(Refusal::from),
        Err(e) => Err(Refusal {
            errno: e.raw_os_error().unwrap_or(libc::EIO),
            words: None,
        }),
    };
    answer.map_err(|e| words(&e))
}

/// What the `netdev` family does not answer, the kernel does not know; drivers are not asked.
fn netdev_words(refusal: &Refusal) -> String {
    match refusal.errno {
        libc::EOPNOTSUPP | libc::EINVAL => "this kernel does not tell".into(),
        _ => words(refusal),
    }
}

/// Why something could not be read, in words.
pub(super) fn words(refusal: &Refusal) -> String {
    match refusal.errno {
        libc::EOPNOTSUPP | libc::EINVAL => SILENT.into(),
        libc::ENODEV | libc::ENXIO => "there is no interface of this name here".into(),
        libc::ENOENT => "this kernel does not tell".into(),
        libc::EPERM | libc::EACCES => "no permission; CAP_NET_ADMIN is needed".into(),
        _ => format!("the kernel says: {refusal}"),
    }
}
