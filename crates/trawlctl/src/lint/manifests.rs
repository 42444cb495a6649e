//! Manifests from files, within bounds.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::is_stdin;
use crate::Failure;

/// Largest file, in bytes. The API server takes objects of up to 3 MiB.
const MAX_BYTES: u64 = 8 << 20;

/// The files that the arguments stand for.
pub fn files(arguments: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in arguments {
        if is_stdin(path) || !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut inside = inside(path).map_err(|error| unread(path, &error))?;
        if inside.is_empty() {
            return Err(Failure::usage(format!(
                "there is no .yaml, .yml or .json file in {}",
                path.display()
            ))
            .hint("directories are not searched any deeper; name those that hold manifests"));
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

fn inside(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let manifest = path
            .extension()
            .is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
        if manifest && path.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}

fn unread(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    let name = if is_stdin(path) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    };
    Failure::usage(format!("cannot read {name}: {error}"))
}

/// The documents of a file, or what keeps it from being one of YAML or JSON, with the place.
pub fn read(path: &Path) -> Result<Result<Vec<Value>, String>, Failure> {
    let mut bytes = Vec::new();
    let source: Box<dyn Read> = if is_stdin(path) {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(|error| unread(path, &error))?)
    };
    source
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unread(path, &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(unread(path, &"it has more than 8 MiB")
            .hint("manifests are small; split the file, or name the right one"));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            return Ok(Err(format!("is not UTF-8 from byte {at} on")));
        }
    };
    Ok(serde_saphyr::from_multiple::<Value>(&text).map_err(|error| {
        // The place and the kind of mistake; a quote of the file could hold anything.
        let place = error
            .location()
            .map(|place| format!(" (line {}, column {})", place.line(), place.column()));
        format!(
            "is not YAML or JSON{}: {}",
            place.unwrap_or_default(),
            reason(&error)
        )
    }))
}

/// The reason alone, in one line, without the place and without advice for programmers.
fn reason(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = [" at line ", ", set "]
        .iter()
        .fold(line, |line, end| line.split(end).next().unwrap_or(line));
    line.chars().filter(|c| !c.is_control()).take(200).collect()
}
