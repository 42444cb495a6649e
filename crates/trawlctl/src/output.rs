//! Printing to standard output: lines, JSON, YAML and names.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;

use crate::{Failure, cli::ListFormat};

/// Prints `text` and a line end. A reader that went away is no failure.
pub fn line(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| Failure::new(format!("cannot write to standard output: {error}"))),
    }
}

pub fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value);
    line(&text.map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?)
}

pub fn yaml<T: Serialize>(value: &T) -> Result<(), Failure> {
    // Through JSON, so that both forms show the same field names and values.
    let value =
        serde_json::to_value(value).map_err(|error| Failure::new(format!("cannot write YAML: {error}")))?;
    let text = serde_saphyr::to_string(&value);
    line(
        text.map_err(|error| Failure::new(format!("cannot write YAML: {error}")))?
            .trim_end(),
    )
}

/// Prints `items` as a Kubernetes List, or their names with `prefix` before each.
pub fn list<T: Serialize>(
    items: &[T],
    format: ListFormat,
    names: &[String],
    prefix: &str,
) -> Result<(), Failure> {
    let whole = || json!({"apiVersion": "v1", "kind": "List", "items": items});
    match format {
        ListFormat::Json => json(&whole()),
        ListFormat::Yaml => yaml(&whole()),
        _ => names
            .iter()
            .try_for_each(|name| line(&format!("{prefix}/{name}"))),
    }
}
