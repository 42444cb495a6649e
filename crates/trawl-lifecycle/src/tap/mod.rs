//! Life of a NetworkTap: Pending, Active, Degraded or Error, computed fresh from what is observed.

mod conditions;
mod decide;
mod facts;
mod spec;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use facts::*;
pub use spec::{check_spec, source};
