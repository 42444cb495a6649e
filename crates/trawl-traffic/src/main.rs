use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match trawl_traffic::run(trawl_traffic::Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("trawl-testbed: {error:#}");
            ExitCode::from(2)
        }
    }
}
