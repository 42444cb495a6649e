//! Numbered packets sent as fast or as slowly as wanted, and a verdict on the file that they were captured into.
//!
//! `trawl-testbed traffic` and `trawl-testbed verify` are its two commands; tests and measurements use it as a library.
//! `unsafe` is allowed in [`ring`] alone.
#![deny(unsafe_code)]

mod cli;
mod datagram;
pub mod file;
pub mod frame;
pub mod pace;
mod replay;
#[allow(unsafe_code)]
pub mod ring;
mod traffic;
mod verdict;
pub mod verify;

use std::process::ExitCode;

pub use cli::Cli;

/// Runs the program.
///
/// # Errors
/// Whatever stops it, in words for the terminal.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        cli::Command::Traffic(args) => traffic::run(&args),
        cli::Command::Verify(args) => verdict::run(&args),
    }
}
