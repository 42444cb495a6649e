//! `trawl-reporter`: flags in, exit code out.
#![forbid(unsafe_code)]

use clap::Parser;

fn main() -> anyhow::Result<()> {
    let arguments = trawl_reporter::Arguments::parse();
    trawl_kube::startup::install_crypto();
    trawl_kube::startup::init_logs();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = trawl_kube::startup::client().await?;
        trawl_reporter::run(client, arguments, trawl_kube::startup::terminated()).await?;
        Ok(())
    })
}
