//! The messages. Field names are wire contract: `camelCase` JSON, unknown fields refused.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Version carried by every request; the daemon refuses any other.
pub const PROTOCOL_VERSION: u32 = 1;
/// Largest JSON body of one request, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// Largest JSON body of one reply, in bytes: the status of hundreds of attachments.
pub const MAX_REPLY_BYTES: usize = 4 * 1024 * 1024;
/// Where captured listens unless told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/trawl/captured.sock";
/// How long an attachment survives the connection that made it, in seconds, so that a restarted sensor finds
/// it (and its counters) again.
pub const ATTACH_LINGER_SECS: u64 = 30;

/// What travels as one message.
pub trait Message {
    /// Largest JSON body, in bytes.
    const LIMIT: usize;
}

impl Message for Request {
    const LIMIT: usize = MAX_MESSAGE_BYTES;
}

impl Message for Reply {
    const LIMIT: usize = MAX_REPLY_BYTES;
}

/// What a client sends, once per connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// Must equal [`PROTOCOL_VERSION`].
    pub version: u32,
    /// What is asked for.
    pub body: RequestBody,
}

/// The five requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value")]
pub enum RequestBody {
    /// Open an interface for a tap. Idempotent for the same tap and source. The attachment lives as long as the
    /// connection stays open, and [`ATTACH_LINGER_SECS`] longer.
    Attach(Attach),
    /// Close a tap's interface at once.
    Detach(Detach),
    /// Ask for everything that captured knows of its attachments.
    Status,
    /// Cut a capture. The output file travels with this message as one `SCM_RIGHTS` descriptor. Half-closing the
    /// connection cancels (the file is finished and summarised); hanging up ends it as well.
    Capture(Capture),
    /// Send a copy of everything that an attachment receives into a network namespace, for an analyzer. The namespace
    /// travels with this message as one `SCM_RIGHTS` descriptor (of `/proc/self/ns/net`, say). The feed lives as long
    /// as the connection.
    Feed(Feed),
}

/// Who owns an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TapIdentity {
    pub namespace: String,
    pub name: String,
    /// UID of the NetworkTap object; a re-created tap of the same name is another tap.
    pub uid: String,
}

/// What kind of interface is opened, and so by which means: a mirror interface by AF_XDP, a node's own
/// interface by AF_PACKET only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value")]
pub enum Source {
    MirrorInterface(InterfaceSpec),
    NodeInterface(InterfaceSpec),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InterfaceSpec {
    /// Linux interface name, 1 to 15 bytes.
    pub interface: String,
    pub promiscuous: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attach {
    pub tap: TapIdentity,
    pub source: Source,
    /// Memory for packet history in bytes, 0 to 4 GiB; absent takes what the daemon was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_bytes: Option<u64>,
}

/// A copy of a tap's traffic for one analyzer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Feed {
    /// The attachment to read from.
    pub tap: TapIdentity,
    /// Name of the interface to make in the namespace, where it must be free; 1 to 15 bytes.
    pub interface: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Detach {
    pub tap: TapIdentity,
}

/// A bounded capture on an attached interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capture {
    /// The attachment to read from.
    pub tap: TapIdentity,
    /// BPF text, at most 1024 bytes of printable ASCII; absent or empty captures everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Whether the filter is also asked about the packets inside VXLAN, GRE and Geneve.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub filter_tunnels: bool,
    /// 1 ms to 1 h.
    pub duration_ms: u64,
    /// Upper bound of the whole file in bytes, 1 MiB to 1 GiB.
    pub max_size_bytes: u64,
    /// Bytes kept of each packet: 0 for all, or 64 to 262144.
    pub snaplen: u32,
    /// The moment of the trigger, in nanoseconds since the epoch, not in the future; absent is now. The window ends
    /// `duration_ms` after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_ns: Option<u64>,
    /// How far before the trigger the capture should begin, in milliseconds, 0 to 300000. The reply says what was
    /// covered.
    #[serde(default)]
    pub pre_trigger_ms: u64,
    /// Comments for the pcapng section header: who asked, and why. At most 16 of 1024 bytes.
    #[serde(default)]
    pub comments: Vec<String>,
}

/// What captured sends. `Attach` is answered by `Attached` (the connection then stays open), `Detach` by `Detached`,
/// `Status` by `Status`, `Capture` by `FilterAccepted`, `Started`, `Progress`..., `Ended`, `Feed` by `Fed` (the connection then
/// stays open). `Error` ends any of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value")]
pub enum Reply {
    Attached(AttachmentStatus),
    Detached,
    Status(DaemonStatus),
    FilterAccepted,
    Started(Started),
    /// About once a second.
    Progress(Progress),
    Ended(Ended),
    Fed(FeedStatus),
    Error(ErrorReply),
}

/// How frames arrive. Reported only after it was read back from the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureMode {
    ZeroCopy,
    Copy,
    Generic,
    AfPacket,
}

