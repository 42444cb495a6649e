//! `trawl-captured status`.

use std::process::ExitCode;

use trawl_control::Client;

use crate::cli::StatusArgs;
use crate::generate;

pub(crate) async fn run(args: StatusArgs) -> anyhow::Result<ExitCode> {
    let status = Client::new(args.daemon.socket).status().await?;
    generate::print(format!("{}\n", serde_json::to_string_pretty(&status)?).as_bytes())
}
