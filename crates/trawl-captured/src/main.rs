use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match trawl_captured::run(trawl_captured::Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("trawl-captured: {error:#}");
            ExitCode::from(1)
        }
    }
}
