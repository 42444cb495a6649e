//! `trawlctl filter explain`.

use serde_json::json;
use trawl_filter::{Compiled, Filter};

use super::{compiled, options};
use crate::{Failure, cli::ExplainArgs, output};

/// Prints what the filter means.
pub fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let compiled = compiled(&args.expression, &options(args.reading))?;
    if args.output.is_some() {
        return output::json(&report(&compiled));
    }
    output::line(&text(&compiled))
}

/// The code for frames, and the code for later fragments where they are judged otherwise.
fn listings(compiled: &Compiled) -> (Vec<String>, Option<Vec<String>>) {
    match &compiled.filter {
        Filter::Everything => (Vec::new(), None),
        Filter::Program(program) => (program.listing(), program.later_fragments_listing()),
    }
}

fn warnings(compiled: &Compiled) -> Vec<String> {
    compiled.warnings.iter().map(ToString::to_string).collect()
}

fn text(compiled: &Compiled) -> String {
    if compiled.filter == Filter::Everything {
        return "an empty filter keeps every frame".into();
    }
    let mut text = format!("filter:\n  {}", compiled.normalized);
    let mut section = |title: &str, lines: &[String]| {
        if !lines.is_empty() {
            text.push_str(&format!("\n\n{title}:"));
            lines
                .iter()
                .for_each(|line| text.push_str(&format!("\n  {line}")));
        }
    };
    let sentences = compiled.expansion.sentences();
    let nothing = ["Nothing: the filter is read exactly as tcpdump reads it.".to_owned()];
    section(
        "added",
        if sentences.is_empty() {
            &nothing
        } else {
            &sentences
        },
    );
    section("warnings", &warnings(compiled));
    let (code, later) = listings(compiled);
    section(&format!("program ({} instructions)", code.len()), &code);
    let later = later.unwrap_or_default();
    section(
        &format!("program for later fragments ({} instructions)", later.len()),
        &later,
    );
    text
}

fn report(compiled: &Compiled) -> serde_json::Value {
    let (code, later) = listings(compiled);
    json!({
        "everything": compiled.filter == Filter::Everything,
        "filter": compiled.normalized,
        "expansion": compiled.expansion,
        "sentences": compiled.expansion.sentences(),
        "warnings": warnings(compiled),
        "program": code,
        "programForLaterFragments": later,
    })
}
