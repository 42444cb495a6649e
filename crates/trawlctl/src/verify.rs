//! `trawlctl capture verify`: what a file is, beside what it was promised to be.

use std::{fs::File, io::Read, path::Path};

use serde_json::json;
use trawl_api::CaptureJob;
use trawl_artifact::{
    Measured, Verifier,
    manifest::{MAX_MANIFEST_BYTES, Manifest},
    verify::{compare, timestamp},
};

use crate::{
    Failure, capture,
    cli::{Place, VerifyArgs},
    connect::connect,
    output,
    progress::Progress,
    table::{bytes, or_dash},
};

/// What a file is held against.
enum Promise {
    Nothing,
    Manifest(Box<Manifest>),
    Status(Box<CaptureJob>),
}

/// Measures the file, compares, reports; fails when anything disagrees.
pub async fn run(place: &Place, args: VerifyArgs) -> Result<(), Failure> {
    let promise = promise(place, &args).await?;
    let file = args.file.clone();
    let measured = tokio::task::spawn_blocking(move || measure(&file))
        .await
        .map_err(|error| Failure::new(format!("reading stopped: {error}")))??;
    let problems = problems(&promise, &measured);
    let against = match &promise {
        Promise::Nothing => "nothing: structure only".to_owned(),
        Promise::Manifest(_) => or_dash(args.manifest.as_ref().map(|path| path.display())),
        Promise::Status(_) => format!("status of {}", or_dash(args.job.clone())),
    };
    match args.output {
        Some(_) => output::json(&report(&args.file, &measured, &against, &problems))?,
        None => output::line(&text(&args.file, &measured, &against))?,
    }
    if problems.is_empty() {
        if args.output.is_none() {
            output::line("verified: everything agrees")?;
        }
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} is not what it should be: {}",
        args.file.display(),
        problems.join("; ")
    ))
    .hint("do not rely on this file; fetch it again with trawlctl capture download"))
}

async fn promise(place: &Place, args: &VerifyArgs) -> Result<Promise, Failure> {
    if let Some(path) = &args.manifest {
        return Ok(Promise::Manifest(Box::new(read_manifest(path)?)));
    }
    let Some(job) = &args.job else {
        return Ok(Promise::Nothing);
    };
    let (client, namespace) = connect(place).await?;
    Ok(Promise::Status(Box::new(
        capture::get(&client, &namespace, job).await?,
    )))
}

fn read_manifest(path: &Path) -> Result<Manifest, Failure> {
    let fail = |problem: String| {
        Failure::usage(format!("--manifest: {}: {problem}", path.display()))
            .hint("it must be a manifest that trawlctl capture download --manifest wrote")
    };
    let mut text = Vec::new();
    let file = File::open(path).map_err(|error| fail(error.to_string()))?;
    file.take(MAX_MANIFEST_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| fail(error.to_string()))?;
    if text.len() as u64 > MAX_MANIFEST_BYTES {
        return Err(fail(format!("larger than {MAX_MANIFEST_BYTES} bytes")));
    }
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| fail(error.to_string()))?;
    if manifest.schema != trawl_artifact::manifest::MANIFEST_SCHEMA {
        return Err(fail(format!(
            "schema: must be {}",
            trawl_artifact::manifest::MANIFEST_SCHEMA
        )));
    }
    Ok(manifest)
}

fn measure(path: &Path) -> Result<Measured, Failure> {
    let fail = |error: std::io::Error| Failure::usage(format!("cannot read {}: {error}", path.display()));
    let mut file = File::open(path).map_err(fail)?;
    let meta = file.metadata().map_err(fail)?;
    if meta.is_dir() {
        return Err(Failure::usage(format!("{} is a directory", path.display())));
    }
    let progress = Progress::bytes("verifying");
    progress.begin(0, Some(meta.len()).filter(|len| *len > 0));
    let (mut verifier, mut buffer, mut position) = (Verifier::new(), vec![0; 1 << 20], 0);
    loop {
        let count = file.read(&mut buffer).map_err(fail)?;
        if count == 0 {
            break;
        }
        verifier.push(&buffer[..count]);
        position += count as u64;
        progress.at(position);
    }
    progress.finish();
    Ok(verifier.measure())
}

fn problems(promise: &Promise, measured: &Measured) -> Vec<String> {
    match promise {
        Promise::Nothing => match &measured.walk {
            Ok(_) => Vec::new(),
            Err(error) => vec![format!("the file cannot be read as pcapng: {error}")],
        },
        Promise::Manifest(manifest) => match compare(manifest, measured.clone()) {
            Ok(_) => Vec::new(),
            Err(error) => error.disagreements.iter().map(ToString::to_string).collect(),
        },
        Promise::Status(job) => against_status(job, measured),
    }
}

fn against_status(job: &CaptureJob, measured: &Measured) -> Vec<String> {
    let status = job.status.clone().unwrap_or_default();
    let mut found = Vec::new();
    match &status.sha256 {
        None => found.push("the status records no sha256 yet".to_owned()),
        Some(recorded) if *recorded != measured.sha256 => {
            found.push(format!(
                "sha256: the status says {recorded}, the file has {}",
                measured.sha256
            ));
        }
        Some(_) => {}
    }
    if let Some(size) = status
        .size_bytes
        .filter(|size| u64::try_from(*size) != Ok(measured.size_bytes))
    {
        found.push(format!(
            "sizeBytes: the status says {size}, the file has {}",
            measured.size_bytes
        ));
    }
    match &measured.walk {
        Err(error) => found.push(format!("the file cannot be read as pcapng: {error}")),
        Ok(file) => {
            if let Some(count) = status
                .packet_count
                .filter(|count| u64::try_from(*count) != Ok(file.packets))
            {
                found.push(format!(
                    "packetCount: the status says {count}, the file holds {}",
                    file.packets
                ));
            }
        }
    }
    found
}

fn text(path: &Path, measured: &Measured, against: &str) -> String {
    let file = &measured.salvageable;
    let stamp = |ns: Option<u64>| or_dash(ns.and_then(timestamp));
    let names: Vec<String> = file
        .interfaces
        .iter()
        .map(|interface| or_dash(interface.name.clone()))
        .collect();
    [
        format!("file:          {}", path.display()),
        format!(
            "size:          {} bytes ({})",
            measured.size_bytes,
            bytes(measured.size_bytes)
        ),
        format!("sha256:        {}", measured.sha256),
        format!(
            "packets:       {} ({} cut to snaplen)",
            file.packets, file.truncated_packets
        ),
        format!(
            "interfaces:    {}",
            if names.is_empty() {
                "-".into()
            } else {
                names.join(", ")
            }
        ),
        format!("first packet:  {}", stamp(file.first_packet_ns)),
        format!("last packet:   {}", stamp(file.last_packet_ns)),
        format!("compared with: {against}"),
    ]
    .join("\n")
}

fn report(path: &Path, measured: &Measured, against: &str, problems: &[String]) -> serde_json::Value {
    let file = &measured.salvageable;
    json!({
        "file": path.display().to_string(),
        "sizeBytes": measured.size_bytes,
        "sha256": measured.sha256,
        "packetCount": file.packets,
        "truncatedPackets": file.truncated_packets,
        "firstPacket": file.first_packet_ns.and_then(timestamp).map(|time| time.to_string()),
        "lastPacket": file.last_packet_ns.and_then(timestamp).map(|time| time.to_string()),
        "comparedWith": against,
        "verified": problems.is_empty(),
        "problems": problems,
    })
}
