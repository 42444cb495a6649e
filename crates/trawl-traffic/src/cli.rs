//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use crate::frame::Encapsulation;

/// The world outside a capture: sends packets with numbers, and reads from a file whether all of them are there.
#[derive(Debug, Parser)]
#[command(name = "trawl-testbed", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send numbered packets out of an interface.
    #[command(after_help = "\
Examples:
  trawl-testbed traffic --interface far0 --count 1000000
  trawl-testbed traffic --interface far0 --rate 200k --duration 10s --size imix --flows 16
  trawl-testbed traffic --interface far0 --sender packet --qdisc --count 50000 --qinq 100.200
  trawl-testbed traffic --interface far0 --replay web.pcapng --rate 50k

Each packet is UDP from 198.18.0.1 to 198.19.0.1 port 9000 with a stream and a number in its payload; of --match 1/100 \
every hundredth goes to port 9999. Prints what was sent, and what the interface counted as sent.
Needs CAP_NET_RAW for --sender packet, CAP_NET_ADMIN and CAP_BPF for --sender live (Linux 5.18), in the network \
namespace of the interface.
Into a veth pair live frames go only while the other end has an XDP program or `ethtool -K END gro on`; what its ring of \
256 frames has no room for is dropped there, and its number is missing in every capture. To lose none, use a rate below \
what the receiver takes, or --sender packet --qdisc with a queueing discipline that waits \
(`tc qdisc replace dev IF root pfifo`).")]
    Traffic(TrafficArgs),
    /// Judge whether the numbered packets in a file are all there, whole, once, and in order.
    #[command(after_help = "\
Examples:
  trawl-testbed verify capture.pcapng --expect 20000
  trawl-testbed verify needles.pcapng --every 100 --json

Reads pcapng and pcap. Order and stamps are judged within each receive queue when packets name theirs (epb_queue), gaps \
and duplicates across all. Packets without a number are counted and not judged.
Exits 0 when all is well, 1 when something is wrong with the file, 2 when it cannot be read.")]
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// File to read; - for standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Judge this stream alone; all of them without it.
    #[arg(long, value_name = "N")]
    pub stream: Option<u16>,
    /// Exactly so many packets must be there in each stream, --lost taken off.
    #[arg(long, value_name = "N", value_parser = number)]
    pub expect: Option<u64>,
    /// Only every N-th number is wanted, as in a capture of what --match 1/N has marked.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub every: u64,
    /// So many numbers may be missing, because the capture has counted them as lost.
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    pub lost: u64,
    /// Print the verdict as JSON.
    #[arg(long)]
    pub json: bool,
}

/// How frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SenderKind {
    /// Made and numbered in the kernel, by live-frame XDP test runs: millions a second, up to 3400 bytes.
    Live,
    /// Given to an AF_PACKET socket: hundreds of thousands a second, any size.
    Packet,
    /// Each as the content of a datagram from --from to --to, as QEMU's `-netdev dgram` takes them.
    Datagram,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("inside").args(["vlan", "qinq", "vxlan"])))]
pub(crate) struct TrafficArgs {
    /// Interface to send out of.
    #[arg(long, short, value_name = "IF", required_unless_present = "from")]
    pub interface: Option<String>,
    /// How to send.
    #[arg(long, value_enum, default_value = "live")]
    pub sender: SenderKind,
    /// Leave the frames to the interface's queueing discipline instead of going round it.
    #[arg(long)]
    pub qdisc: bool,
    /// Where datagrams come from: ADDRESS:PORT of UDP, or unix:PATH, which waits instead of losing frames.
    #[arg(long, value_name = "ADDR", value_parser = address, requires = "to", conflicts_with = "interface")]
    pub from: Option<Address>,
    /// Where datagrams go to.
    #[arg(long, value_name = "ADDR", value_parser = address, requires = "from")]
    pub to: Option<Address>,
    /// Send the packets of this pcapng or pcap file, as far apart as they were, or at --rate.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["size", "stream", "first", "flows", "needle", "vlan", "qinq", "vxlan", "from"])]
    pub replay: Option<PathBuf>,
    /// How many packets; without it and --duration, for 10 s.
    #[arg(long, value_name = "N", value_parser = number)]
    pub count: Option<u64>,
    /// For how long: 500ms, 10s, 2m.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Packets per second, such as 200k or 1M; as fast as possible with max, and without it.
    #[arg(long, value_name = "PPS", value_parser = rate)]
    pub rate: Option<Rate>,
    /// Bytes of each packet without checksum: one size, several in turn (60,512,1500), or imix. Without it 60, and what
    /// tags and tunnels add to that.
    #[arg(long, value_name = "SIZES", value_parser = sizes)]
    pub size: Option<Sizes>,
    /// Number of the stream, which `verify --stream` takes.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub stream: u16,
    /// Number of the first packet.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: u64,
    /// UDP flows to alternate between, by their source port.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub flows: u16,
    /// Share of packets that a needle filter (`udp port 9999`) matches: 1/100.
    #[arg(long = "match", value_name = "1/N", default_value = "0", value_parser = share)]
    pub needle: u32,
    /// Put each packet into this VLAN.
    #[arg(long, value_name = "ID", value_parser = vlan)]
    pub vlan: Option<Encapsulation>,
    /// Put each packet into two VLANs.
    #[arg(long, value_name = "OUTER.INNER", value_parser = qinq)]
    pub qinq: Option<Encapsulation>,
    /// Put each packet into a VXLAN tunnel.
    #[arg(long, value_name = "VNI", value_parser = vxlan)]
    pub vxlan: Option<Encapsulation>,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Sizes to send in turn.
#[derive(Clone, Debug)]
pub(crate) enum Sizes {
    Given(Vec<usize>),
    /// The mix of the internet, simple form: seven small, four middling, one large.
    Imix,
}

impl TrafficArgs {
    /// Sizes of whole packets. Those of the mix, and the one that nobody gave, are of what is inside tags and tunnels.
    pub fn sizes(&self, around: Encapsulation) -> Vec<usize> {
        const IMIX: [usize; 12] = [60, 590, 60, 60, 590, 60, 1514, 60, 590, 60, 590, 60];
        match &self.size {
            Some(Sizes::Given(sizes)) => sizes.clone(),
            Some(Sizes::Imix) => IMIX.iter().map(|size| size + around.bytes()).collect(),
            None => vec![60 + around.bytes()],
        }
    }
}

/// An end of a datagram's way.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    Udp(SocketAddr),
    Unix(PathBuf),
}

