//! The command line. Its help is the manual, so it teaches by examples.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use trawl_control::DEFAULT_SOCKET;
use trawl_dataplane::InterfaceName;

use crate::quantity;

/// Captures packets: for the other programs of Trawl over a socket, or straight into a file.
#[derive(Debug, Parser)]
#[command(name = "trawl-captured", version, max_term_width = 100)]
#[command(after_help = "\
Start with:
  trawl-captured check eth1                                 is this NIC set up for capture?
  trawl-captured watch --interface eth0 --node              what arrives, and what is lost
  trawl-captured record --interface eth0 --node -o a.pcapng ten seconds into a file

Exit codes: 0 done, 1 failed or something is wrong, 2 wrong usage; `check` adds 3, see its help.")]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the daemon of this node.
    #[command(after_help = "\
Needs CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF and CAP_IPC_LOCK in the network namespace of the interfaces, and the socket \
group as its own, primary or supplementary (or CAP_CHOWN, to give the socket to it). Gives up every other capability \
before it serves anyone.

--history is memory for each attachment: packets stay where they were received until that much is needed again, so a \
capture may begin before it was asked for. Frames of 2 KiB (4 KiB on links with a large MTU) are the unit: 64 MiB are \
32,768 frames, ten seconds at 3,000 packets a second. `status` and `watch` say how far back it reaches now.

Logs JSON lines on stderr (RUST_LOG sets the level). SIGTERM finishes all files, closes all interfaces, sets NICs back \
and exits 0.

Examples:
  trawl-captured serve
  trawl-captured serve --history 1Gi --socket-group 65532

Exit codes: 0 stopped by a signal, 1 could not start, 2 wrong usage.")]
    Serve(ServeArgs),
    /// Record one interface into a pcapng file, without Kubernetes.
    #[command(after_help = "\
Examples:
  trawl-captured record --interface eth0 --node --filter 'host 192.0.2.7 and tcp port 443' \\
    -o web.pcapng
  trawl-captured record --interface mirror0 --duration 1m --max-size 1Gi -o all.pcapng
  trawl-captured record --interface eth0 --node --pre 30s --wait --duration 10s -o crash.pcapng

Without --node the interface is opened by AF_XDP, which TAKES EVERY FRAME AWAY from this machine: right for a port that \
only receives mirrored traffic, wrong for a port that the machine itself uses.

--pre begins the file that long before the trigger. The trigger is now, or with --wait the moment at which you press \
Enter or send SIGUSR1. When the daemon of this machine has the interface attached, it records, and --pre reaches into \
what it has held all along: `--pre 1m` right after something happened has what happened. Otherwise nothing from before \
exists: record begins to listen, holds the last packets in memory (--history) and writes nothing to disk until the \
trigger; without --wait it holds --pre first and then begins. What was covered is said at the end.

Ctrl-C ends the recording early and finishes the file. Filters are those of tcpdump; hosts and ports as numbers, since \
names are never looked up. The file opens in Wireshark, tshark, tcpdump and capinfos. The last lines say what was seen, \
kept and lost, and where: nothing is lost in silence.

Exit codes: 0 the file is complete (duration over, size reached, or interrupted), 1 it could not begin or ended by an \
error, 2 wrong usage.")]
    Record(RecordArgs),
    /// Show live what arrives, what is lost where, and how far back the history reaches.
    #[command(after_help = "\
Without --interface it shows what the daemon of this machine has attached. With it, what the daemon has attached there; \
when it has not, the interface is opened for this (without --node by AF_XDP, which takes every frame away from the \
machine). On a terminal the picture is redrawn; into a pipe goes one line a second and interface, with --json one object.

Examples:
  trawl-captured watch
  trawl-captured watch --interface eth0 --node
  trawl-captured watch --json --for 10s | jq .packetsPerSecond

Columns: packets and bits per second; `ring` are packets lost because nobody fetched them in time, `nic` those lost in \
the card, `-` is not measured. `history` is what a capture could still begin with.

Exit codes: 0 ended by Ctrl-C or --for, 1 failed, 2 wrong usage.")]
    Watch(WatchArgs),
    /// Look whether a NIC is set up for capture; changes nothing.
    #[command(after_help = "\
Each line names what was found, what is right, and in one sentence what the difference does to captures. A mirror \
interface is set right by the daemon when it attaches it, and set back when it lets go; a node's own interface is never \
changed. docs/nic-check.md has each item and the command that sets it by hand.

