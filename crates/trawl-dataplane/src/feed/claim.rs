//! Who owns an end: the process that holds the abstract socket of its name. The socket belongs to the network
//! namespace as the end does, and dies with the process, so that no pid has to be trusted.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::FeedError;
use crate::interface::InterfaceName;
use crate::netlink::{Netlink, link};

/// What the names of our ends begin with; a number follows.
pub(super) const PREFIX: &str = "trawlf";
const MOST: u32 = 4096;

/// A claim to a name, as long as this lives.
#[derive(Debug)]
pub(super) struct Claim(#[expect(dead_code, reason = "held for its lifetime")] UnixDatagram);

impl Claim {
    /// `None` when another one lives.
    pub(super) fn take(end: &str) -> Option<Self> {
        let address = SocketAddr::from_abstract_name(format!("trawl-captured/{end}")).ok()?;
        UnixDatagram::bind_addr(&address).ok().map(Self)
    }
}

/// The first name that nobody claims and no interface has.
pub(super) fn next(netlink: &mut Netlink) -> Result<(Claim, InterfaceName), FeedError> {
    for number in 0..MOST {
        let name = format!("{PREFIX}{number}");
        let (Some(claim), Ok(end)) = (Claim::take(&name), name.parse()) else {
            continue;
        };
        match link::by_name(netlink, &end) {
            Ok(_) => {}
            Err(e) if e.errno == libc::ENODEV => return Ok((claim, end)),
            Err(e) => return Err(FeedError::at("look for a free name", e)),
        }
    }
    Err(FeedError::NoNameFree)
}
