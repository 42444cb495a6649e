//! Life of a NetworkTap: Pending, Active, Degraded or Error, computed fresh from what is observed.

mod conditions;
mod decide;
mod facts;

#[cfg(test)]
mod tests;

pub use decide::decide;
pub use facts::*;
