//! The world outside for tests and the demo: mirrored traffic, captured files read back, and a cluster driven
//! from outside.
#![forbid(unsafe_code)]

pub mod files;
pub mod line;
pub mod node;
pub mod objects;
pub mod traffic;
