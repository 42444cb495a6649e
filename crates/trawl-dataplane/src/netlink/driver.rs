//! What a driver can do for XDP, and its receive queues (`Documentation/netlink/specs/netdev.yaml`; features since
//! Linux 6.3, queues since 6.9, their AF_XDP sockets since 6.15).

use super::{Message, Netlink, Refusal, attributes, word};

const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const DEVICE_GET: u8 = 1;
const DEVICE_INDEX: u16 = 1;
const DEVICE_FEATURES: u16 = 3;
const DEVICE_SEGMENTS: u16 = 4;
const DEVICE_METADATA: u16 = 5;
const QUEUE_GET: u8 = 10;
const QUEUE_INDEX: u16 = 2;
const QUEUE_TYPE: u16 = 3;
const QUEUE_XSK: u16 = 7;

/// What a driver offers to XDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct XdpFacts {
    /// `NETDEV_XDP_ACT_*`.
    pub features: u64,
    /// Buffers of one frame in zero-copy mode; absent without zero-copy.
    pub segments: Option<u32>,
    /// `NETDEV_XDP_RX_METADATA_*`.
    pub metadata: u64,
}

/// Receive queues in use, and how many have an AF_XDP socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueFacts {
    pub queues: u32,
    /// `None` when the kernel does not tell.
    pub sockets: Option<u32>,
}

fn head(command: u8) -> [u8; 4] {
    [command, 1, 0, 0]
}

fn family(netlink: &mut Netlink) -> Result<u16, Refusal> {
    let request = Message::new(CONTROLLER, 0, &head(GET_FAMILY)).text(FAMILY_NAME, "netdev");
    let answers = netlink.ask(request)?;
    let mut found = answers
        .iter()
        .flat_map(|body| attributes(body.get(4..).unwrap_or_default()));
    found
        .find(|(kind, _)| *kind == FAMILY_ID)
        .and_then(|(_, value)| value.first_chunk().map(|b| u16::from_ne_bytes(*b)))
        .ok_or_else(|| rustix::io::Errno::NOENT.into())
}

/// What the driver of this link offers.
pub(crate) fn xdp(netlink: &mut Netlink, index: u32) -> Result<XdpFacts, Refusal> {
    let request = Message::new(family(netlink)?, 0, &head(DEVICE_GET));
    let answers = netlink.ask(request.attribute(DEVICE_INDEX, &index.to_ne_bytes()))?;
    let body = answers.first().ok_or(rustix::io::Errno::NODATA)?;
    let mut facts = XdpFacts::default();
    for (kind, value) in attributes(body.get(4..).unwrap_or_default()) {
        let long = value.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
        match kind {
            DEVICE_FEATURES => facts.features = long,
            DEVICE_SEGMENTS => facts.segments = word(value),
            DEVICE_METADATA => facts.metadata = long,
            _ => {}
        }
    }
    Ok(facts)
}

/// The receive queues of this link. Only links that are up have some.
pub(crate) fn queues(netlink: &mut Netlink, index: u32) -> Result<QueueFacts, Refusal> {
    let request = Message::list(family(netlink)?, &head(QUEUE_GET));
    let answers = netlink.ask(request.attribute(QUEUE_INDEX, &index.to_ne_bytes()))?;
    let (mut facts, mut sockets) = (QueueFacts::default(), 0);
    for body in &answers {
        let (mut receive, mut socket) = (false, false);
        for (kind, value) in attributes(body.get(4..).unwrap_or_default()) {
            receive |= kind == QUEUE_TYPE && word(value) == Some(0);
            socket |= kind == QUEUE_XSK;
        }
        facts.queues += u32::from(receive);
        sockets += u32::from(receive && socket);
    }
    // A kernel that does not know the attribute leaves it out as one without sockets does.
    facts.sockets = Some(sockets).filter(|n| *n > 0 || tells_sockets(&release()));
    Ok(facts)
}

fn release() -> String {
    let system = rustix::system::uname();
    system.release().to_string_lossy().into_owned()
}

/// Whether a kernel of this release tells which queues have an AF_XDP socket.
fn tells_sockets(release: &str) -> bool {
    const SINCE: (u32, u32) = (6, 15);
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= SINCE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_socket_is_believed_only_of_kernels_that_would_tell_of_one() {
        for (release, tells) in [
            ("6.18.44-fc-v669", true),
            ("6.15.0", true),
            ("7.3.4+deb13-amd64", true),
            ("6.14.11", false),
            ("6.1.0-37-amd64", false),
            ("5.15", false),
            ("next", false),
            ("", false),
        ] {
            assert_eq!(tells_sockets(release), tells, "{release}");
        }
    }
}
