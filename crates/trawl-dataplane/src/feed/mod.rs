//! An analyzer's copy of the traffic: a veth pair of which one end stays here, and the other lies in the analyzer's
//! network namespace under a name of its choice.
//!
//! Nothing but the copies is on that wire: neither end has an address, resolves any, or announces itself, and no
//! offload changes what is sent. A reader that is too slow loses frames in its own socket; the sender never waits.

mod claim;
mod pair;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::batch::Batch;
use crate::interface::InterfaceName;
use crate::netlink::{Netlink, Refusal, link};
use crate::outlet::{Outlet, Sent};
use crate::ring::send::{Sender, is_network_namespace};
use claim::Claim;

/// MTU of both ends, in bytes: frames as long as NICs take them. Analyzers size their buffers by it.
pub const MTU: u32 = 9728;
/// How often at most the link is looked at while frames are refused.
const LOOK: Duration = Duration::from_secs(1);
/// Refusals in a row after which the rest of a batch is given up.
const GIVE_UP: u32 = 32;

/// Why there is no feed. Messages say what to do.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The descriptor is no network namespace.
    #[error(
        "the descriptor is not a network namespace but {0}; open /proc/PID/ns/net of the analyzer, or a file of /run/netns, and pass that"
    )]
    NotANetworkNamespace(&'static str),
    /// There is an interface of that name.
    #[error(
        "an interface {0} exists in the analyzer's network namespace; choose another name, or delete it there"
    )]
    NameTaken(InterfaceName),
    /// The kernel refuses for want of a capability.
    #[error(
        "no permission to {step}; captured needs CAP_NET_ADMIN and CAP_NET_RAW, also over the user namespace that the analyzer's network namespace belongs to"
    )]
    NotPermitted {
        /// What was attempted.
        step: &'static str,
    },
    /// Every number for an end on this side is in use.
    #[error(
        "no name is free for another feed; delete interfaces that are called trawlf and a number and belong to nobody"
    )]
    NoNameFree,
    /// The analyzer's end went while it was set up.
    #[error(
        "the interface {0} went away while it was set up; see whether the analyzer's network namespace still exists, and ask again"
    )]
    Gone(InterfaceName),
    /// Anything else.
    #[error("cannot {step}: {source}")]
    System {
        /// What was attempted.
        step: &'static str,
        /// What the kernel said.
        source: Refusal,
    },
}

impl FeedError {
    fn at(step: &'static str, source: impl Into<Refusal>) -> Self {
        let source = source.into();
        match source.errno {
            libc::EPERM | libc::EACCES => Self::NotPermitted { step },
            _ => Self::System { step, source },
        }
    }
}

/// A pair of ends, one of them in an analyzer's namespace; both are deleted when this is dropped. It does not keep the
/// namespace alive.
#[derive(Debug)]
pub struct Veth {
    /// Name of the analyzer's end.
    name: InterfaceName,
    /// Name and index of the end that stayed here.
    end: InterfaceName,
    index: u32,
    sender: Sender,
    /// Of the namespace in which the pair was made, whichever thread asks.
    netlink: Netlink,
    problem: Option<String>,
    looked: Option<Instant>,
    /// Given up last, so that nobody takes the end for a leftover before it is deleted.
    _claim: Claim,
}

impl Veth {
    /// Makes a pair in the network namespace of the calling thread and moves one end of it into the other one, under
    /// this name. Both ends are up when this returns. Needs CAP_NET_ADMIN over both, and CAP_NET_RAW.
    ///
    /// # Errors
    /// See [`FeedError`]; nothing is left behind.
    pub fn create(name: &InterfaceName, netns: OwnedFd) -> Result<Self, FeedError> {
        must_be_network_namespace(netns.as_fd())?;
        let mut netlink = Netlink::route().map_err(|e| FeedError::at("open a netlink socket", e))?;
        let (claim, end) = claim::next(&mut netlink)?;
        let pair = pair::Pair::make(&mut netlink, &end)?;
        let made = pair::set_up(&mut netlink, &pair, &end, name, netns.as_fd());
        let made =
            made.and_then(|()| Sender::open(pair.near).map_err(|e| FeedError::at("open a packet socket", e)));
        match made {
            Ok(sender) => Ok(Self {
                name: name.clone(),
                end,
                index: pair.near,
                sender,
                netlink,
                problem: None,
                looked: None,
                _claim: claim,
            }),
            Err(e) => {
                // The error above is what matters, and a pair that is gone already is as it should be.
                let _ = pair::delete(&mut netlink, pair.near);
                Err(e)
            }
        }
    }

    /// Name of the interface in the analyzer's namespace.
    #[must_use]
    pub fn interface(&self) -> &InterfaceName {
        &self.name
    }