Examples:
  trawl-captured check eth1
  trawl-captured check eth0 --node --json | jq '.items[] | select(.state == \"wrong\")'

Exit codes: 0 all good, 1 something is wrong, 2 the interface cannot be looked at (or wrong usage), 3 nothing wrong was \
found and some item could not be looked at.")]
    Check(CheckArgs),
    /// Print what the daemon of this node knows, as JSON.
    #[command(after_help = "\
Example:
  trawl-captured status | jq '.attachments[] | {tap: .tap.name, mode, counters, history}'

Exit codes: 0 it answered, 1 it did not, 2 wrong usage.")]
    Status(StatusArgs),
    /// Print the completion script of a shell.
    #[command(after_help = "\
Example:
  trawl-captured completion bash > /etc/bash_completion.d/trawl-captured")]
    Completion { shell: clap_complete::Shell },
    /// Print the manual page, or write the pages of all commands into a directory.
    Man {
        /// Directory for one page per command; it must exist.
        #[arg(long, value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

/// Where the daemon of this machine listens.
#[derive(Debug, Args)]
pub(crate) struct SocketArgs {
    /// Where the daemon listens.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
}

/// How rings are made.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct RingArgs {
    /// Memory for packet history, for each interface: 0 to 4Gi.
    #[arg(long, value_name = "SIZE", default_value = "64Mi", value_parser = quantity::history)]
    pub history: u64,
    /// Receive threads for a node's own interface, 1 to 64; a mirror interface has one for each of its queues.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub node_threads: u32,
    /// Poll the NIC from the receive thread, this many microseconds at a time, instead of by interrupts: less delay,
    /// more CPU.
    #[arg(long, value_name = "MICROSECONDS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub busy_poll: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; the directory must exist.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
    /// Group that may use the socket (mode 0660); its members must have it as primary group.
    #[arg(long, value_name = "GID", default_value_t = 65532)]
    pub socket_group: u32,
    #[command(flatten)]
    pub ring: RingArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub daemon: SocketArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Interface to look at.
    #[arg(value_name = "IF")]
    pub interface: InterfaceName,
    /// The machine uses this interface itself, so other things are right for it.
    #[arg(long)]
    pub node: bool,
    /// JSON instead of lines.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Interface to watch; without it, all that the daemon has attached.
    #[arg(long, short, value_name = "IF")]
    pub interface: Option<InterfaceName>,
    /// The machine uses this interface itself: listen beside it (AF_PACKET) instead of taking its frames.
    #[arg(long, requires = "interface")]
    pub node: bool,
    /// One JSON object a second and interface.
    #[arg(long)]
    pub json: bool,
    /// End by itself after this time: 500ms, 10s, 1m30s.
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::duration)]
    pub length: Option<Duration>,
    #[command(flatten)]
    pub daemon: SocketArgs,
    #[command(flatten)]
    pub ring: RingArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Interface to record.
    #[arg(long, short, value_name = "IF")]
    pub interface: InterfaceName,
    /// The machine uses this interface itself: listen beside it (AF_PACKET) instead of taking its frames.
    #[arg(long)]
    pub node: bool,
    /// Which packets to keep; all without it.
    #[arg(long, short, value_name = "EXPR")]
    pub filter: Option<String>,
    /// Also keep packets that match inside VXLAN, GRE and Geneve.
    #[arg(long, requires = "filter")]
    pub tunnels: bool,
    /// How long after the trigger, 1ms to 1h: 500ms, 10s, 1m30s.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::duration)]
    pub duration: Duration,
    /// How large the file may become, 1Mi to 1Gi.
    #[arg(long, value_name = "SIZE", default_value = "50Mi", value_parser = quantity::size)]
    pub max_size: u64,
    /// Bytes kept of each packet: 0 for all, or 64 to 262144.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub snaplen: u32,
    /// How long before the trigger the file begins, up to 5m.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = quantity::duration)]
    pub pre: Duration,
    /// The trigger is Enter or SIGUSR1, not now.
    #[arg(long)]
    pub wait: bool,
    /// File to write; must not exist.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Do not ask the daemon, even when it has the interface attached.
    #[arg(long)]
    pub alone: bool,
    #[command(flatten)]
    pub daemon: SocketArgs,
    #[command(flatten)]
    pub ring: RingArgs,
}