impl CaptureMode {
    /// The word used in status, manifests and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ZeroCopy => "zero-copy",
            Self::Copy => "copy",
            Self::Generic => "generic",
            Self::AfPacket => "af-packet",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    pub daemon_version: String,
    /// Nanoseconds since the epoch. A change means that counters began anew.
    pub started_at_ns: u64,
    pub attachments: Vec<AttachmentStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentStatus {
    pub tap: TapIdentity,
    pub source: Source,
    pub ifindex: u32,
    pub mode: CaptureMode,
    /// Whether a frame has arrived in this mode.
    pub mode_proved: bool,
    /// Why each better mode was refused, in words.
    pub mode_refusals: Vec<String>,
    pub link_up: bool,
    /// When this attachment was opened; its counters count from then.
    pub attached_at_ns: u64,
    pub last_packet_ns: Option<u64>,
    pub counters: Counters,
    pub active_captures: u32,
    /// What is wrong now (interface gone, socket error); `None` when frames can arrive.
    pub problem: Option<String>,
    /// Each receive queue.
    #[serde(default)]
    pub queues: Vec<QueueStatus>,
    /// What is held in memory; absent while the receive threads do not answer.
    #[serde(default)]
    pub history: Option<HistoryStatus>,
    /// What was found of the NIC and its settings; empty until it was looked at.
    #[serde(default)]
    pub nic: Vec<NicVerdict>,
    /// The analyzers' copies.
    #[serde(default)]
    pub feeds: Vec<FeedStatus>,
}

/// One receive queue of an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Its number at the NIC, or of the thread for AF_PACKET.
    pub queue: u32,
    pub mode: CaptureMode,
    /// Whether a frame has arrived in this mode.
    pub mode_proved: bool,
    pub counters: Counters,
    /// Frames that came as far as the ring: counted by the XDP program of this queue, or by the kernel for AF_PACKET.
    /// Absent when the count cannot be read.
    pub offered: Option<u64>,
    /// How often it stood still and was opened again.
    pub rebinds: u32,
}

/// The packets that an attachment holds in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryStatus {
    pub packets: u64,
    /// Memory that they may use.
    pub budget_bytes: u64,
    /// From this moment on everything that was received is held.
    pub complete_from_ns: u64,
}

/// One thing that was looked at on a NIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NicVerdict {
    /// What: driver, queues, sockets, rss, gro, lro, rxVlan, vlanFilter, segmentation, mtu, promiscuity, link, speed, ring,
    /// clock, xdp.
    pub item: String,
    /// What was found; absent when it could not be looked at.
    pub found: Option<String>,
    /// What is right for capture; absent when any value is.
    pub wanted: Option<String>,
    pub state: NicState,
    /// What it means for captures, or why it was not repaired, in one sentence.
    pub consequence: String,
}

/// How a [`NicVerdict`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NicState {
    /// As wanted.
    Good,
    /// It was set right, and is set back at detach.
    Repaired,
    /// Not as wanted.
    Wrong,
    /// Could not be looked at; neither good nor wrong.
    Unknown,
}

/// An analyzer's copy of the traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedStatus {
    /// Name of the interface in the analyzer's namespace.
    pub interface: String,
    /// Frames that went out to it.
    pub packets: u64,
    pub bytes: u64,
    /// Frames that it did not get: it, or its sender, was too slow.
    pub dropped: u64,
    /// What is wrong now.
    pub problem: Option<String>,
}

/// Per-attachment totals since it was opened. `None` is "not measured", never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Frames that reached captured.
    pub packets: u64,
    pub bytes: u64,
    /// Lost before user space because the ring was full or the fill ring was empty.
    pub dropped_ring: Option<u64>,
    /// Lost in the NIC or driver.
    pub dropped_nic: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    pub interface: String,
    pub mode: CaptureMode,
    /// When the capture was begun, in nanoseconds since the epoch, as all moments here.
    pub started_at_ns: u64,
    /// The start of the window that was asked for, and the earliest moment that the file covers.
    pub requested_from_ns: u64,
    pub covered_from_ns: u64,
    /// What was made of the filter; absent when everything is captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterReading>,
}

