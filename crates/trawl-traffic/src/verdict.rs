//! `trawl-testbed verify` on the command line.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::cli::VerifyArgs;
use crate::verify::{Wanted, verify};

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let wanted = Wanted {
        stream: args.stream,
        every: args.every,
        expect: args.expect,
        lost: args.lost,
    };
    let file: Box<dyn Read> = if args.file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&args.file).with_context(|| format!("cannot open {}", args.file.display()))?;
        Box::new(file)
    };
    let report = verify(BufReader::with_capacity(1 << 20, file), &wanted)
        .with_context(|| format!("cannot read {}", args.file.display()))?;
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print!("{report}");
    }
    Ok(ExitCode::from(u8::from(!report.is_good())))
}
