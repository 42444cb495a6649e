//! Arguments. Everything a user reads in `--help` and in the manual pages is here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use trawl_api::{ByteSize, GoDuration};

#[derive(Debug, Parser)]
#[command(
    name = "trawlctl",
    version,
    about = "Ask Trawl for packet captures, fetch them, and prove what they hold"
)]
#[command(after_help = "Exit codes: 0 done, 1 tried and failed, 2 wrong usage.

Examples:
  # Two minutes of one conversation on the node behind the tap, and wait for the end
  trawlctl capture create --tap north-south --duration 2m --wait \\
    --filter 'host 10.0.0.50 and tcp port 443'

  # Fetch and check it
  trawlctl capture download manual-x7k2p -o evidence.pcapng \\
    --token-exec 'kubectl create token analyst --audience trawl-artifact-gateway'

  # What would the cluster say to these manifests? Needs no cluster
  trawlctl lint deploy/*.yaml

  # What does this filter really keep?
  trawlctl filter explain 'host 10.0.0.50 and tcp port 443'")]
pub struct Cli {
    #[command(flatten)]
    pub place: Place,
    #[command(subcommand)]
    pub command: Command,
}

/// Which cluster and namespace; the conventions of kubectl.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub struct Place {
    /// Kubeconfig file; otherwise the files of $KUBECONFIG, otherwise ~/.kube/config
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use instead of the current one
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace; otherwise that of the context, otherwise trawl-system
    #[arg(long, short, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Captures: create, list, describe, watch, download, verify
    #[command(subcommand, visible_aliases = ["captures"])]
    Capture(CaptureCommand),
    /// Taps: where captures can be made
    #[command(subcommand, visible_aliases = ["taps"])]
    Tap(TapCommand),
    /// Check manifests as the cluster would, without a cluster
    #[command(after_help = "\
Reads YAML with any number of documents, JSON, and lists as kubectl get prints them. Documents
of other API groups are passed over. Problems go to standard output, one per line:

  FILE:DOCUMENT KIND/NAME: FIELD: MESSAGE

and warnings, about what is legal but surprising, to standard error. What only a cluster knows
is not checked: whether the tap exists, who asks, and what is stored already. No kubeconfig is
read: -n says where Trawl is installed, otherwise trawl-system.

Exit codes: 0 everything is sound, 1 something would be refused or is no manifest, 2 wrong usage.

Examples:
  trawlctl lint policy.yaml
  trawlctl lint deploy/
  kustomize build overlays/site | trawlctl lint -
  trawlctl lint --retention-ceiling 14d -o json policy.yaml | jq '.documents[].problems'")]
    Lint(LintArgs),
    /// Filters: explain what one means, test it on packets. Needs no cluster
    #[command(subcommand, visible_aliases = ["filters"])]
    Filter(FilterCommand),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  trawlctl completion bash > /etc/bash_completion.d/trawlctl")]
    Completion { shell: clap_complete::Shell },
    /// Print the manual page, or write all pages into a directory
    Man {
        /// Write one page per command here instead of printing the first
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub enum CaptureCommand {
    /// Ask for one bounded capture
    #[command(after_help = "Examples:
  # 30 seconds of everything, at most 50Mi, on the only node of the tap
  trawlctl capture create --tap north-south --duration 30s

  # A named capture of DNS, first 256 bytes of each packet, kept for 7 days; follow it to its end
  trawlctl capture create dns-check --tap north-south --filter 'udp port 53' \\
    --snaplen 256 --retention 7d --wait

  # The name only, for a script
  job=$(trawlctl capture create --tap north-south -o name)")]
    Create(Box<CreateArgs>),
    /// List captures
    #[command(
        visible_alias = "ls",
        after_help = "Examples:
  trawlctl capture list
  trawlctl capture list -o wide
  trawlctl capture list -o name"
    )]
    List(ListArgs),
    /// Show one capture in full: bounds, times, result, conditions
    Describe(NameArgs),
    /// Follow the phases of a capture until it ends; exit 0 when it is Completed, 1 otherwise
    #[command(after_help = "Example:
  trawlctl capture watch manual-x7k2p \\
    && trawlctl capture download manual-x7k2p -o x.pcapng --token-stdin < token")]
    Watch(NameArgs),
    /// Fetch a capture and check its hash; the file appears only when it is right
    #[command(
        after_help = "The token must be made for the audience trawl-artifact-gateway and is never
given as an argument or in the environment, where other users of this machine could read it.

An interrupted download leaves FILE.part and is resumed when the same command runs again.

Examples:
  trawlctl capture download manual-x7k2p -o x.pcapng \\
    --token-exec 'kubectl create token analyst --audience trawl-artifact-gateway'

  kubectl create token analyst --audience trawl-artifact-gateway \\
    | trawlctl capture download manual-x7k2p -o x.pcapng --token-stdin \\
        --gateway https://trawl.example.org --ca ca.crt"
    )]
    Download(Box<DownloadArgs>),
    /// Read a capture file: hash it, walk every block, count, and compare with what was promised
    #[command(after_help = "Examples:
  # Is it a whole pcapng, and what is in it?
  trawlctl capture verify x.pcapng

  # Is it what the manifest says?
  trawlctl capture verify x.pcapng --manifest x.manifest.json

  # Is it what the status in the cluster says?
  trawlctl capture verify x.pcapng --job manual-x7k2p")]
    Verify(VerifyArgs),
}

#[derive(Debug, Subcommand)]
pub enum TapCommand {
    /// List taps
    #[command(visible_alias = "ls")]
    List(ListArgs),
}

#[derive(Debug, Subcommand)]
pub enum FilterCommand {
    /// Show what a filter means: the text in full, what is added to it, its program, and what is surprising about it
    #[command(after_help = "\
A filter is written in the language of tcpdump, with numeric addresses and ports: names are never
looked up. Trawl shows each frame to the filter as if it had no VLAN tags and no IPv6 extension
headers, and lets later fragments pass a test of ports, because the plain filter would silently
miss all of these. A filter that speaks about one of them itself is left alone in that respect;
the explanation says so.

Examples:
  trawlctl filter explain 'host 10.0.0.50 and tcp port 443'

  # What is wrong with this one? It cannot see untagged traffic
  trawlctl filter explain '(vlan and host 10.0.0.50) or host 10.0.0.50'

  # As tcpdump would read it
  trawlctl filter explain --literal 'port 53'")]
    Explain(ExplainArgs),
    /// Say which packets of a capture file a filter keeps, and why not the others
    #[command(after_help = "\
Reads pcapng and pcap files of Ethernet frames. Each line is one packet, numbered as in Wireshark:
whether it matches and what the filter saw; below a packet that does not match, each test of the
filter with + (holds) or - (does not hold). A summary ends the output.

Examples:
  trawlctl filter test 'host 10.0.0.50 and udp port 53' evidence.pcapng

  # The count only
  trawlctl filter test --limit 0 'tcp' evidence.pcapng

  # Numbers of the packets that do not match
  trawlctl filter test -o json 'tcp' evidence.pcapng | jq '.shown[] | select(.matched | not) | .number'")]
    Test(TestArgs),
}

#[derive(Debug, Args)]
pub struct LintArgs {
    /// Files, directories (their .yaml, .yml and .json files, not deeper), or - for standard input
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Longest retention that the installation allows
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = duration)]
    pub retention_ceiling: GoDuration,
    /// What to print
    #[arg(long, short, value_enum)]
    pub output: Option<ReportFormat>,
}

/// How a filter is read.
#[derive(Clone, Copy, Debug, Args)]
pub struct Reading {
    /// Read the filter exactly as tcpdump does: add nothing
    #[arg(long, conflicts_with = "tunnels")]
    pub literal: bool,
    /// Also look at the packet inside VXLAN, GRE and Geneve
    #[arg(long)]
    pub tunnels: bool,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The filter, in quotes; empty for everything
    #[arg(value_name = "EXPRESSION")]
    pub expression: String,
    #[command(flatten)]
    pub reading: Reading,
    /// What to print
    #[arg(long, short, value_enum)]
    pub output: Option<ReportFormat>,
}

#[derive(Debug, Args)]
pub struct TestArgs {
    /// The filter, in quotes; empty for everything
    #[arg(value_name = "EXPRESSION")]
    pub expression: String,
    /// Capture file (pcapng or pcap), or - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    #[command(flatten)]
    pub reading: Reading,
    /// Packets to show; all are counted
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub limit: u64,
    /// What to print
    #[arg(long, short, value_enum)]
    pub output: Option<ReportFormat>,
}

#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Name of the capture; otherwise one is made that begins with "manual-"
    pub name: Option<String>,
    /// Tap to capture on (see trawlctl tap list)
    #[arg(long, value_name = "NAME")]
    pub tap: String,
    /// Node to capture on; needed when the tap has more than one
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// What to keep, in the language of tcpdump; otherwise everything. Numeric addresses only
    #[arg(long, value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Longest time to capture, 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub duration: GoDuration,
    /// Largest file, 1Mi to 1Gi
    #[arg(long, value_name = "SIZE", default_value = "50Mi", value_parser = size)]
    pub max_size: ByteSize,
    /// Bytes to keep of each packet, 0 for all, otherwise 64 to 262144
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub snaplen: i32,
    /// How long to keep the file, 1h to 30d; otherwise 30d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub retention: Option<GoDuration>,
    /// Begin this long before now, as far as the node's packet history reaches; at most 5m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub pre_trigger: Option<GoDuration>,
    /// Follow the capture to its end, as trawlctl capture watch does
    #[arg(long)]
    pub wait: bool,
    /// What to print
    #[arg(long, short, value_enum)]
    pub output: Option<ObjectFormat>,
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// What to print
    #[arg(long, short, value_enum)]
    pub output: Option<ListFormat>,
}

#[derive(Debug, Args)]
pub struct NameArgs {
    /// Name of the capture
    pub name: String,
}

#[derive(Debug, Args)]
pub struct DownloadArgs {
    /// Name of the capture
    pub name: String,
    /// File to write; it must not exist
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Also fetch the manifest into this file; it must not exist
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub manifest: Option<PathBuf>,
    /// URL of the gateway; otherwise the key "url" of the ConfigMap trawl-gateway in the namespace
    #[arg(long, value_name = "URL")]
    pub gateway: Option<String>,
    /// PEM bundle, the only authorities trusted for gateway and store; otherwise the key "ca.crt" of the
    /// ConfigMap trawl-gateway, otherwise the authorities of this machine
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ca: Option<PathBuf>,
    /// Read the token from standard input
    #[arg(long, conflicts_with = "token_exec")]
    pub token_stdin: bool,
    /// Shell command that prints the token (or an ExecCredential); otherwise the exec plugin of the kubeconfig
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub token_exec: Option<String>,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Capture file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Manifest to compare with
    #[arg(long, value_name = "FILE", conflicts_with = "job", value_hint = ValueHint::FilePath)]
    pub manifest: Option<PathBuf>,
    /// Capture in the cluster whose status to compare with
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
    /// What to print
    #[arg(long, short, value_enum)]
    pub output: Option<ReportFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ObjectFormat {
    Name,
    Yaml,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    Wide,
    Name,
    Yaml,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    Json,
}

fn duration(text: &str) -> Result<GoDuration, String> {
    GoDuration::parse(text).map_err(|error| error.to_string())
}

fn size(text: &str) -> Result<ByteSize, String> {
    ByteSize::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn there_is_no_flag_that_takes_a_token() {
        let names = ["--token", "--bearer-token", "--token=x"];
        for name in names {
            let parsed = Cli::try_parse_from(["trawlctl", "capture", "download", "j", "-o", "f", name]);
            assert!(parsed.is_err(), "{name}");
        }
        assert!(
            Cli::command()
                .render_long_help()
                .to_string()
                .find("[env:")
                .is_none()
        );
    }

    #[test]
    fn bounds_that_are_no_bounds_are_wrong_usage() {
        for args in [
            ["--duration", "soon"],
            ["--max-size", "big"],
            ["--retention", "1d12h"],
            ["--snaplen", "all"],
        ] {
            let parsed = Cli::try_parse_from(
                ["trawlctl", "capture", "create", "--tap", "t"]
                    .into_iter()
                    .chain(args),
            );
            assert_eq!(parsed.expect_err("refused").exit_code(), 2, "{args:?}");
        }
    }
}
