use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match trawl_captured::run(trawl_captured::Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            // Nobody may be there to read it.
            let _ = writeln!(std::io::stderr(), "trawl-captured: {error:#}");
            ExitCode::from(if error.is::<trawl_captured::WrongUsage>() {
                2
            } else {
                1
            })
        }
    }
}
