//! The line on a real cluster: real API server, kubelet, containerd, kernel and store.
//!
//! `dev/test cluster` brings everything up, sets the environment and runs these one at a time.

mod bounds;
mod faults;
mod happy;
mod refusals;
mod support;
