//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use trawl_control::DEFAULT_SOCKET;
use trawl_dataplane::InterfaceName;

use crate::quantity;

/// Captures packets: for the other programs of Trawl over a socket, or straight into a file.
#[derive(Debug, Parser)]
#[command(name = "trawl-captured", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the daemon of this node.
    #[command(after_help = "\
Needs CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF and CAP_IPC_LOCK in the network namespace of the interfaces, and the socket \
group as its own, primary or supplementary.
Logs JSON lines on stderr (RUST_LOG sets the level). SIGTERM finishes all files, closes all interfaces and exits 0.")]
    Serve(ServeArgs),
    /// Record one interface into a pcapng file, without Kubernetes.
    #[command(after_help = "\
Examples:
  trawl-captured record --interface eth0 --node --filter 'host 192.0.2.7 and tcp port 443' \\
    -o web.pcapng
  trawl-captured record --interface mirror0 --duration 1m --max-size 1Gi -o all.pcapng

Without --node the interface is opened by AF_XDP, which TAKES EVERY FRAME AWAY from this machine: right for a port that \
only receives mirrored traffic, wrong for a port that the machine itself uses.
Ctrl-C ends the recording early and finishes the file. Filters are those of tcpdump; hosts and ports as numbers, since \
names are never looked up.")]
    Record(RecordArgs),
    /// Print what the daemon of this node knows, as JSON.
    Status(StatusArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; the directory must exist.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
    /// Group that may use the socket (mode 0660); its members must have it as primary group.
    #[arg(long, value_name = "GID", default_value_t = 65532)]
    pub socket_group: u32,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Where the daemon listens.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
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
    /// How long, 1ms to 1h: 500ms, 10s, 1m30s.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::duration)]
    pub duration: Duration,
    /// How large the file may become, 1Mi to 1Gi.
    #[arg(long, value_name = "SIZE", default_value = "50Mi", value_parser = quantity::size)]
    pub max_size: u64,
    /// Bytes kept of each packet: 0 for all, or 64 to 262144.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub snaplen: u32,
    /// File to write; must not exist.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
}
