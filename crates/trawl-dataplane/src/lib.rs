//! AF_XDP and AF_PACKET rings, fan-out to captures, and the pcapng writer.
//!
//! A [`queue::Queue`] receives frames and holds them where they are, as long as memory allows. One [`Engine`] per
//! attachment has a receive thread for each queue, which judges each frame once per distinct filter and hands what
//! matched to the writers of captures and the senders of feeds: by reference where the ring can do that, by one copy
//! otherwise. It never waits for any of them. `unsafe` is allowed in [`ring`] alone.
#![deny(unsafe_code)]

pub mod batch;
mod capture;
pub mod clock;
pub mod cpu;
mod engine;
pub mod feed;
pub mod interface;
pub(crate) mod netlink;
pub mod nic;
pub mod outlet;
pub mod pcapng;
pub mod queue;
#[allow(unsafe_code)]
pub mod ring;

pub use capture::{CaptureSpec, OnEnd, Running};
pub use engine::{Engine, EngineError, FeedHandle};
pub use interface::{InterfaceName, MirrorInterface, NodeInterface};
pub use outlet::{Outlet, Sent};
pub use ring::OpenError;
