use clap::Parser;

fn main() -> anyhow::Result<()> {
    trawl_sensor::cli::main(trawl_sensor::cli::Cli::parse())
}
