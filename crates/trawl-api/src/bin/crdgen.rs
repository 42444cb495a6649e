//! `crdgen DIRECTORY [--webhooks FILE] [--reference FILE]`: writes the CustomResourceDefinitions, the webhook
//! configurations, and the API reference.
#![forbid(unsafe_code)]

use std::{error::Error, ffi::OsString, fs, path::Path, process::ExitCode};

const USAGE: &str = "usage: crdgen DIRECTORY [--webhooks FILE] [--reference FILE]";

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
    let mut files = Vec::new();
    for [option, file] in options {
        let text = match option.to_str() {
            Some("--webhooks") => trawl_api::webhooks::to_yaml()?,
            Some("--reference") => reference()?,
            _ => return Ok(false),
        };
        files.push((Path::new(file), text));
    }
    let directory = Path::new(directory);
    fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    for definition in trawl_api::crds::all()? {
        write(&directory.join(&definition.file), &definition.to_yaml()?)?;
    }
    for (path, text) in files {
        write(path, &text)?;
    }
    Ok(true)
}

fn reference() -> Result<String, Box<dyn Error>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/samples");
    let samples =
        trawl_api::reference::samples(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    Ok(trawl_api::reference::render(&trawl_api::crds::all()?, &samples))
}

fn write(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}
