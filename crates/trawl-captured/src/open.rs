//! From a source to a running engine, and from failures to replies.

use tokio::task::JoinError;
use trawl_control::limits::refusal;
use trawl_control::{ErrorCode, ErrorReply, FilterReading, InterfaceSpec, LeftOut, NicVerdict, Source};
use trawl_dataplane::nic::{self, Purpose, Repairs};
use trawl_dataplane::ring::{RingOptions, tpacket, xdp};
use trawl_dataplane::{Engine, EngineError, InterfaceName, MirrorInterface, NodeInterface, OpenError};
use trawl_filter::{Compiled, Expansion, Filter, FilterError, Options};

use crate::cli::RingArgs;
use crate::privileges;

/// Program and version, as files and status show it.
pub(crate) const APPLICATION: &str = concat!("trawl-captured ", env!("CARGO_PKG_VERSION"));

/// Options of rings, as the command line gives them.
pub(crate) fn ring_options(args: &RingArgs) -> RingOptions {
    RingOptions {
        history_bytes: args.history,
        node_threads: args.node_threads,
        busy_poll_us: args.busy_poll,
    }
}

/// The interface of a source.
pub(crate) fn spec_of(source: &Source) -> &InterfaceSpec {
    match source {
        Source::MirrorInterface(spec) | Source::NodeInterface(spec) => spec,
    }
}

/// The interface name of a source, checked.
pub(crate) fn name_of(source: &Source) -> Result<InterfaceName, ErrorReply> {
    let name = spec_of(source).interface.parse::<InterfaceName>();
    name.map_err(|e| {
        refusal(
            ErrorCode::InterfaceUnavailable,
            "source.interface",
            format!("source.interface is {e}"),
        )
    })
}

/// An interface that was opened.
pub(crate) struct Opened {
    pub engine: Engine,
    /// What was found of the NIC.
    pub nic: Vec<NicVerdict>,
    /// What was set right there, to be set back.
    pub repairs: Option<Repairs>,
}

/// Opens the rings that belong to the kind of source. Blocks, for seconds when a queue is busy.
pub(crate) fn interface(
    source: &Source,
    name: &InterfaceName,
    ring: &RingOptions,
) -> Result<Opened, ErrorReply> {
    match source {
        Source::MirrorInterface(_) => mirror(name, ring),
        Source::NodeInterface(spec) => {
            let node = NodeInterface {
                name: name.clone(),
                promiscuous: spec.promiscuous,
            };
            let opened = tpacket::open(&node, ring).map_err(|e| open_error(&e))?;
            Ok(Opened {
                engine: Engine::start(opened).map_err(|e| engine_error(&e))?,
                nic: nic::check(name, Purpose::Node),
                repairs: None,
            })
        }
    }
}

fn mirror(name: &InterfaceName, ring: &RingOptions) -> Result<Opened, ErrorReply> {
    if let Some(reason) = nic::refusal(name) {
        return Err(refusal(
            ErrorCode::InterfaceUnavailable,
            "source.interface",
            reason,
        ));
    }
    let mirror = MirrorInterface(name.clone());
    // Before the rings: some drivers reset their queues for it.
    let (nic, repairs) = nic::prepare(&mirror);
    let opened =
        xdp::open(&mirror, ring).map_err(|e| occupied(name, &e).unwrap_or_else(|| open_error(&e)))?;
    Ok(Opened {
        engine: Engine::start(opened).map_err(|e| engine_error(&e))?,
        nic,
        repairs: Some(repairs),
    })
}

/// The refusal when somebody else's program is what keeps ours out. Never replaced: its owner may be at work.
fn occupied(name: &InterfaceName, error: &OpenError) -> Option<ErrorReply> {
    if !matches!(error, OpenError::NoMode { .. }) {
        return None;
    }
    let id = nic::xdp_program(name)?;
    Some(refusal(
        ErrorCode::InterfaceUnavailable,
        "source.interface",
        format!(
            "interface {name} carries XDP program {id} of somebody else; see `bpftool prog show id {id}` for its owner, and \
             when nobody needs it run: ip link set {name} xdp off"
        ),
    ))
}

pub(crate) fn open_error(error: &OpenError) -> ErrorReply {
    let mut message = error.to_string();
    if !matches!(error, OpenError::NoSuchInterface(_) | OpenError::NotEthernet(_)) {
        message += &privileges::lack();
    }
    refusal(ErrorCode::InterfaceUnavailable, "source.interface", message)
}

pub(crate) fn engine_error(error: &EngineError) -> ErrorReply {
    let (code, field) = match error {
        EngineError::NoRoom { .. } => (ErrorCode::InvalidBounds, "maxSizeBytes"),
        EngineError::Start(_) => (ErrorCode::Internal, "source"),
        EngineError::Future { .. } => (ErrorCode::InvalidBounds, "triggerNs"),
        EngineError::Gone => (ErrorCode::InterfaceUnavailable, "tap"),
    };
    refusal(code, field, error.to_string())
}

/// Compiles a filter.
pub(crate) fn compile(text: &str, tunnels: bool) -> Result<Compiled, FilterError> {
    let options = Options {
        literal: false,
        tunnels,
    };
    trawl_filter::compile_with(text, &options)
}

/// Compiles a filter away from the async workers.
pub(crate) async fn filter(text: String, tunnels: bool) -> Result<Result<Compiled, FilterError>, JoinError> {
    tokio::task::spawn_blocking(move || compile(&text, tunnels)).await
}

/// What a client is told of a filter; nothing when everything is captured.
pub(crate) fn reading(compiled: Compiled) -> Option<FilterReading> {
    let Expansion {
        vlan_tags,
        later_fragments,
        ip6_extension_headers,
        tunnels,
        left_out,
    } = compiled.expansion;
    (compiled.filter != Filter::Everything).then(|| FilterReading {
        normalized: compiled.normalized,
        vlan_tags,
        later_fragments,
        ip6_extension_headers,
        tunnels,
        left_out: left_out
            .into_iter()
            .map(|out| LeftOut {
                layer: out.layer.as_str().into(),
                reason: out.reason,
            })
            .collect(),
    })
}

pub(crate) fn filter_error(error: &FilterError) -> ErrorReply {
    let code = match error {
        FilterError::RejectsAll => ErrorCode::FilterRejectsAll,
        FilterError::Internal(_) => ErrorCode::Internal,
        _ => ErrorCode::InvalidFilter,
    };
    refusal(code, "filter", error.to_string())
}
