//! `trawl-runner`: flags in, exit code out.
#![forbid(unsafe_code)]

use clap::Parser;

fn main() -> std::process::ExitCode {
    let arguments = trawl_runner::Arguments::parse();
    tracing_subscriber::fmt()
        .json()
        .with_writer(std::io::stderr)
        .init();
    trawl_runner::main(arguments)
}
