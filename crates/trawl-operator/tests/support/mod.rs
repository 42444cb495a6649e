//! A world around a real API server: the operator under test in a namespace of its own, and a stand-in for everything
//! that a control plane without nodes lacks (kubelet, sensor, reporter, runner).

pub mod capture_file;
pub mod kubelet;
pub mod world;

pub use world::World;
