//! The daemon of this machine, for commands that can do without it.

use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use trawl_control::{AttachmentStatus, Client, InterfaceSpec, Source};
use trawl_dataplane::InterfaceName;
use trawl_dataplane::ring::device;

use crate::open::spec_of;

/// The source that a command line means.
pub(crate) fn source(name: &InterfaceName, node: bool) -> Source {
    let spec = InterfaceSpec {
        interface: name.to_string(),
        promiscuous: true,
    };
    if node {
        Source::NodeInterface(spec)
    } else {
        Source::MirrorInterface(spec)
    }
}

/// What a daemon has attached on this very interface; `None` when there is no daemon, it has not, or it lives in
/// another network namespace, where the same name is another interface.
pub(crate) async fn attachment_on(client: &Client, name: &InterfaceName) -> Option<AttachmentStatus> {
    if in_another_namespace(client.socket()) {
        return None;
    }
    let index = device::link(name).ok()??.index;
    let status = client.status().await.ok()?;
    let here = |a: &AttachmentStatus| a.ifindex == index && spec_of(&a.source).interface == name.as_str();
    status.attachments.into_iter().find(here)
}

/// Only what is known counts: the daemon's process may be out of sight, in another PID namespace.
fn in_another_namespace(socket: &Path) -> bool {
    let theirs = || {
        let stream = UnixStream::connect(socket).ok()?;
        let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
        namespace(&format!("/proc/{}/ns/net", peer.pid.as_raw_nonzero()))
    };
    match (theirs(), namespace("/proc/self/ns/net")) {
        (Some(theirs), Some(own)) => theirs != own,
        _ => false,
    }
}

fn namespace(path: &str) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}
