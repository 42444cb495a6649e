//! Life of a CaptureJob: Pending, Capturing, Storing, then Completed or Failed, and never back.

mod cleanup;
mod decide;
mod facts;
mod failure;
mod ready;
mod status;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

pub use decide::decide;
pub use facts::*;
