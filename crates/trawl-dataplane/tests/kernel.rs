//! The rings on a real kernel: network namespaces and veth. Needs root; `dev/test kernel` runs it.

#[path = "kernel/both.rs"]
mod both;
#[path = "kernel/world.rs"]
mod world;
#[path = "kernel/xdp.rs"]
mod xdp;
