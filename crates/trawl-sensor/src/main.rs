use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match trawl_sensor::cli::main(trawl_sensor::cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trawl-sensor: {error:#}");
            ExitCode::FAILURE
        }
    }
}
