//! `trawl-captured status`.

use std::process::ExitCode;

use trawl_control::Client;

use crate::cli::StatusArgs;

pub(crate) async fn run(args: StatusArgs) -> anyhow::Result<ExitCode> {
    let status = Client::new(args.socket).status().await?;
    println!("{}", serde_json::to_string_pretty(&status)?);
    Ok(ExitCode::SUCCESS)
}
