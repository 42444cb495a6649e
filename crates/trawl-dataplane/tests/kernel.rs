//! The rings, the self-check of NICs and the feeds on a real kernel: network namespaces and veth. Needs root; `dev/test
//! kernel` runs it.

#[path = "kernel/both.rs"]
mod both;
#[path = "kernel/feed.rs"]
mod feed;
#[path = "kernel/nic.rs"]
mod nic;
#[path = "kernel/packet.rs"]
mod packet;
#[path = "kernel/world.rs"]
mod world;
#[path = "kernel/xdp.rs"]
mod xdp;
