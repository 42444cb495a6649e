use clap::Parser;

fn main() -> anyhow::Result<()> {
    trawl_operator::cli::main(trawl_operator::cli::Cli::parse())
}
