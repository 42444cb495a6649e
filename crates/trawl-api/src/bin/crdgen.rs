//! `crdgen DIRECTORY [--reference FILE]`: writes the CustomResourceDefinitions, and the API reference.
#![forbid(unsafe_code)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let (directory, reference) = match arguments.as_slice() {
        [directory] => (PathBuf::from(directory), None),
        [directory, option, file] if option == "--reference" => {
            (PathBuf::from(directory), Some(PathBuf::from(file)))
        }
        _ => {
            eprintln!("usage: crdgen DIRECTORY [--reference FILE]");
            return ExitCode::from(2);
        }
    };
    let written =
        write_all(&directory).and_then(|()| reference.map_or(Ok(()), |file| write_reference(&file)));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("crdgen: {e}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    for definition in trawl_api::crds::all()? {
        let path = directory.join(&definition.file);
        fs::write(&path, definition.to_yaml()?).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

fn write_reference(file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/samples");
    let samples =
        trawl_api::reference::samples(&samples).map_err(|e| format!("{}: {e}", samples.display()))?;
    let text = trawl_api::reference::render(&trawl_api::crds::all()?, &samples);
    fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}
