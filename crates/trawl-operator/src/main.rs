use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match trawl_operator::cli::main(trawl_operator::cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trawl-operator: {error:#}");
            ExitCode::FAILURE
        }
    }
}