    /// Name of the end that is here.
    #[must_use]
    pub fn end(&self) -> &InterfaceName {
        &self.end
    }

    /// What is wrong with the pair, in words.
    fn state(&mut self) -> Option<String> {
        let (name, end) = (&self.name, &self.end);
        match link::by_index(&mut self.netlink, self.index) {
            Ok(link) if !link.is_up() => Some(format!(
                "{end}, the feed's end at captured, is down; run: ip link set {end} up"
            )),
            Ok(link) if !link.has_carrier() => Some(format!(
                "{name} is down in the analyzer's network namespace; run there: ip link set {name} up"
            )),
            Ok(_) => None,
            Err(e) if e.errno == libc::ENODEV => Some(format!(
                "{name} is gone: it was deleted, or its network namespace ended; end this feed and ask for it again"
            )),
            Err(e) => Some(format!("{name} cannot be looked at: {e}")),
        }
    }

    /// Frames are refused: finds out why, but not for every batch.
    fn look_seldom(&mut self) {
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK) {
            self.problem = self.state();
            self.looked = Some(Instant::now());
        }
    }
}

impl Outlet for Veth {
    fn send(&mut self, batch: &Batch) -> Sent {
        let (mut sent, mut at, mut refused, mut too_long) = (Sent::default(), 0, 0, None);
        while at < batch.packets.len() && refused < GIVE_UP {
            match self.sender.send(batch, at) {
                Ok(count) => {
                    let gone = &batch.packets[at..at + count];
                    sent.packets += count as u64;
                    sent.bytes += gone.iter().map(|p| u64::from(p.kept)).sum::<u64>();
                    (at, refused) = (at + count, 0);
                }
                Err(e) if is_about_this_frame(&e) => {
                    too_long = Some(batch.packets[at].kept);
                    sent.dropped += 1;
                    at += 1;
                }
                Err(e) => {
                    let passes = is_lack_of_room(&e);
                    sent.dropped += 1;
                    (at, refused) = (at + 1, if passes { refused + 1 } else { GIVE_UP });
                }
            }
        }
        sent.dropped += (batch.packets.len() - at) as u64;
        if refused > 0 {
            self.look_seldom();
        } else if sent.packets > 0 {
            (self.problem, self.looked) = (None, None);
        }
        let long = |length| {
            format!(
                "a frame of {length} bytes is too short for Ethernet, or longer than the {MTU} bytes of the feed, and was not sent"
            )
        };
        sent.problem = self.problem.clone().or_else(|| too_long.map(long));
        sent
    }

    fn look(&mut self) -> Option<String> {
        self.problem = self.state();
        self.problem.clone()
    }
}

fn is_about_this_frame(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EMSGSIZE | libc::EINVAL))
}

fn is_lack_of_room(e: &io::Error) -> bool {
    matches!(
        e.raw_os_error(),
        Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR)
    )
}

impl Drop for Veth {
    fn drop(&mut self) {
        // Whoever deleted it already has saved us the work; the daemon's next start tries again.
        let _ = pair::delete(&mut self.netlink, self.index);
    }
}

/// Deletes the ends that a killed daemon left in the network namespace of the calling thread: those that bear our name
/// and mark and belong to no living process. Returns their names.
///
/// # Errors
/// The links could not be listed.
pub fn clean_leftovers() -> Result<Vec<String>, FeedError> {
    let step = "look for feeds that were left behind";
    let mut netlink = Netlink::route().map_err(|e| FeedError::at(step, e))?;
    let all = link::all(&mut netlink).map_err(|e| FeedError::at(step, e))?;
    let mut deleted = Vec::new();
    for found in all.iter().filter(|l| pair::is_ours(l)) {
        // Held while it is deleted: nobody makes a new one of this name meanwhile.
        let Some(_claim) = Claim::take(&found.name) else {
            continue;
        };
        if pair::delete(&mut netlink, found.index).is_ok() {
            deleted.push(found.name.clone());
        }
    }
    Ok(deleted)
}

fn must_be_network_namespace(fd: BorrowedFd<'_>) -> Result<(), FeedError> {
    const NSFS: rustix::fs::FsWord = 0x6e73_6673;
    let step = "look at the descriptor";
    let system = rustix::fs::fstatfs(fd).map_err(|e| FeedError::at(step, e))?;
    if system.f_type != NSFS {
        return Err(FeedError::NotANetworkNamespace("no namespace at all"));
    }
    match is_network_namespace(fd).map_err(|e| FeedError::at(step, e))? {
        true => Ok(()),
        false => Err(FeedError::NotANetworkNamespace("another kind of namespace")),
    }
}
