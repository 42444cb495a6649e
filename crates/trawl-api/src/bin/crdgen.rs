//! `crdgen DIRECTORY [FILE]`: writes the CustomResourceDefinitions, and the webhook configurations into FILE.
#![forbid(unsafe_code)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(directory) = arguments.next() else {
        eprintln!("usage: crdgen DIRECTORY [FILE]");
        return ExitCode::from(2);
    };
    match write_all(&directory, arguments.next()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("crdgen: {e}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(directory: &Path, webhooks: Option<PathBuf>) -> Result<(), Box<dyn std::error::Error>> {
    fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    for definition in trawl_api::crds::all()? {
        let path = directory.join(&definition.file);
        fs::write(&path, definition.to_yaml()?).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("{}", path.display());
    }
    if let Some(path) = webhooks {
        fs::write(&path, trawl_api::webhooks::to_yaml()?).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}
