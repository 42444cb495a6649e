//! The two ways of sending, and with them all `unsafe` of this crate.

mod alarm;
mod bpf;
pub mod live;
pub mod packet;
mod renumber;