/// What captured made of a filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilterReading {
    /// The text with every test written out in full.
    pub normalized: String,
    /// VLAN tags that are seen through, at most.
    pub vlan_tags: u8,
    /// Whether tests of ports accept later fragments, which carry none.
    pub later_fragments: bool,
    /// Whether IPv6 extension headers are seen through.
    pub ip6_extension_headers: bool,
    /// Whether the packets inside tunnels are looked at.
    pub tunnels: bool,
    /// What was left out for a reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// Something that is usually added to a filter and was not to this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// vlanTags, laterFragments, ip6ExtensionHeaders or tunnels.
    pub layer: String,
    /// The end of a sentence; never repeats a value of the filter.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    pub packets: u64,
    /// Bytes of the file so far.
    pub bytes: u64,
    pub elapsed_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StopReason {
    Duration,
    Size,
    Cancelled,
    Error,
}

/// The finished file, as its writer knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    pub stop_reason: StopReason,
    /// As in [`Started`].
    pub started_at_ns: u64,
    /// The end of the window; when that had passed already, the moment of the start.
    pub ended_at_ns: u64,
    /// Packets in the file.
    pub packets: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Lower-case hex of the file's SHA-256.
    pub sha256: String,
    pub first_packet_ns: Option<u64>,
    pub last_packet_ns: Option<u64>,
    /// Packets of which only the first `snaplen` bytes were kept.
    pub truncated_packets: u64,
    pub balance: LossBalance,
    /// Where the stamps come from, for example `kernel-realtime`.
    pub clock_source: String,
    /// For `StopReason::Error`: what went wrong.
    pub message: Option<String>,
}

/// `seen = matched + filtered + lost_history`; `written = matched - lost_writer`; the rest never reached captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LossBalance {
    pub seen: u64,
    pub matched: u64,
    pub filtered: u64,
    pub written: u64,
    /// Matched, but the output failed or the size bound had been reached.
    pub lost_writer: u64,
    /// Of the window, but its memory was needed again before the capture came to it: the window began where the history
    /// did, or the writer could not keep up.
    #[serde(default)]
    pub lost_history: u64,
    pub lost_ring: Option<u64>,
    pub lost_nic: Option<u64>,
}

impl LossBalance {
    /// Whether every packet that was seen is accounted for.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        // A peer may send any numbers: a sum beyond what fits is no balance.
        let sum = |parts: &[u64]| parts.iter().try_fold(0u64, |all, part| all.checked_add(*part));
        sum(&[self.matched, self.filtered, self.lost_history]) == Some(self.seen)
            && sum(&[self.written, self.lost_writer]) == Some(self.matched)
    }
}

/// The balance as a sentence; what was not measured is said not to be.
impl fmt::Display for LossBalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let measured = |n: Option<u64>| n.map_or_else(|| "not measured".to_owned(), |n| n.to_string());
        write!(
            f,
            "seen {} = matched {} + filtered {} + lost in history {}; matched {} = written {} + lost by the writer {}; \
             before that lost in the ring: {}, in the NIC: {}",
            self.seen,
            self.matched,
            self.filtered,
            self.lost_history,
            self.matched,
            self.written,
            self.lost_writer,
            measured(self.lost_ring),
            measured(self.lost_nic)
        )
    }
}

/// Why a request was refused. The code is for programs, the message for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorReply {
    pub code: ErrorCode,
    /// The request field at fault, in dotted form.
    pub field: Option<String>,
    /// Names the limit and what to do; never echoes filter text.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ErrorCode {
    MalformedRequest,
    UnsupportedVersion,
    MessageTooLarge,
    NotAuthorized,
    InvalidBounds,
    InvalidFilter,
    FilterRejectsAll,
    InterfaceUnavailable,
    InterfaceConflict,
    TooManyCaptures,
    MissingDescriptor,
    OutputFailed,
    FeedFailed,
    Internal,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_whose_numbers_overflow_does_not_add_up_and_does_not_panic() {
        let lie = LossBalance {
            seen: 0,
            matched: u64::MAX,
            filtered: 1,
            written: u64::MAX,
            lost_writer: 1,
            ..LossBalance::default()
        };
        assert!(!lie.adds_up());
        assert!(LossBalance::default().adds_up());
    }

    #[test]
    fn a_balance_in_words_names_every_place_of_loss_and_what_was_not_measured() {
        let balance = LossBalance {
            seen: 12,
            matched: 7,
            filtered: 3,
            written: 6,
            lost_writer: 1,
            lost_history: 2,
            lost_ring: Some(0),
            lost_nic: None,
        };
        assert_eq!(
            balance.to_string(),
            "seen 12 = matched 7 + filtered 3 + lost in history 2; matched 7 = written 6 + lost by the writer 1; \
             before that lost in the ring: 0, in the NIC: not measured"
        );
    }
}
