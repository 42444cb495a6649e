//! captured on a real kernel: network namespaces, veth, real rings. Needs root; `dev/test kernel` runs it.

#[path = "kernel/balance.rs"]
mod balance;
#[path = "kernel/bounds.rs"]
mod bounds;
#[path = "kernel/bounds_exact.rs"]
mod bounds_exact;
#[path = "kernel/budget.rs"]
mod budget;
#[path = "kernel/cli.rs"]
mod cli;
#[path = "kernel/daemon.rs"]
mod daemon;
#[path = "kernel/hardening.rs"]
mod hardening;
#[path = "kernel/load.rs"]
mod load;
#[path = "kernel/packets.rs"]
mod packets;
#[path = "kernel/privileges.rs"]
mod privileges;
#[path = "kernel/readers.rs"]
mod readers;
#[path = "kernel/record.rs"]
mod record;
#[path = "kernel/refusals.rs"]
mod refusals;
#[path = "kernel/seam.rs"]
mod seam;
#[path = "kernel/survival.rs"]
mod survival;
#[path = "kernel/survival_disk.rs"]
mod survival_disk;
#[path = "kernel/world.rs"]
mod world;
