//! `trawlctl filter test`.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use serde_json::{Value, json};
use trawl_filter::Trace;

use super::{compiled, options};
use crate::{
    Failure,
    cli::TestArgs,
    output,
    packets::{Packet, PacketFile},
};

/// Judges every packet of the file, shows the first ones and counts all.
pub fn test(args: &TestArgs) -> Result<(), Failure> {
    let options = options(args.reading);
    let compiled = compiled(&args.expression, &options)?;
    let name = if args.file == Path::new("-") {
        "standard input".to_owned()
    } else {
        args.file.display().to_string()
    };
    for warning in &compiled.warnings {
        eprintln!("warning: {warning}");
    }
    let mut file = PacketFile::open(open(&args.file, &name)?)
        .map_err(|error| Failure::new(format!("{name}: {error}")))?;
    let (mut packets, mut matched, mut shown) = (0_u64, 0_u64, Vec::new());
    let end = loop {
        let packet = match file.next() {
            Ok(Some(packet)) => packet,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        packets += 1;
        let keeps = compiled.filter.matches(&packet.data, packet.wire_length);
        matched += u64::from(keeps);
        if packets <= args.limit {
            let trace = trawl_filter::trace(&args.expression, &options, &packet.data, packet.wire_length);
            let trace = trace.map_err(|error| Failure::new(error.to_string()))?;
            match args.output {
                Some(_) => shown.push(entry(packets, &packet, &trace)),
                None => output::line(&text(packets, &trace))?,
            }
        }
    };
    match args.output {
        Some(_) => output::json(&json!({
            "filter": compiled.normalized,
            "packets": packets,
            "matched": matched,
            "complete": end.is_none(),
            "shown": shown,
        }))?,
        None => output::line(&summary(packets, matched, args.limit))?,
    }
    match end {
        None => Ok(()),
        Some(error) => Err(Failure::new(format!("{name}: {error}"))
            .hint("the packets before that place were tested; the rest of the file was not")),
    }
}

fn open(path: &Path, name: &str) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let fail = |error: &dyn std::fmt::Display| Failure::usage(format!("cannot read {name}: {error}"));
    let file = File::open(path).map_err(|error| fail(&error))?;
    if file.metadata().map_err(|error| fail(&error))?.is_dir() {
        return Err(fail(&"it is a directory"));
    }
    Ok(Box::new(BufReader::new(file)))
}

fn text(number: u64, trace: &Trace) -> String {
    let verdict = if trace.matched { "match   " } else { "no match" };
    let mut text = format!("{number:>6}  {verdict}  {}", trace.seen);
    if !trace.matched {
        for test in &trace.tests {
            let sign = if test.holds { '+' } else { '-' };
            text.push_str(&format!("\n                  {sign} {}", test.text));
        }
    }
    text
}

fn entry(number: u64, packet: &Packet, trace: &Trace) -> Value {
    let tests: Vec<Value> = trace
        .tests
        .iter()
        .map(|test| json!({"test": test.text, "holds": test.holds}))
        .collect();
    json!({
        "number": number,
        "matched": trace.matched,
        "seen": trace.seen,
        "capturedBytes": packet.data.len(),
        "wireBytes": packet.wire_length,
        "tests": tests,
    })
}

fn summary(packets: u64, matched: u64, limit: u64) -> String {
    let more = if packets > limit && limit > 0 {
        format!("; the first {limit} are shown, see --limit")
    } else {
        String::new()
    };
    format!(
        "{packets} packets: {matched} match, {} do not{more}",
        packets - matched
    )
}
