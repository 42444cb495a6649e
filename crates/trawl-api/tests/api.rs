//! The four kinds on a real API server.
#![forbid(unsafe_code)]

#[path = "cases/mod.rs"]
mod cases;
#[path = "api/cel.rs"]
mod cel;
#[path = "api/columns.rs"]
mod columns;
#[path = "api/harness.rs"]
mod harness;
#[path = "api/refusals.rs"]
mod refusals;
#[path = "api/roles.rs"]
mod roles;
#[path = "api/status.rs"]
mod status;
#[path = "api/stored.rs"]
mod stored;