fn address(text: &str) -> Result<Address, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(Address::Unix(path.into()));
    }
    let advice = "not an address; write 127.0.0.1:5000 or unix:/path/of/socket";
    text.parse().map(Address::Udp).map_err(|_| advice.into())
}

/// Packets a second; `None` is as fast as possible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate(pub Option<u64>);

fn number(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => text
            .strip_suffix('M')
            .map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    let value = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    value
        .ok_or_else(|| "not a number; write digits, with k or M behind them if you like, such as 200k".into())
}

fn rate(text: &str) -> Result<Rate, String> {
    if text == "max" {
        return Ok(Rate(None));
    }
    match number(text)? {
        0 => Err("a rate of 0 sends nothing; leave --rate out to send as fast as possible".into()),
        rate => Ok(Rate(Some(rate))),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text[..digits].parse::<u64>().ok();
    let milliseconds = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => 0,
    };
    number
        .and_then(|n| n.checked_mul(milliseconds))
        .filter(|n| *n > 0)
        .map(Duration::from_millis)
        .ok_or_else(|| "not a duration; write a number with ms, s or m, such as 500ms or 10s".into())
}

fn sizes(text: &str) -> Result<Sizes, String> {
    if text == "imix" {
        return Ok(Sizes::Imix);
    }
    let sizes: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
    match sizes {
        Ok(sizes) if sizes.len() <= 64 => Ok(Sizes::Given(sizes)),
        _ => Err("not sizes; write one such as 60, up to 64 with commas between them, or imix".into()),
    }
}

fn share(text: &str) -> Result<u32, String> {
    let every = text.strip_prefix("1/").unwrap_or(text).parse::<i32>().ok();
    let every = every.and_then(|n| u32::try_from(n).ok());
    every.ok_or_else(|| "not a share; write 1/100 for every hundredth packet".into())
}

fn tag(text: &str) -> Result<u16, String> {
    match text.parse::<u16>() {
        Ok(id) if id < 4096 => Ok(id),
        _ => Err(format!("'{text}' is no VLAN; there are 0 to 4095")),
    }
}

fn vlan(text: &str) -> Result<Encapsulation, String> {
    tag(text).map(Encapsulation::Vlan)
}

fn qinq(text: &str) -> Result<Encapsulation, String> {
    let (outer, inner) = text.split_once('.').ok_or("write both VLANs, such as 100.200")?;
    Ok(Encapsulation::QinQ(tag(outer)?, tag(inner)?))
}

fn vxlan(text: &str) -> Result<Encapsulation, String> {
    match text.parse::<u32>() {
        Ok(id) if id < 1 << 24 => Ok(Encapsulation::Vxlan(id)),
        _ => Err(format!("'{text}' is no VXLAN network; there are 0 to 16777215")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Shape, Template};

    #[test]
    fn tags_and_tunnels_need_no_size_to_be_given() {
        for inside in [
            &["--vlan", "7"][..],
            &["--qinq", "100.200"],
            &["--vxlan", "42"],
            &[],
        ] {
            let line = [&["trawl-testbed", "traffic", "--interface", "far0"], inside].concat();
            let Command::Traffic(args) = Cli::parse_from(&line).command else {
                unreachable!("{line:?}");
            };
            let encapsulation = args.vlan.or(args.qinq).or(args.vxlan).unwrap_or_default();
            let shape = Shape {
                encapsulation,
                ..Shape::default()
            };
            for size in args.sizes(encapsulation) {
                Template::new(shape, size).unwrap();
            }
        }
    }
}
