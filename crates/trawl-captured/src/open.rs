//! From a source to a running engine, and from failures to replies.

use tokio::task::JoinError;
use trawl_control::limits::refusal;
use trawl_control::{ErrorCode, ErrorReply, FilterReading, InterfaceSpec, LeftOut, Source};
use trawl_dataplane::ring::{RingOptions, device, tpacket, xdp};
use trawl_dataplane::{Engine, EngineError, InterfaceName, MirrorInterface, NodeInterface, OpenError};
use trawl_filter::{Compiled, Expansion, Filter, FilterError, Options};

/// Program and version, as files and status show it.
pub(crate) const APPLICATION: &str = concat!("trawl-captured ", env!("CARGO_PKG_VERSION"));

/// Memory for the history of an interface, in bytes.
const HISTORY_BYTES: u64 = 64 << 20;

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

/// Opens the ring that belongs to the kind of source. Blocks, for seconds when a queue is busy.
pub(crate) fn engine(source: &Source, name: &InterfaceName) -> Result<Engine, ErrorReply> {
    if matches!(source, Source::MirrorInterface(_)) && device::has_address(name) {
        return Err(refusal(
            ErrorCode::InterfaceUnavailable,
            "source.interface",
            format!(
                "{name} has an IP address, so this machine uses it, and AF_XDP would take its frames away; watch it as a NodeInterface"
            ),
        ));
    }
    let options = RingOptions {
        history_bytes: HISTORY_BYTES,
        ..RingOptions::default()
    };
    let started = match source {
        Source::MirrorInterface(_) => xdp::open(&MirrorInterface(name.clone()), &options).map(Engine::start),
        Source::NodeInterface(spec) => {
            let node = NodeInterface {
                name: name.clone(),
                promiscuous: spec.promiscuous,
            };
            tpacket::open(&node, &options).map(Engine::start)
        }
    };
    match started {
        Ok(engine) => engine.map_err(|e| engine_error(&e)),
        Err(e) => Err(open_error(&e)),
    }
}

pub(crate) fn open_error(error: &OpenError) -> ErrorReply {
    refusal(
        ErrorCode::InterfaceUnavailable,
        "source.interface",
        error.to_string(),
    )
}

pub(crate) fn engine_error(error: &EngineError) -> ErrorReply {
    let (code, field) = match error {
        EngineError::NoRoom { .. } => (ErrorCode::InvalidBounds, "maxSizeBytes"),
        EngineError::Future { .. } => (ErrorCode::InvalidBounds, "triggerNs"),
        EngineError::Start(_) => (ErrorCode::Internal, "source"),
        EngineError::Gone => (ErrorCode::InterfaceUnavailable, "tap"),
    };
    refusal(code, field, error.to_string())
}

/// Compiles a filter away from the async workers.
pub(crate) async fn filter(text: String, tunnels: bool) -> Result<Result<Compiled, FilterError>, JoinError> {
    let options = Options {
        literal: false,
        tunnels,
    };
    tokio::task::spawn_blocking(move || trawl_filter::compile_with(&text, &options)).await
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
