//! Completion scripts and manual pages, made from the arguments themselves.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::Cli;

/// Prints the completion script of a shell.
pub(crate) fn completion(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "trawl-captured", &mut script);
    print(&script)
}

/// Prints the manual page, or writes the page of every command into `directory`.
pub(crate) fn man(directory: Option<&Path>) -> anyhow::Result<ExitCode> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut page)
            .context("cannot render the manual page")?;
        return print(&page);
    };
    clap_mangen::generate_to(Cli::command(), directory).with_context(|| {
        format!(
            "--directory: cannot write to {}; give a directory that exists and is writable",
            directory.display()
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// To standard output; a reader that saw enough (`| head`) is no failure.
pub(crate) fn print(bytes: &[u8]) -> anyhow::Result<ExitCode> {
    write(bytes).map(|_| ExitCode::SUCCESS)
}

/// To standard output. False when nobody reads it any more.
pub(crate) fn write(bytes: &[u8]) -> anyhow::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        result => result.context("cannot write to standard output").map(|()| true),
    }
}
