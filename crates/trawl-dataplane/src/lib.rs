//! AF_XDP and AF_PACKET rings, fan-out to captures, and the pcapng writer.
//!
//! A [`backend::Backend`] delivers frames; one [`engine::Engine`] per attachment owns it on a receive thread, judges
//! each frame once per distinct filter and encodes what matched into batches; a writer thread per capture turns the
//! batches into a file and its hash. The receive thread never waits for a writer. `unsafe` is allowed in
//! [`ring`] alone.
#![deny(unsafe_code)]

pub mod backend;
pub mod batch;
pub mod clock;
pub mod engine;
pub mod feed;
pub mod interface;
pub(crate) mod netlink;
pub mod nic;
pub mod outlet;
pub mod pcapng;
pub mod queue;
#[allow(unsafe_code)]
pub mod ring;
mod sink;
mod writer;

pub use backend::{Backend, Frame, Losses};
pub use engine::{CaptureSpec, Engine, EngineError, Running};
pub use interface::{InterfaceName, MirrorInterface, NodeInterface};
pub use ring::OpenError;
