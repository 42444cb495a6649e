//! `crdgen DIRECTORY [--webhooks FILE]`: writes the CustomResourceDefinitions, and the webhook configurations.
#![forbid(unsafe_code)]

use std::{error::Error, ffi::OsString, fs, path::Path, process::ExitCode};

const USAGE: &str = "usage: crdgen DIRECTORY [--webhooks FILE]";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
        Err(e) => {
            eprintln!("crdgen: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Writes what is asked for; `false` when that cannot be understood.
fn run(arguments: &[OsString]) -> Result<bool, Box<dyn Error>> {
    let Some((directory, options)) = arguments.split_first() else {
        return Ok(false);
    };
    let (options, []) = options.as_chunks::<2>() else {
        return Ok(false);
    };
    if options.iter().any(|[option, _]| option != "--webhooks") {
        return Ok(false);
    }
    let directory = Path::new(directory);
    fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    for definition in trawl_api::crds::all()? {
        write(&directory.join(&definition.file), &definition.to_yaml()?)?;
    }
    for [_, file] in options {
        write(Path::new(file), &trawl_api::webhooks::to_yaml()?)?;
    }
    Ok(true)
}

fn write(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}
