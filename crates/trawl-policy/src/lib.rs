//! Filter templates of CapturePolicies: closed placeholders, typed values, specimens.
#![forbid(unsafe_code)]
#![warn(missing_docs)]
