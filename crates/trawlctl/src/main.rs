//! The Trawl command line.
use std::process::ExitCode;

fn main() -> ExitCode {
    trawlctl::main()
}
