//! `trawlctl lint`: what the cluster would say to manifests.

mod manifests;

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use trawl_admission::{
    Rules,
    lint::{self, Report},
};
use trawl_api::{MirrorProvider, names};

use crate::{
    Failure,
    cli::{LintArgs, Place},
    output,
};

/// What was found in one document.
#[derive(Debug, Serialize)]
struct Found {
    file: String,
    /// Counted from 1; empty documents are not counted.
    document: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    name: String,
    problems: Vec<Problem>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Problem {
    field: String,
    message: String,
}

/// Reads every file, prints what is wrong with it, and fails when anything is.
pub fn run(place: &Place, args: LintArgs) -> Result<(), Failure> {
    let rules = rules(place, &args);
    let mut found = Vec::new();
    let mut passed_over = 0;
    for path in manifests::files(&args.files)? {
        let file = path.display().to_string();
        match manifests::read(&path)? {
            Err(message) => found.push(unreadable(file, message)),
            Ok(documents) => {
                for (index, document) in documents.iter().enumerate() {
                    let objects = objects(document);
                    for object in objects {
                        let report = lint::document(&rules, object);
                        if report.kind.is_none() && report.problems.is_empty() {
                            passed_over += 1;
                        } else {
                            found.push(judged(file.clone(), index + 1, report));
                        }
                    }
                }
            }
        }
    }
    let bad = found
        .iter()
        .filter(|document| !document.problems.is_empty())
        .count();
    match args.output {
        Some(_) => {
            output::json(&serde_json::json!({"documents": found, "passedOver": passed_over, "refused": bad}))?
        }
        None => print(&found)?,
    }
    match (found.len(), bad) {
        (0, _) => Err(Failure::new(format!(
            "nothing was checked: there is no object of {}/{} here, and {passed_over} of other kinds",
            names::GROUP,
            names::VERSION
        ))
        .hint("give files with NetworkTaps, CapturePolicies, CaptureJobs or PortMirrors")),
        (all, 0) if args.output.is_none() => {
            output::line(&format!("{all} checked, all sound; {passed_over} of other kinds"))
        }
        (_, 0) => Ok(()),
        (all, bad) => Err(Failure::new(format!("{bad} of {all} would be refused"))),
    }
}

fn rules(place: &Place, args: &LintArgs) -> Rules {
    let namespace = place
        .namespace
        .clone()
        .unwrap_or_else(|| names::DEFAULT_NAMESPACE.into());
    Rules {
        worker: trawl_config::admission::Worker::default().username(&namespace),
        namespace,
        retention_administrators: Vec::new(),
        retention_ceiling: args.retention_ceiling.get(),
        providers: MirrorProvider::ALL.into(),
        filter: trawl_filter::Options::default(),
    }
}

/// The objects of a document: itself, or the items of a list.
fn objects(document: &Value) -> Vec<&Value> {
    match document["items"].as_array() {
        Some(items) if document["apiVersion"] == "v1" && document["kind"] == "List" => items.iter().collect(),
        _ => vec![document],
    }
}

fn unreadable(file: String, message: String) -> Found {
    Found {
        file,
        document: 1,
        kind: None,
        name: String::new(),
        problems: vec![Problem {
            field: "document".into(),
            message,
        }],
        warnings: Vec::new(),
    }
}

fn judged(file: String, document: usize, report: Report) -> Found {
    let problems = report.problems.into_iter().map(|problem| Problem {
        field: problem.field,
        message: problem.message,
    });
    Found {
        file,
        document,
        kind: report.kind.map(|kind| kind.as_str()),
        name: shown(&report.name),
        problems: problems.collect(),
        warnings: report.warnings,
    }
}

/// A name as a terminal may show it.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(253).collect()
}

fn print(found: &[Found]) -> Result<(), Failure> {
    for document in found {
        let place = format!(
            "{}:{} {}/{}",
            document.file,
            document.document,
            document.kind.unwrap_or("-"),
            if document.name.is_empty() {
                "-"
            } else {
                &document.name
            }
        );
        for problem in &document.problems {
            output::line(&format!("{place}: {}: {}", problem.field, problem.message))?;
        }
        for warning in &document.warnings {
            eprintln!("warning: {place}: {warning}");
        }
    }
    Ok(())
}

/// Whether a path stands for standard input.
fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}
