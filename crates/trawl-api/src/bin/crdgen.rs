//! `crdgen DIRECTORY`: writes the CustomResourceDefinitions.
#![forbid(unsafe_code)]

use std::{fs, path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: crdgen DIRECTORY");
        return ExitCode::from(2);
    };
    match write_all(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("crdgen: {e}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(directory: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    for definition in trawl_api::crds::all()? {
        let path = directory.join(&definition.file);
        fs::write(&path, definition.to_yaml()?).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}
