//! Capture files read back by an independent reader (the pcap-file crate and the Wireshark tools).

use std::{fs::File, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use pcap_file::pcapng::{Block, PcapNgReader};

use crate::traffic::number_of;

/// Every packet of a pcapng file, in order.
pub fn packets(file: &Path) -> Result<Vec<Vec<u8>>> {
    let mut reader =
        PcapNgReader::new(File::open(file).with_context(|| format!("cannot open {}", file.display()))?)?;
    let mut out = Vec::new();
    while let Some(block) = reader.next_block() {
        match block? {
            Block::EnhancedPacket(p) => out.push(p.data.into_owned()),
            Block::SimplePacket(p) => out.push(p.data.into_owned()),
            _ => {}
        }
    }
    Ok(out)
}

/// The numbers of all numbered frames in a file, and how many other packets it holds.
pub fn numbers(file: &Path) -> Result<(Vec<u64>, usize)> {
    let all = packets(file)?;
    let numbers: Vec<u64> = all.iter().filter_map(|p| number_of(p)).collect();
    let others = all.len() - numbers.len();
    Ok((numbers, others))
}

/// Fails unless capinfos and tshark read the file to its end without a complaint.
pub fn wireshark_accepts(file: &Path) -> Result<()> {
    for tool in [&["capinfos"][..], &["tshark", "-n", "-r"]] {
        let out = Command::new(tool[0])
            .args(&tool[1..])
            .arg(file)
            .output()
            .with_context(|| format!("{} did not start: apt-get install tshark", tool[0]))?;
        let complaints: Vec<_> = String::from_utf8_lossy(&out.stderr)
            .lines()
            .filter(|l| !l.contains("Running as user \"root\"") && !l.trim().is_empty())
            .map(str::to_owned)
            .collect();
        if !out.status.success() || !complaints.is_empty() {
            bail!(
                "{} complains about {}: {}",
                tool[0],
                file.display(),
                complaints.join("; ")
            );
        }
    }
    Ok(())
}
