//! Completion scripts and manual pages, made from the arguments themselves.

use std::{
    io::{self, Write},
    path::Path,
};

use clap::CommandFactory;

use crate::{Failure, cli::Cli};

/// Prints the completion script of `shell`.
pub fn completion(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "trawlctl", &mut script);
    print(&script)
}

/// Prints the manual page, or writes the page of every command into `directory`.
pub fn man(directory: Option<&Path>) -> Result<(), Failure> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
        rendered.map_err(|error| Failure::new(format!("cannot render the manual page: {error}")))?;
        return print(&page);
    };
    clap_mangen::generate_to(Cli::command(), directory).map_err(|error| {
        Failure::new(format!(
            "--directory: cannot write to {}: {error}",
            directory.display()
        ))
        .hint("give a directory that exists and is writable")
    })
}

fn print(bytes: &[u8]) -> Result<(), Failure> {
    match io::stdout().write_all(bytes) {
        // A reader that saw enough (`| head`) is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| Failure::new(format!("cannot write to standard output: {error}"))),
    }
}
