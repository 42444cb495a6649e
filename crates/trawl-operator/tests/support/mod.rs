//! A world around a real API server: the operator under test in a namespace of its own, and a stand-in for everything
//! that a control plane without nodes lacks (kubelet, sensor, reporter, runner).

pub mod capture_file;
pub mod hooks;
pub mod kubelet;
pub mod operator;
pub mod peek;
pub mod prelude;
pub mod world;

pub use world::World;
